"""Random rows and statements in partitions that lag: rows are those of the source, in its order, or their table stops."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from connectors.readers.kafka.located import batches as located_batches
from databases.kafka import Kafka
from historian.changelog.operations import Op
from logs.lagging_topics import Found, Way, World, read
from logs.statement_forms import FORMS

SEED = int(os.environ.get("SEED", "6"))
WORLDS = int(os.environ.get("WORLDS", "400"))


def differences(world: World, found: Found) -> Iterator[str]:
    """How rows differ from those of the source.

    Rows of a table that lost them since may be left out. So each row stands in its own table, behind as many TRUNCATEs as in the source.
    """
    seen, last = Counter[int](), dict[tuple[int, int], int]()
    mirrors: dict[int, dict[int, int]] = {}
    columns = dict(columns_of(world, found))
    if len(set(columns.values())) != len(columns):
        yield f"a column is several ones: {columns}"
    for table_id, rows in found.rows.items():
        lifetimes = {world.changes[row["v"]].lifetime for _, _, row in rows}
        if len(lifetimes) > 1:
            yield f"rows of {lifetimes} in table {table_id}"
        for emptied, op, row in rows:
            number, change = row["v"], world.changes[row["v"]]
            if change.emptied != emptied:
                yield f"row {number} stands behind {emptied} TRUNCATEs, not {change.emptied}"
            held = {columns[table_id, name]: value for name, value in row.items() if (table_id, name) in columns}
            defaults = world.lifetimes[change.lifetime].defaults
            for column, value in held.items():
                added = (None, defaults.get(column))
                if value not in ((change.values[column],) if column in change.values else added):
                    yield f"row {number} has {value} in column {column}"
            mirror = mirrors.setdefault(table_id, {})
            if op in (Op.RETRACT, Op.CORRECT_FROM):
                mirror.pop(change.key, None)
                continue
            seen[number] += 1
            if last.get((change.lifetime, change.key), 0) >= number:
                yield f"row {number} stands behind a later one of its key"
            last[change.lifetime, change.key] = number
            mirror[change.key] = number
    for number in world.changes:
        if seen[number] != 1 and (seen[number] or number not in world.ended):
            yield f"row {number} comes {seen[number]} times"
    yield from differences_at_the_end(world, found, mirrors)


def columns_of(world: World, found: Found) -> Iterator[tuple[tuple[int, str], int]]:
    """By table and column the source's column, which its names tell."""
    for table_id, columns in found.columns.items():
        for column, names in columns.items():
            for number in {world.named[name] for name in names if name in world.named}:
                yield (table_id, column), number


def differences_at_the_end(world: World, found: Found, mirrors: dict[int, dict[int, int]]) -> Iterator[str]:
    if found.live.keys() != world.tables.keys():
        yield f"tables are {found.live.keys()}, not {world.tables.keys()}"
    for name in world.tables.keys() & found.live.keys():
        table = world.tables[name]
        of_version = next(column for column, named in table.columns.items() if named == "v")
        held = mirrors.get(found.live[name], {})
        mirror = {key: number for key, number in held.items() if world.changes[number].emptied == table.emptied}
        wanted = {key: row[of_version] for key, row in table.rows.items()}
        if mirror != wanted:
            yield f"{name} holds {mirror}, not {wanted}"


def compared(way: Way, seed: int, count: int = 40, dies: float = 0.0) -> Found:
    """What plans have of a random world, which is as in the source where no table stopped."""
    numbers = random.Random(seed)
    way = replace(way, partitions=numbers.randrange(1, 5))
    world = World(numbers, way, count)
    found = read(world, numbers, dies=dies)
    if not found.stopped:
        assert not list(differences(world, found)), (way, seed)
    return found


@pytest.mark.parametrize("name", FORMS)
def test_rows_of_partitions_that_lag_are_on_their_side_of_each_statement(name: str) -> None:
    for seed, grain_ms in enumerate([1, 1000]):
        found = compared(Way(name, grain_ms=grain_ms), seed)

        assert not found.stopped, (seed, found.stopped)


@pytest.mark.parametrize("name", [name for name, form in FORMS.items() if form.broadcasts])
def test_where_each_partition_has_each_statement_rows_of_its_moment_are_told_apart(name: str) -> None:
    for seed, grain_ms in enumerate([1, 1000]):
        found = compared(Way(name, grain_ms=grain_ms, is_apart=False, statements_lag=True), seed)

        assert not found.stopped, (seed, found.stopped)


@pytest.mark.parametrize("way", [Way("canal_json", is_apart=False), Way("canal_json", statements_lag=True)])
def test_rows_that_may_be_on_either_side_of_a_statement_stop_their_table(way: Way) -> None:
    assert {True, False} == {bool(compared(replace(way, grain_ms=1000), seed).stopped) for seed in range(4)}


@pytest.mark.parametrize("name", ["canal_json", "ticdc_simple", "debezium_json"])
def test_who_goes_on_anew_behind_each_plan_makes_the_same_plans(name: str) -> None:
    way, numbers = Way(name, partitions=3, grain_ms=1000, is_apart=False), random.Random(7)
    world = World(numbers, way, 40)

    assert read(world, random.Random(8)) == read(world, random.Random(8), anew=True)


@pytest.mark.parametrize("name", ["canal_json", "ticdc_open_protocol"])
def test_a_real_broker_with_partitions_that_lag(name: str, kafka: Kafka) -> None:
    world, numbers = World(random.Random(1), Way(name, partitions=3), 60), random.Random(2)

    found = read(world, numbers, kafka=kafka)

    kafka.delete_topic("t")
    assert not found.stopped
    assert not list(differences(world, found))


def test_who_dies_where_something_is_stored_tells_rows_apart_all_the_same() -> None:
    for seed, name in enumerate(FORMS):
        found = compared(Way(name, grain_ms=1000), seed, dies=0.4)

        assert not found.stopped


@pytest.mark.parametrize("seed", [4004, 4012])
def test_who_dies_where_plans_have_little_room_goes_on(seed: int) -> None:
    grain_ms = random.Random(seed).choice([1, 1000])

    found = compared(Way("ticdc_simple", grain_ms=grain_ms, is_apart=False, is_limited=True), seed, 80, dies=0.2)

    assert not found.stopped


@pytest.mark.soak
@pytest.mark.parametrize("is_limited", [False, True], ids=["with_room", "limited"])
@pytest.mark.parametrize("statements_lag", [False, True], ids=["statements_first", "statements_lag"])
@pytest.mark.parametrize("is_apart", [True, False], ids=["apart", "of_one_moment"])
@pytest.mark.parametrize("name", FORMS)
def test_many_worlds(
    name: str, is_apart: bool, statements_lag: bool, is_limited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Counter[str]()
    for seed in range(1000 * SEED, 1000 * SEED + WORLDS):
        grain_ms = random.Random(seed).choice([1, 1000])
        way = Way(name, grain_ms=grain_ms, is_apart=is_apart, statements_lag=statements_lag, is_limited=is_limited)
        monkeypatch.setattr(located_batches, "FEWEST_LOCATED", 0 if seed % 2 else 1_000_000)
        told["stopped" if compared(way, seed, 80, dies=0.2 * (seed % 3 == 0)).stopped else "whole"] += 1
    print(name, told)

    assert told["whole"]
    assert not told["stopped"] or not FORMS[name].broadcasts
