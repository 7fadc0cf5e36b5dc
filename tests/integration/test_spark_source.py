"""``format("historian")`` gives the same rows at once and as a stream, in one process and on executors of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from databases.servers import Server
from historian.errors import TableStopped
from pyspark_historian.errors import readable_errors
from replicas.driven_source import DrivenStream, read_batch
from replicas.read_source import read_and_write
from replicas.replica import Replica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

SUPPORT = Path(__file__).parent.parent / "support"


@pytest.fixture
def mysql9(fresh_server: Callable[..., Server]) -> Server:
    """A server of this test's own: the log of a shared one holds what other tests write."""
    return fresh_server("mysql9")


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    """A database of the test's own: the log of a shared server never forgets a table."""
    return f"typed_{abs(hash(request.node.name)) % 10**6}"


@pytest.fixture
def replica(mysql9: Server, tmp_path: Path, database: str) -> Replica:
    """A connector on a table with a few versions."""
    for statement in (
        f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.t (id INT PRIMARY KEY, name VARCHAR(20), price DECIMAL(8,2), at DATETIME(3))",
        f"INSERT INTO {database}.t VALUES (1, 'one', 1.50, '2024-02-29 12:00:00.123'), (2, 'zwölf', NULL, NULL)",
        f"ALTER TABLE {database}.t ADD COLUMN note VARCHAR(10) DEFAULT 'none' FIRST",
        f"UPDATE {database}.t SET price = 2.25 WHERE id = 2",
        f"UPDATE {database}.t SET id = 20 WHERE id = 1",
        f"ALTER TABLE {database}.t DROP COLUMN name",
        f"DELETE FROM {database}.t WHERE id = 2",
    ):
        mysql9.sql(statement)
    return Replica(mysql9, tmp_path / "typed", [database])


EXPECTED = [
    # op, id, note, price: of the last version, which earlier rows are projected to by column id
    (0, 1, "none", "1.50"),
    (0, 2, "none", None),
    (2, 2, "none", None),
    (3, 2, "none", "2.25"),
    (1, 1, "none", "1.50"),
    (0, 20, "none", "1.50"),
    (1, 2, "none", "2.25"),
]


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    ordered = table.to_pylist()
    ordered.sort(key=lambda row: (int(row["position"].rpartition(":")[2]), row["ordinal"]))
    return [(row["op"], row["id"], row["note"], None if row["price"] is None else str(row["price"])) for row in ordered]


def _read(rescued: pa.Scalar | str | None) -> dict[str, str] | None:
    text = rescued.as_py() if isinstance(rescued, pa.Scalar) else rescued
    return None if text is None else json.loads(text)


@pytest.mark.slow
def test_executors_in_other_processes_give_the_same_rows(
    replica: Replica, database: str, spark: SparkSession, tmp_path: Path
) -> None:
    """The session of the tests, local[2], and local-cluster[2,1,1024], batch and stream: four times the same rows."""
    here, others = tmp_path / "local", tmp_path / "local-cluster"
    given = (str(replica.path), f"{database}.t")
    read_and_write(spark, *given, str(here))
    script = str(SUPPORT / "replicas" / "read_source.py")
    command = [sys.executable, script, "local-cluster[2,1,1024]", *given, str(others)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=os.environ)
    assert done.returncode == 0, done.stderr[-3000:]
    found = [
        _rows(pq.read_table(f"{output}-{kind}.parquet")) for output in (here, others) for kind in ("batch", "stream")
    ]
    assert [EXPECTED] * 4 == found
    assert ["1", "2"] == [Path(f"{output}-executors.txt").read_text() for output in (here, others)]


def test_the_position_of_a_row_parts_a_batch_of_a_server_as_it_parts_the_log(replica: Replica, database: str) -> None:
    whole = {"config": str(replica.path), "table": f"{database}.t"}
    updated = next(row for row in read_batch(whole).to_pylist() if row["op"] == 3)["position"]

    before, behind = (_rows(read_batch({**whole, name: updated})) for name in ("to", "from"))

    assert [row[1:3] for row in EXPECTED[:4]] == [row[1:3] for row in before]
    assert EXPECTED[4:] == behind


@pytest.mark.slow
def test_an_edit_that_cannot_be_projected_ends_a_typed_read_at_its_position(
    replica: Replica, database: str, mysql9: Server, spark: SparkSession
) -> None:
    mysql9.sql(f"TRUNCATE TABLE {database}.t")
    rows = spark.read.format("historian").option("config", str(replica.path)).option("table", f"{database}.t").load()

    with pytest.raises(Exception, match=rf"TRUNCATE TABLE {database}\.t: rows went without row events") as raised:
        rows.collect()
    assert str(raised.value).strip().count("\n") < 2  # neither Java nor Python's frames
    with pytest.raises(TableStopped, match="rows went without row events") as plain, readable_errors():
        rows.collect()
    assert "\n" not in str(plain.value)


@pytest.mark.slow
def test_a_query_ends_at_an_edit_that_does_not_fit_and_its_restart_goes_on_behind_it(
    replica: Replica, database: str, mysql9: Server, spark: SparkSession, tmp_path: Path
) -> None:
    """Over a change of type that no value survives, with rows on both sides of it in one plan."""
    options = {
        "config": str(replica.path),
        "table": f"{database}.t",
        "name": "r",
        "store": f"sqlite:///{tmp_path}/r.db",
    }

    def run() -> StreamingQuery:
        rows = spark.readStream.format("historian").options(**options).load()
        rows = rows.selectExpr("op", "id", "cast(price AS string) price", "position", "ordinal")
        query = rows.writeStream.format("parquet").option("checkpointLocation", f"{tmp_path}/checkpoint")
        started = query.trigger(availableNow=True).start(f"{tmp_path}/out")
        with readable_errors():
            started.awaitTermination()
        return started

    progress = [each.json for each in run().recentProgress]
    for statement in (
        f"INSERT INTO {database}.t VALUES ('n', 30, 3.50, NULL)",
        f"ALTER TABLE {database}.t MODIFY price VARCHAR(20)",
        f"INSERT INTO {database}.t VALUES ('n', 31, 'three', NULL)",
        f"ALTER TABLE {database}.t ADD COLUMN more INT",
        f"INSERT INTO {database}.t VALUES ('n', 32, 'four', NULL, 4)",
    ):
        mysql9.sql(statement)
    with pytest.raises(TableStopped, match=r"column price is varchar\(20\), the rows' decimal\(8,2\)") as stopped:
        run()
    run()

    assert "start the query again, with the same name and checkpoint" in str(stopped.value)
    assert "\n" not in str(stopped.value)
    (source,) = json.loads(progress[0])["sources"]
    assert len(EXPECTED) == source["numInputRows"]
    assert source["endOffset"]["log_bytes"] > 0 == source["latestOffset"]["waiting_bytes"]
    found = pq.read_table(f"{tmp_path}/out").to_pylist()
    found.sort(key=lambda row: (int(row["position"].rpartition(":")[2]), row["ordinal"]))
    more = [(0, 30, "3.50"), (0, 31, "three"), (0, 32, "four")]
    assert [(op, key, price) for op, key, _, price in EXPECTED] + more == [
        (row["op"], row["id"], row["price"]) for row in found
    ]


def test_what_a_column_cannot_hold_is_rescued(replica: Replica, database: str, mysql9: Server, tmp_path: Path) -> None:
    options = {"config": str(replica.path), "table": f"{database}.t", "on_schema_change": "rescue"}
    stream = DrivenStream({**options, "name": "r", "store": f"sqlite:///{tmp_path}/r.db"})
    stream.run()
    for statement in (
        f"ALTER TABLE {database}.t MODIFY price VARCHAR(20), ADD COLUMN more VARBINARY(4), MODIFY id SMALLINT",
        f"INSERT INTO {database}.t VALUES ('n', 31, 'three', NULL, x'00ff'), ('n', 32, NULL, NULL, NULL)",
        f"ALTER TABLE {database}.t MODIFY note VARCHAR(5), MODIFY id BIGINT",
        f"INSERT INTO {database}.t VALUES ('n', 5000000000, NULL, NULL, NULL), ('n', 33, NULL, NULL, NULL)",
    ):
        mysql9.sql(statement)
    stream.run()

    names = ["one", "zwölf", "zwölf", "zwölf", "one", "one"]  # of the column that is dropped before the last row
    assert [*({"name": name} for name in names), None] == [_read(text) for text in stream.batches[0]["rescued"]]
    found = pa.concat_tables(stream.batches[1:]).select(["id", "price", "rescued"]).to_pylist()
    assert [
        {"id": 31, "price": None, "rescued": {"price": "three", "more": "00ff"}},
        {"id": 32, "price": None, "rescued": None},
        {"id": None, "price": None, "rescued": {"id": "5000000000"}},
        {"id": 33, "price": None, "rescued": None},
    ] == [{**row, "rescued": _read(row["rescued"])} for row in found]
    # A batch has the schema at the end, so that what the column could not hold before is rescued.
    batch = read_batch(options)
    assert {"name": "one", "price": "1.50"} == _read(batch["rescued"][0])
    with pytest.raises(TableStopped, match=r"price is decimal\(8,2\), the rows' varchar\(20\).*\"rescue\""):
        read_batch({**options, "on_schema_change": "fail"})
    assert len(EXPECTED) + 4 == read_batch({**options, "on_schema_change": "fail", "columns": "id,note"}).num_rows


def test_an_added_column_does_not_fit_a_stream_unless_it_was_told_which_columns(
    replica: Replica, database: str, mysql9: Server, tmp_path: Path
) -> None:
    table = {"config": str(replica.path), "table": f"{database}.t"}
    streams = {
        name: DrivenStream({**table, **more, "name": name, "store": f"sqlite:///{tmp_path}/{name}.db"})
        for name, more in (("all", {}), ("some", {"columns": "op,id"}), ("pinned", {"schema_at": "earliest"}))
    }
    for name in ("all", "some"):
        streams[name].run()
    mysql9.sql(f"ALTER TABLE {database}.t ADD COLUMN more INT")
    mysql9.sql(f"INSERT INTO {database}.t VALUES ('n', 40, NULL, NULL, 4)")

    with pytest.raises(TableStopped, match="column more was added"):
        streams["all"].run()
    for stream in streams.values():
        stream.run()
    assert {name: len(EXPECTED) + 1 for name in streams} == {name: stream.rows for name, stream in streams.items()}
    assert [4] == streams["all"].batches[-1]["more"].to_pylist()
    assert ["op", "id"] == streams["some"].batches[-1].schema.names
    assert "more" not in streams["pinned"].batches[-1].schema.names


def test_options_are_checked_by_name(spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"missing @ \$\.config"):
        spark.read.format("historian").option("tabel", "a.b").load()
    with pytest.raises(Exception, match=r"unknown option @ \$\.tabel"):
        spark.read.format("historian").option("tabel", "a.b").load()
