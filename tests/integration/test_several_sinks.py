"""Sinks of every type in one configuration, and one that is added later."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

from databases.servers import Server
from historian.errors import ChainBroken
from historian.store import Store
from replicas.replica import Replica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("few_rows")


def test_a_sink_that_is_added_later_begins_where_the_log_does_or_is_refused(
    mysql9: Server, spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    replica = Replica(mysql9, tmp_path, ["several"])
    text = replica.path.read_text()

    def told(*sinks: str) -> None:
        own = "    tables: {several.people: {mirror: customers}}\n"
        replica.path.write_text(text.replace("run:\n", "".join((own, *sinks, "run:\n")), 1))

    def logged(directory: Path) -> list[tuple[int, int, str]]:
        rows = spark.read.format("delta").load(str(directory / "changes_several_people"))
        return [(row.offset, row.op, row.name) for row in rows.orderBy("offset").collect()]

    told()
    for statement in ("CREATE DATABASE several", "CREATE TABLE several.people (id INT PRIMARY KEY, name VARCHAR(9))"):
        mysql9.sql(statement)
    try:
        mysql9.sql("INSERT INTO several.people VALUES (1, 'Ada'), (2, 'Zoë')")
        assert {} == replica.run(spark)
        mysql9.sql("UPDATE several.people SET name = 'Bob' WHERE id = 1")
        files = f'  - {{type: parquet, path: "{tmp_path}/files", changelog: "{{database}}_{{table}}"}}\n'
        told(files, "  - {type: console}\n")
        capfd.readouterr()
        assert {} == replica.run(spark)

        rows = ds.dataset(tmp_path / "files" / "several_people", exclude_invalid_files=True).to_table().to_pylist()
        assert [(row["offset"], row["op"], row["name"]) for row in rows] == logged(replica.lake)
        assert [(0, 0, "Ada"), (1, 0, "Zoë"), (2, 2, "Ada"), (3, 3, "Bob")] == logged(replica.lake)
        shown = [json.loads(line) for line in capfd.readouterr().out.splitlines() if line.startswith('{"table"')]
        printed = [(row["op"], row["data"]["name"]) for row in shown if "op" in row]
        assert [("+A", "Ada"), ("+A", "Zoë"), ("-C", "Ada"), ("+C", "Bob")] == printed

        with closing(Store.open(replica.config.history.store)) as store:
            last = store.last_plan()
            assert last is not None
            store.forget_plans(last.number)
        mysql9.sql("DELETE FROM several.people WHERE id = 2")
        told(files, f'  - {{type: delta, path: "{tmp_path}/late"}}\n')
        with pytest.raises(ChainBroken, match=r"a plan is missing in the lake \(.*late") as caught:
            replica.run(spark)
        assert "found plan" in str(caught.value)
        told(files)
        assert {} == replica.run(spark)
        assert logged(replica.lake)[4:] == [(4, 1, "Zoë")]
        mirror = spark.read.format("delta").load(f"{replica.lake}/customers").collect()
        assert [(1, "Bob")] == [(row.id, row.name) for row in mirror]
    finally:
        mysql9.sql("DROP DATABASE several")
