"""Examples of the pages run as they stand there, on a server's tables and the lake that a run makes of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server
from replicas.tracked import Tracked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Row, SparkSession

ROOT = Path(__file__).parents[2]
HEAD = """
name: shop
source: {{type: mysql, host: {host}, port: {port}, user: {user}, password: {password}, tables: {tables}}}
"""
ORDERS = "id INT PRIMARY KEY, total DECIMAL(10, 2)"


def examples(page: str, language: str) -> list[str]:
    """The fenced blocks of a page in a language."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def configured(server: Server, directory: Path, sinks: str, *tables: str) -> Path:
    """A configuration of the server with the page's *sinks*."""
    head = HEAD.format(
        host=server.host, port=server.port, user=server.user, password=server.password, tables=list(tables)
    )
    file = directory / "shop.yaml"
    file.write_text(f"{head}{sinks}")
    return file


@pytest.fixture
def shops(mysql9: Server) -> Iterator[Server]:
    """A server with the databases that the pages speak of, and nothing before them in its log."""
    mysql9.clear()
    databases = ("shop", "shop_1", "shop_2")
    for database in databases:
        mysql9.sql(f"CREATE DATABASE {database}")
        mysql9.sql(f"CREATE TABLE {database}.orders ({ORDERS})")
        mysql9.sql(f"INSERT INTO {database}.orders VALUES (1, 12.50), (2, 9.99)")
    mysql9.sql("CREATE TABLE shop.items (id INT PRIMARY KEY)")
    yield mysql9
    for database in databases:
        mysql9.sql(f"DROP DATABASE {database}")


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/use-from-spark.md"])
def test_a_table_is_read_from_spark(page: str, shops: Server, spark: SparkSession, tmp_path: Path) -> None:
    configured(shops, tmp_path, "", "shop.*")
    names: dict[str, Any] = {"spark": spark}

    for block in examples(page, "python"):
        exec(compile(block.replace('"shop.yaml"', f'"{tmp_path}/shop.yaml"'), page, "exec"), names)

    assert [1, 2] == sorted(row.id for row in names["rows"].collect())


def test_a_lake_is_asked_as_the_pages_say(
    shops: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sinks = "sinks: [{type: delta, path: lake, history: '{database}_{table}_history'}]"
    config = configured(shops, tmp_path, sinks, "shop.*")
    monkeypatch.chdir(tmp_path)
    assert {} == run(load_config(config), once=True, spark=spark)
    names: dict[str, Any] = {"spark": spark}

    (cut,) = examples("docs/how-to/read-a-consistent-cut.md", "python")
    exec(compile(cut, "read-a-consistent-cut.md", "exec"), names)
    (changes,) = (b for b in examples("docs/reference/history-format.md", "python") if "readStream" in b)
    exec(compile(changes.replace('"lake/', f'"{tmp_path}/lake/'), "history-format.md", "exec"), names)
    plans, versions = (
        _asked(spark, page, tmp_path) for page in ("docs/reference/lake.md", "docs/how-to/write-to-delta.md")
    )

    assert (2, 0) == (names["orders"].count(), names["items"].count())
    assert names["changes"].isStreaming
    assert [row.plan for row in plans] == sorted(row.plan for row in plans)
    assert [(1, 0), (2, 1)] == sorted((row.id, row.from_offset) for row in versions)


def _asked(spark: SparkSession, page: str, directory: Path) -> list[Row]:
    """What the page's first query of a lake gives. The tests' Spark started in another directory, so paths are made absolute."""
    query = next(block for block in examples(page, "sql") if "delta.`lake/" in block)
    return spark.sql(query.replace("`lake/", f"`{directory}/lake/")).collect()


def test_shards_are_what_the_page_queries(shops: Server, spark: SparkSession, tmp_path: Path) -> None:
    page = "docs/how-to/merge-shards.md"
    (sinks,), (query,) = examples(page, "yaml"), examples(page, "sql")
    config = load_config(configured(shops, tmp_path, sinks, "shop_*.orders"))
    assert {} == run(config, once=True, spark=spark)

    mirror = spark.read.format("delta").load(f"{config.sinks[0].path}/shop_orders")

    assert sorted(shops.sql(query)) == sorted(map(tuple, mirror.select("shard", "id", "total").collect()))


def test_rows_have_the_columns_of_their_time(mysql9: Server, tmp_path: Path) -> None:
    (statement,) = examples("docs/explanation/exactness.md", "sql")
    mysql9.sql("CREATE DATABASE exactness")
    tracked = Tracked.of(mysql9, tmp_path, "exactness")
    tracked.begin()
    for text in ("CREATE TABLE t (id INT, a INT, b INT)", "INSERT INTO t VALUES (2, 20, 200)", statement):
        with mysql9.connect() as connection, connection.cursor() as cursor:
            cursor.execute("USE exactness")
            cursor.execute(text)
            connection.commit()

    with tracked.tracker() as tracker:
        assert {"t": [("+A", {"id": 2, "a": 20, "b": 200})]} == tracked.news(tracker)
    columns = (
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'exactness' ORDER BY ordinal_position"
    )
    assert ["c", "id", "a"] == [name for (name,) in mysql9.sql(columns)]
    mysql9.sql("DROP DATABASE exactness")


def test_a_table_that_keeps_its_past_has_the_rows_of_the_present(mariadb118: Server, tmp_path: Path) -> None:
    (script,) = (block for block in examples("docs/reference/row-images.md", "sql") if "SYSTEM VERSIONING" in block)
    mariadb118.sql("CREATE DATABASE versioned")
    tracked = Tracked.of(mariadb118, tmp_path, "versioned")
    tracked.begin()
    with mariadb118.connect() as connection, connection.cursor() as cursor:
        cursor.execute("USE versioned")
        for line in script.splitlines():
            cursor.execute(line.partition(";")[0])
            connection.commit()

    with tracked.tracker() as tracker:
        ops = [op for op, _ in tracked.news(tracker)["t"]]
    assert re.findall(r"[+-][ARC]\b", script) == ops
    mariadb118.sql("DROP DATABASE versioned")
