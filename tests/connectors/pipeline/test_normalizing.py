"""Normalisation as a stage of a pipeline: what it refuses, and what it gives to sinks of tables that stop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from connectors.config import TableFilter
from connectors.monitoring.normalization import NormalizationNote
from connectors.pipeline.normalizing.stage import Normalizer, normalizer_of
from databases.stores import END, a_plan
from historian.changelog.chunks import Chunk
from historian.changelog.operations import Op
from historian.ddl import parse_column_type
from historian.errors import HistorianError
from historian.names import TableName
from historian.normalizing.states import KeyedStates
from historian.plans.plans import Plan
from historian.schema.edits import CreateTable, RenameTable
from historian.schema.snapshots import Snapshot
from historian.store import Store
from models.keyed_changes import MemoryState, chunk_of, planned, rows_of, snapshot_of, version_of
from models.timelines import A as SERVER
from models.timelines import capture, statement
from sinks.contract.local_chunks import LocalChunks

COLUMNS = {name: (number, parse_column_type("int", None, None)) for number, name in enumerate(("id", "n"), 1)}
PLAIN = snapshot_of(COLUMNS)
FIRST = version_of(1, PLAIN)
EVERY = TableFilter()


class MemoryStates(KeyedStates):
    def __init__(self, *patterns: str) -> None:
        self.tables: dict[int, MemoryState] = {}
        self.patterns = patterns

    def is_vacant(self) -> bool:
        return not self.tables

    def at(self, plan: int, table_id: int, snapshot: Snapshot | None) -> MemoryState:  # noqa: ARG002 as of any states
        return self.tables.setdefault(table_id, MemoryState())

    def has(self, table_id: int) -> bool:
        return table_id in self.tables

    def began_with(self, table_id: int) -> tuple[str, ...] | None:
        return self.patterns if self.has(table_id) and self.patterns else None

    def forget(self, table_id: int) -> None:
        pass

    def commit(self, plan: int) -> None:
        pass


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path}/c.db")) as made:
        yield made


def plan_of(number: int) -> Plan:
    return replace(a_plan(number), tables=(planned(FIRST),))


def normalized(normalizer: Normalizer, number: int | Plan, *given: Chunk) -> list[Chunk]:
    plan = plan_of(number) if isinstance(number, int) else number
    with closing(LocalChunks()) as chunks:
        chunks.fill([lambda: iter(given)])
        with normalizer.normalized(plan, chunks) as (whole, counts):
            assert isinstance(whole, LocalChunks)
            found = list(whole.of_table(7))
        normalizer.written(plan, counts)
    return found


def test_other_patterns_than_a_connector_began_with_are_refused(store: Store) -> None:
    states = MemoryStates()
    assert Normalizer(states, TableFilter(("shop.a",)), store).held(0) == 0
    with pytest.raises(HistorianError, match=r"another one than the connector began with.*shop\.a"):
        Normalizer(states, EVERY, store).held(50)


def test_a_connector_that_began_with_normalisation_goes_on_though_its_first_plan_came_to_no_state(store: Store) -> None:
    Normalizer(MemoryStates(), EVERY, store).held(0)
    assert Normalizer(MemoryStates(), EVERY, store).held(1) == 0


def test_normalisation_is_refused_once_plans_were_written_without_it(store: Store) -> None:
    with pytest.raises(HistorianError, match="only of a connector that begins with it"):
        Normalizer(MemoryStates(), EVERY, store).held(3)


def test_a_table_whose_state_is_gone_ends_the_run_each_time(store: Store) -> None:
    normalizer = Normalizer(MemoryStates(), EVERY, store)
    normalizer.held(0)
    normalized(normalizer, 1, chunk_of([(Op.APPEND, {"id": 1, "n": 1})], FIRST))
    normalizer = Normalizer(MemoryStates(), EVERY, store)
    assert normalizer.held(1) == 1
    for _ in range(2):
        with pytest.raises(HistorianError, match=r"a state of .* is gone"):
            normalized(normalizer, 2, chunk_of([(Op.RETRACT, {"id": 1})], FIRST))


def test_normalisation_that_is_taken_back_keeps_no_plan_and_does_not_return(store: Store) -> None:
    normalizer = Normalizer(MemoryStates(), EVERY, store)
    normalizer.held(0)
    normalized(normalizer, 1, chunk_of([(Op.APPEND, {"id": 1, "n": 1})], FIRST))
    assert store.progress("normalize") == 1
    normalizer_of(SimpleNamespace(source=None), None, store, "c")  # type: ignore[arg-type]
    assert store.progress("normalize") == 0
    assert NormalizationNote.of(store).tables.keys() == {7}
    with pytest.raises(HistorianError, match="taken back"):
        Normalizer(MemoryStates(), EVERY, store).held(5)


@pytest.mark.parametrize("seed, unseen", [(0, 2), (1, 5)], ids=["from the beginning", "behind rows that are kept"])
def test_what_is_read_again_into_fresh_targets_is_counted_once(store: Store, seed: int, unseen: int) -> None:
    states = MemoryStates()
    normalizer = Normalizer(states, EVERY, store)
    normalizer.held(0)
    gone = [(Op.RETRACT, {"id": number}) for number in range(5)]
    normalized(normalizer, 1, chunk_of(gone, FIRST))
    plan = plan_of(2)
    plan = replace(plan, tables=tuple(replace(each, behind=0, seed=seed) for each in plan.tables))

    normalized(normalizer, plan, chunk_of(gone[:2], FIRST))

    assert NormalizationNote.of(store).tables[7].unseen_deletes == unseen


def test_of_a_table_that_its_reader_stops_no_row_of_the_plan_comes(store: Store) -> None:
    good = chunk_of([(Op.CORRECT_TO, {"id": 1, "n": 5}), (Op.RETRACT, {"id": 2})], FIRST)
    bad = replace(chunk_of([], FIRST, 1), stopped="a value is none of its column's type")
    found = normalized(Normalizer(MemoryStates(), EVERY, store), 2, good, bad)
    assert [chunk.stopped for chunk in found] == [bad.stopped]
    assert rows_of(found, PLAIN) == []


def test_a_table_that_is_renamed_into_the_patterns_stops(store: Store) -> None:
    normalizer = Normalizer(MemoryStates(), TableFilter(("shop.t",)), store)
    before = version_of(1, replace(PLAIN, name=TableName("shop", "old")))
    after = version_of(2, PLAIN)
    plan = replace(a_plan(2), tables=(planned(before, after),))
    with closing(LocalChunks()) as chunks:
        chunks.fill([lambda: iter([chunk_of([(Op.RETRACT, {"id": 2})], after)])])
        with normalizer.normalized(plan, chunks) as (whole, _):
            assert ["renamed" in head.stopped for head in whole.heads] == [True]


def test_a_table_that_was_renamed_into_the_patterns_stops_again_behind_a_heal(store: Store) -> None:
    old = replace(PLAIN, name=TableName("shop", "old"))
    renamed = RenameTable(table=old.name, table_id=7, new=PLAIN.name)
    store.record([capture(CreateTable(snapshot=old)), statement(2, f"{SERVER}:5", renamed)], END)
    normalizer = Normalizer(MemoryStates(), TableFilter(("shop.t",)), store)
    plan = replace(a_plan(3), tables=(planned(version_of(2, PLAIN)),))
    for _ in range(2):
        with closing(LocalChunks()) as chunks:
            chunks.fill([lambda: iter([chunk_of([(Op.RETRACT, {"id": 2})], version_of(2, PLAIN))])])
            with normalizer.normalized(plan, chunks) as (whole, _):
                assert ["renamed" in head.stopped for head in whole.heads] == [True]


def test_a_store_that_was_rebuilt_refuses_other_patterns_than_states_began_with(store: Store) -> None:
    store.record([capture(CreateTable(snapshot=PLAIN))], END)
    states = MemoryStates("shop.t")
    states.at(1, 7, PLAIN)
    with pytest.raises(HistorianError, match=r"another one than the connector began with.*shop\.t"):
        Normalizer(states, EVERY, store).held(3)
    assert Normalizer(states, TableFilter(("shop.t",)), store).held(3) == 2
    states.tables.clear()
    with pytest.raises(HistorianError, match=r"a state of .* is gone"):
        normalized(Normalizer(states, TableFilter(("shop.t",)), store), 4, chunk_of([(Op.RETRACT, {"id": 1})], FIRST))
