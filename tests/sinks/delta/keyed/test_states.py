"""States in Delta tables: what was put is found, by another process too, as of each plan; and few keys are written anew."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from historian.errors import ChainBroken
from historian.normalizing.keys import KeyHashes
from sinks.delta.keyed import table
from sinks.delta.keyed.states import DeltaKeyedStates
from sinks.delta.keyed.stored import load, written
from sinks.delta.keyed.table import StateTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Held = dict[int, bytes]


def keys_of(numbers: list[int]) -> KeyHashes:
    """Keys of numbers that ascend; every third one has the first number of the one before."""
    at = np.array(numbers, np.int64)
    return KeyHashes(at - at % 3 - 50, at % 3)


def put(state: StateTable, rows: dict[int, bytes | None], held: Held) -> None:
    numbers = sorted(rows)
    cells = pa.array([rows[number] for number in numbers], pa.binary())
    state.put(keys_of(numbers), cells, key="1:int64", layout="1:int64")
    for number, row in rows.items():
        if row is None:
            held.pop(number, None)
        else:
            held[number] = row


def found(state: StateTable) -> Held:
    numbers = list(range(120))
    cells = state.find(keys_of(numbers)).to_pylist()
    return {number: cell for number, cell in zip(numbers, cells, strict=True) if cell is not None}


def states_of(spark: SparkSession, path: Path, connector: str = "a") -> DeltaKeyedStates:
    return DeltaKeyedStates(spark, str(path), connector)


def test_what_was_put_is_held_by_another_process_once_it_is_committed(spark: SparkSession, tmp_path: Path) -> None:
    states, held = states_of(spark, tmp_path), Held()
    assert states.is_vacant()
    put(states.at(1, 7, None), {1: b"one", 2: b"two", 3: b"three"}, held)
    states.commit(1)
    state = states.at(2, 7, None)
    put(state, {2: None, 4: b"four"}, held)
    put(state, {4: b"4"}, held)
    assert held == found(state)
    assert {1: b"one", 2: b"two", 3: b"three"} == found(states_of(spark, tmp_path).at(2, 7, None))
    states.commit(2)
    again = states_of(spark, tmp_path)
    assert not again.is_vacant()
    other = again.at(3, 7, None)
    assert held == found(other)
    assert sorted(held.values()) == sorted(other.rows().to_pylist())
    assert ("1:int64", "1:int64") == (other.key, other.layout)


def test_a_plan_that_comes_again_finds_what_it_found_at_first(spark: SparkSession, tmp_path: Path) -> None:
    states, held = states_of(spark, tmp_path), Held()
    for plan, row in enumerate((b"a", b"b", b"c"), 1):
        put(states.at(plan, 7, None), {1: row, plan + 10: row}, held)
        states.commit(plan)
    again = states_of(spark, tmp_path)
    assert {1: b"a", 11: b"a"} == found(again.at(2, 7, None))
    put(again.at(2, 7, None), {1: b"b", 12: b"b"}, Held())
    again.commit(2)  # is held already
    assert held == found(again.at(4, 7, None))


def test_a_later_plan_that_reads_rows_again_goes_on_from_what_was_held_before_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    states = states_of(spark, tmp_path)
    for plan, row in enumerate((b"a", b"b", b"c"), 1):
        put(states.at(plan, 7, None), {1: row, plan + 10: row}, Held())
        states.commit(plan)
    again = states_of(spark, tmp_path)
    put(again.at(2, 7, None), {12: b"B"}, Held())
    again.commit(4)
    wanted = {1: b"a", 11: b"a", 12: b"B"}
    assert wanted == found(again.at(5, 7, None)) == found(states_of(spark, tmp_path).at(5, 7, None))


@pytest.mark.parametrize("kept", [0, 20, 39])
def test_the_state_before_a_plan_is_found_in_few_looks(kept: int) -> None:
    looks = list[int]()

    class Past:
        """A table with a version a plan, of which those before *kept* are gone."""

        def view_at(self, _: str, version: int) -> Any:
            looks.append(version)
            return self.view(version) if version >= kept else None

        def view(self, version: int) -> Any:
            return SimpleNamespace(path="p", version=version, transaction=lambda _: 2 * version)

    states = object.__new__(DeltaKeyedStates)
    past = states._kernel = Past()  # type: ignore[assignment]
    for plan in range(2, 90):
        looks.clear()
        wanted = min(40, (plan - 1) // 2)
        if wanted < kept:
            with pytest.raises(ChainBroken, match="does not keep"):
                states._before(past.view(40), "a", plan)
        else:
            assert wanted == states._before(past.view(40), "a", plan).version
        assert len(looks) <= 12


def test_what_is_not_committed_is_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    states = states_of(spark, tmp_path)
    put(states.at(1, 7, None), {1: b"a"}, Held())
    states.forget(7)
    assert {} == found(states.at(1, 7, None))


def test_a_cleared_state_holds_what_is_put_behind_it_alone(spark: SparkSession, tmp_path: Path) -> None:
    states, held = states_of(spark, tmp_path), Held()
    put(states.at(1, 7, None), {1: b"a", 2: b"b"}, Held())
    states.commit(1)
    state = states.at(2, 7, None)
    put(state, {3: b"c"}, Held())
    state.clear()
    put(state, {2: b"B"}, held)
    states.commit(2)
    assert held == found(states.at(3, 7, None)) == found(states_of(spark, tmp_path).at(3, 7, None))


def test_the_state_of_another_connector_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    put(states_of(spark, tmp_path).at(1, 7, None), {1: b"a"}, Held())
    with pytest.raises(ChainBroken, match="taken by another table"):
        states_of(spark, tmp_path, "b").at(1, 7, None)


def test_ranges_written_whole_and_files_that_go_change_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "_CYCLE", 3)
    monkeypatch.setattr(table, "_RANGE_KEYS", 7)
    monkeypatch.setattr(table, "_MOST_DEAD", 2)
    numbers = random.Random(5)
    states, held, files = states_of(spark, tmp_path), Held(), list[int]()
    for plan in range(1, 25):
        rows: dict[int, bytes | None] = {
            numbers.randrange(120): None if numbers.random() < 0.4 else b"%d" % plan for _ in range(12)
        }
        if plan % 5 == 0 and held:
            spared = numbers.choice(sorted(held))
            rows = {number: b"%d" % plan for number in held if number != spared}
        elif plan % 5 < 3 and held:
            rows = {numbers.choice(sorted(held)): None}
        put(states.at(plan, 7, None), rows, held)
        states.commit(plan)
        assert held == found(states.at(plan + 1, 7, None)), plan
        anew = states_of(spark, tmp_path)
        assert held == found(anew.at(plan + 1, 7, None)), plan
        if plan % 4 == 0:
            states = anew
        view = states._kernel.view(f"{tmp_path}/7")
        assert view is not None
        files.append(len(view.files()))
    assert max(files) < 24, files


@pytest.mark.parametrize("seed", range(3))
def test_a_key_that_is_gone_stays_gone_when_nearly_all_others_change(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(table, "_CYCLE", 4)
    monkeypatch.setattr(table, "_RANGE_KEYS", 10)
    monkeypatch.setattr(table, "_MOST_DEAD", 2)
    numbers = random.Random(seed)
    states, held = states_of(spark, tmp_path), Held()
    gone, kept = (3, 15) if seed == 0 else numbers.sample(range(20), 2)
    plans: list[dict[int, bytes | None]] = [dict.fromkeys(range(20), b"1"), {gone: None}, {4: b"x"}, {5: b"x"}]
    plans.append({number: b"2" for number in range(20) if number not in (gone, kept)})
    plans += [{7: b"y"}, {7: b"z"}, {7: b"w"}]
    for plan, rows in enumerate(plans, 1):
        put(states.at(plan, 7, None), rows, held)
        states.commit(plan)
        assert held == found(states.at(plan + 1, 7, None)), plan
        assert held == found(states_of(spark, tmp_path).at(plan + 1, 7, None)), plan


def test_files_that_others_have_merged_hold_what_they_held(tmp_path: Path) -> None:
    keys = keys_of([3, 4])
    old = written(str(tmp_path), keys, pa.array([b"old1", b"old2"], pa.binary()), 1)[0].path
    gone = written(str(tmp_path), keys.take(np.array([0])), pa.array([None], pa.binary()), 2)[0].path
    new = written(str(tmp_path), keys.take(np.array([1])), pa.array([b"new2"], pa.binary()), 3)[0].path
    whole = written(str(tmp_path), keys.take(np.array([1])), pa.array([b"new2"], pa.binary()), 3, (-100, 100))[0].path

    def merged(*paths: str) -> str:
        made = str(tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet")
        pq.write_table(pa.concat_tables([pq.read_table(path, partitioning=None) for path in paths]), made)
        return made

    for paths in (
        [old, gone, new],
        [merged(new, gone, old)],
        [merged(old, new), gone],
        [merged(whole, old)],
        [merged(old, whole), gone],
        [merged(gone, whole, old)],
    ):
        loaded = load(paths)
        assert loaded.cells.at(loaded.index.find(keys)).to_pylist() == [None, b"new2"]


def test_a_state_that_is_optimized_amid_a_run_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "_MOST_DEAD", 3)
    states, held = states_of(spark, tmp_path), Held()
    for plan in range(1, 7):
        put(states.at(plan, 7, None), {3: b"%d" % plan if plan % 2 else None, 4: b"%d" % plan}, held)
        if plan == 4:
            spark.sql(f"OPTIMIZE delta.`{tmp_path}/7`").collect()
        states.commit(plan)
        assert held == found(states.at(plan + 1, 7, None)) == found(states_of(spark, tmp_path).at(plan + 1, 7, None))


def test_a_state_keeps_the_patterns_that_it_was_begun_with(spark: SparkSession, tmp_path: Path) -> None:
    begun = DeltaKeyedStates(spark, str(tmp_path), "a", ("shop.*", 'x."y'))
    begun.at(1, 7, None)
    again = DeltaKeyedStates(spark, str(tmp_path), "a", ("other.*",))
    assert again.began_with(7) == ("shop.*", 'x."y')
    assert again.began_with(8) is None
    again.at(1, 7, None)
    assert again.began_with(7) == ("shop.*", 'x."y')
