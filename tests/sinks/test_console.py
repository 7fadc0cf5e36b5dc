"""The console sink prints rows as lines of JSON, and statements between them."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

from historian.schema.snapshots import ColumnType
from lakes.sink_lab import INT, Lab, decimal
from sinks.console import ConsoleSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_and_statements_are_printed_in_order(spark: SparkSession) -> None:
    lab = Lab()
    lab.create(
        "shop.t", {"id": INT, "b": ColumnType(name="blob"), "d": decimal(5, 2), "at": ColumnType(name="datetime")}
    )
    lab.insert("shop.t", {"id": 1, "b": b"\x00\xff"})
    lab.cut()
    lab.insert("shop.t", {"id": 2})
    lab.add("shop.t", "é", INT)
    lab.update("shop.t", {"id": 2}, é=3)
    lab.truncate("shop.t")
    lab.cut()
    out = io.StringIO()
    sink = ConsoleSink(spark, None, out)

    assert sink.open("shop") is None
    for plan in lab.plans:
        with lab.delivered(plan, spark) as chunks:
            sink.write(plan, lab.timeline, chunks)

    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    nothing = {"b": None, "d": None, "at": None}
    assert lines == [
        {"table": "shop.t", "schema_version": 1, "statement": "CREATE TABLE shop.t"},
        _row("+A", 2, 1, {"id": 1, **nothing, "b": "AP8="}),
        _row("+A", 3, 1, {"id": 2, **nothing}),
        {"table": "shop.t", "schema_version": 2, "statement": "ALTER TABLE shop.t ADD é"},
        _row("-C", 5, 2, {"id": 2, **nothing, "é": None}),
        _row("+C", 5, 2, {"id": 2, **nothing, "é": 3}),
        {"table": "shop.t", "schema_version": 3, "statement": "TRUNCATE shop.t"},
    ]
    assert ({}, ()) == (sink.stopped(), sink.status())


def test_a_repair_is_told_before_the_rows_that_the_source_holds(spark: SparkSession) -> None:
    lab = Lab()
    lab.create("shop.t", {"id": INT})
    lab.insert("shop.t", {"id": 1})
    lab.cut()
    lab.unlogged("shop.t", {"id": 2})
    out = io.StringIO()
    with lab.delivered(lab.cut({"shop.t": "a test"})) as chunks:
        ConsoleSink(spark, None, out).write(lab.plans[-1], lab.timeline, chunks)

    told, row = (json.loads(line) for line in out.getvalue().splitlines())
    assert told == {"table": "shop.t", "repairs": "a test"}
    assert ("+A", {"id": 2}) == (row["op"], row["data"])


def _row(op: str, clock: int, version: int, data: dict[str, object]) -> dict[str, object]:
    time = f"2023-11-14 22:13:{20 + clock}+00:00"
    return {"table": "shop.t", "op": op, "event_time": time, "schema_version": version, "data": data}
