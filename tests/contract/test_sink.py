"""What every sink that keeps a changelog does, whatever it is made of."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow.parquet as pq
import pytest

import iceberg_changelog
from historian.changelog.operations import Op, physical_name
from historian.errors import ChainBroken, SinkError
from historian.plans.plans import Plan
from historian.schema.snapshots import ColumnType
from lakes.iceberg_sink import IcebergSink, open_catalog
from lakes.lake import Lake
from lakes.sink_lab import INT, Lab, Written, decimal, text
from sinks.contract.base import Sink
from sinks.delta import DeltaSettings, DeltaSink
from sinks.parquet import ParquetSettings, ParquetSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Target(Protocol):
    """A kind of sink at one place, and how tests read what it holds."""

    path: Path

    def open(self, connector: str = "shop") -> tuple[Sink, int]: ...

    def log(self, lab: Lab, directory: str) -> list[Written]: ...


class DeltaTarget:
    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark, self.path = spark, path

    def open(self, connector: str = "shop") -> tuple[Sink, int]:
        sink = DeltaSink(self._spark, DeltaSettings(path=str(self.path)))
        return sink, sink.open(connector)

    def log(self, lab: Lab, directory: str) -> list[Written]:
        return Lake(self._spark, self.path, lab).log(directory)


class ParquetTarget:
    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark, self.path = spark, path

    def open(self, connector: str = "shop") -> tuple[Sink, int]:
        sink = ParquetSink(self._spark, ParquetSettings(path=str(self.path)))
        return sink, sink.open(connector)

    def log(self, lab: Lab, directory: str) -> list[Written]:  # noqa: ARG002 a file says itself what its version was
        rows = [
            row for file in sorted((self.path / directory).glob("[0-9]*")) for row in pq.read_table(file).to_pylist()
        ]
        assert [row["offset"] for row in rows] == list(range(len(rows)))
        return [Written(Op(row["op"]).sign, row["schema_version"], tuple(row.items())[5:]) for row in rows]


class IcebergTarget:
    """A sink of tests; that it needs no more than the protocol shows that the protocol suits Iceberg."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        # What executors run is a test's, and so not on their path.
        spark.sparkContext.addPyFile(str(iceberg_changelog.__file__))
        self.path = path

    def open(self, connector: str = "shop") -> tuple[Sink, int]:
        sink = IcebergSink(self.path)
        return sink, sink.open(connector)

    def log(self, lab: Lab, directory: str) -> list[Written]:
        with open_catalog(self.path) as catalog:
            table = catalog.load_table((iceberg_changelog.NAMESPACE, directory))
            rows = table.scan().to_arrow().sort_by("offset").to_pylist()
        standing = iceberg_changelog.standing_of(table.properties)
        assert standing is not None
        schema = table.schema()
        names = {physical_name(at): schema.find_field(field_id).name for at, field_id in standing.fields.items()}
        assert [row["offset"] for row in rows] == list(range(len(rows)))
        return [lab.written(row, names) for row in rows]


@pytest.fixture(params=[DeltaTarget, ParquetTarget, IcebergTarget], ids=["delta", "parquet", "iceberg"])
def target(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Target:
    made: Target = request.param(spark, tmp_path / "a place é")
    return made


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.CRITICAL):
        yield


@pytest.fixture
def write(spark: SparkSession) -> Callable[[Sink, Lab, Plan], None]:
    def run(sink: Sink, lab: Lab, plan: Plan) -> None:
        # In turn in this process and on executors: what is written does not depend on it.
        with lab.delivered(plan, spark if plan.number % 2 else None) as chunks:
            sink.write(plan, lab.timeline, chunks)

    return run


@pytest.fixture
def lab() -> Lab:
    """Three plans: two tables, an added and a renamed column, a dropped and re-added one, a TRUNCATE and a DROP."""
    lab = Lab()
    lab.create("shop.t", {"id": INT, "a": INT, "b": text()})
    lab.create("shop.bag", {"x": decimal(7, 2)}, key=())
    first = [{"id": i, "a": i, "b": f"é{i}"} for i in range(4)]
    lab.insert("shop.t", *first)
    lab.insert("shop.bag", {"x": None}, {"x": None}, {"x": None})
    lab.update("shop.t", first[0], a=-1)
    lab.cut()
    lab.add("shop.t", "c", INT, initial="7", after="")
    lab.rename_column("shop.t", "b", "called")
    lab.delete("shop.t", {"c": 7, "id": 1, "a": 1, "called": "é1"})
    lab.update("shop.t", {"c": 7, "id": 2, "a": 2, "called": "é2"}, c=None)
    lab.drop_column("shop.t", "a")
    lab.add("shop.t", "a", text())
    lab.delete("shop.bag", {"x": None})
    lab.cut()
    lab.insert("shop.t", {"c": 1, "id": 9, "called": "é9", "a": "again"})
    lab.truncate("shop.t")
    lab.insert("shop.t", {"c": 2, "id": 10, "called": "", "a": None})
    lab.drop("shop.bag")
    lab.cut()
    return lab


_BAG, _T = "shop_bag_changes", "shop_t_changes"


def _check(target: Target, lab: Lab) -> None:
    assert _settled(target.log(lab, _T)) == _settled(lab.log(lab.table_id("shop.t")))
    assert _settled(target.log(lab, _BAG)) == _settled(lab.log(2))


def _settled(rows: list[Written]) -> list[Any]:
    """Rows in order; those that a statement takes back, whose order nobody can know, in a fixed one."""
    return [sorted(map(repr, group)) if one == "-R" else [repr(row) for row in group] for one, group in _groups(rows)]


def _groups(rows: list[Written]) -> Iterator[tuple[str, list[Written]]]:
    group: list[Written] = []
    for row in rows:
        if group and group[-1].op != row.op:
            yield group[-1].op, group
            group = []
        group.append(row)
    if group:
        yield group[-1].op, group


Write = Callable[[Sink, Lab, Plan], None]


def test_columns_are_followed_whatever_becomes_of_their_names_and_types(target: Target, write: Write) -> None:
    lab = Lab()
    lab.create("shop.t", {"id": INT, "a": INT, "b": INT, "c": text()})
    lab.insert("shop.t", {"id": 1, "a": 1, "b": 2, "c": "three"})
    lab.cut()
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):
        lab.rename_column("shop.t", old, new)
    lab.retype("shop.t", "a", ColumnType(name="bigint"))
    lab.insert("shop.t", {"id": 2, "a": 1 << 40, "b": 1, "c": "four"})
    lab.drop_column("shop.t", "c")
    lab.add("shop.t", "c", INT)
    lab.insert("shop.t", {"id": 3, "a": 2, "b": 1, "c": 3})
    lab.truncate("shop.t")
    lab.insert("shop.t", {"id": 1, "a": 5, "b": 6, "c": 7})
    lab.cut()
    sink, _ = target.open()
    for plan in lab.plans:
        write(sink, lab, plan)

    assert _settled(target.log(lab, _T)) == _settled(lab.log(1))
    assert {} == sink.stopped()


def test_a_changelog_holds_every_change_in_order(target: Target, lab: Lab, write: Write) -> None:
    sink, held = target.open()
    assert 0 == held
    for plan in lab.plans:
        write(sink, lab, plan)

    _check(target, lab)
    assert {} == sink.stopped()


def test_plans_that_come_again_change_nothing(target: Target, lab: Lab, write: Write) -> None:
    for upto in range(1, len(lab.plans) + 1):
        sink, held = target.open()
        assert upto - 1 == held
        for plan in lab.plans[:upto]:
            write(sink, lab, plan)
        assert sink.held() in (upto - 1, upto)  # a sink may not be sure of its last one

    _check(target, lab)


def test_a_plan_is_whole_however_often_its_write_fails(
    target: Target, lab: Lab, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = _failing(target, monkeypatch)
    for plan in lab.plans:
        while True:
            sink, held = target.open()
            assert held in (plan.previous, plan.number)
            try:
                write(sink, lab, plan)
                break
            except OSError:
                continue

    assert failures == []
    _check(target, lab)


def _failing(target: Target, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Makes the first commits of a target fail, before they are made and after them in turn; says how many are still to."""
    from pyiceberg.catalog.sql import SqlCatalog

    from sinks.delta.log.target import Target as DeltaTable
    from sinks.parquet import sink as parquet
    from sinks.parquet.ledger import Ledger

    left = [2, 1]
    kinds: list[tuple[Any, str]] = [(DeltaTable, "commit")]
    if isinstance(target, ParquetTarget):
        kinds = [(Ledger, "append"), (parquet, "write_chunks")]
    elif isinstance(target, IcebergTarget):
        kinds = [(SqlCatalog, "commit_table")]
        left *= 9  # each of its commits: those of two tables, and that of the plan
    for owner, name in kinds:
        real = getattr(owner, name)

        def fails(*args: Any, real: Any = real, **given: Any) -> Any:
            if left and left[-1] == 1:
                left.pop()
                raise OSError("before")
            done = real(*args, **given)
            if left:
                left.pop()
                raise OSError("after")
            return done

        monkeypatch.setattr(owner, name, fails)
    return left


def test_a_missing_plan_is_refused(target: Target, lab: Lab, write: Write) -> None:
    sink, _ = target.open()
    write(sink, lab, lab.plans[0])

    with pytest.raises(ChainBroken, match="a plan is missing"):
        write(sink, lab, lab.plans[2])


def test_another_plan_of_the_same_number_is_refused(target: Target, lab: Lab, write: Write) -> None:
    sink, _ = target.open()
    write(sink, lab, lab.plans[0])

    with pytest.raises(ChainBroken, match="another plan"):
        write(sink, lab, replace(lab.plans[0], system_time_us=1))


def test_another_connector_is_refused(target: Target, lab: Lab, write: Write) -> None:
    sink, _ = target.open()
    write(sink, lab, lab.plans[0])

    with pytest.raises(SinkError, match="connector"):
        target.open("another")
    with pytest.raises(SinkError, match="connector"):
        write(sink, lab, replace(lab.plans[1], connector="another"))


def test_what_is_held_rebuilds_a_lost_store(target: Target, lab: Lab, write: Write) -> None:
    sink, _ = target.open()
    assert sink.recover() is None or not sink.recover().plans  # type: ignore[union-attr]
    for plan in lab.plans:
        write(sink, lab, plan)

    found = target.open()[0].recover()

    assert found is not None
    assert ("shop", lab.entries, lab.plans) == (found.connector, list(found.timeline), list(found.plans))


def test_a_table_that_a_changelog_cannot_take_stops_alone(target: Target, write: Write) -> None:
    lab = Lab()
    lab.create("shop.t", {"id": INT, "offset": INT})
    lab.create("shop.u", {"id": INT})
    lab.insert("shop.t", {"id": 1, "offset": 2})
    lab.insert("shop.u", {"id": 1})
    lab.cut()
    lab.insert("shop.t", {"id": 2, "offset": 2})
    lab.insert("shop.u", {"id": 2})
    lab.cut()
    sink, _ = target.open()
    for plan in lab.plans:
        write(sink, lab, plan)

    assert ["shop.t"] == list(sink.stopped())
    assert "named like a column of the changelog" in sink.stopped()["shop.t"]
    assert lab.log(2) == target.log(lab, "shop_u_changes")
    stopped = {s.table: bool(s.stopped) for s in target.open()[0].status() if s.kind == "changelog"}
    assert {"shop.t": True, "shop.u": False} == stopped


def test_a_chunk_that_says_why_its_table_stopped_stops_that_table_alone(target: Target, write: Write) -> None:
    lab = Lab()
    for name in ("shop.t", "shop.u"):
        lab.create(name, {"id": INT})
        lab.insert(name, {"id": 1})
    plans = [lab.cut()]
    lab.insert("shop.t", {"id": 2})
    lab.insert("shop.u", {"id": 2})
    plans.append(lab.cut())
    lab.insert("shop.t", {"id": 3})
    lab.insert("shop.u", {"id": 3})
    plans.append(lab.cut())
    chunks = lab.chunks[2]
    bad = next(chunk for chunk in chunks if chunk.table_id == lab.table_id("shop.t"))
    lab.chunks[2] = [
        replace(bad, rows=bad.rows.slice(0, 0), stopped="no such date"),
        *(c for c in chunks if c is not bad),
    ]

    for _ in range(2):  # a run that is told all again does the same
        sink, held = target.open()
        for plan in plans[held:]:
            write(sink, lab, plan)
        write(sink, lab, plans[-1])

        assert dict(sink.stopped()) == {"shop.t": "no such date"}
        assert [row.data for row in target.log(lab, "shop_t_changes")] == [(("id", 1),)]
        assert [row.data for row in target.log(lab, "shop_u_changes")] == [(("id", at),) for at in (1, 2, 3)]
