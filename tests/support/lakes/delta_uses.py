"""What people do to a Delta table beside reading it, each step checked by value: on a disk and in S3."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["assert_usable"]

_ORPHAN = "part-left-by-a-crash.parquet"


def assert_usable(spark: SparkSession, path: str, key: str) -> None:
    """Fails unless the table's statistics skip files, and OPTIMIZE, VACUUM, MERGE, DELETE and ALTER work on it.

    The table has the same rows and columns at the end.

    Args:
        path: of a Delta table with rows.
        key: a column of integers or texts, all different.
    """
    table = _Table(spark, path)
    rows = table.rows()
    assert rows
    last = max(row[key] for row in rows.elements())
    _assert_skips(table, key, last)
    _assert_row_ids(table, sum(rows.values()))
    table.put(_ORPHAN)
    table.sql("OPTIMIZE {}")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    table.sql("VACUUM {} RETAIN 0 HOURS")
    assert table.data_files() == table.known_files()

    behind = f"`{key}` + 1" if isinstance(last, int) else f"`{key}` || '~'"
    columns = table.frame().columns
    shifted = ", ".join(f"{behind} AS `{name}`" if name == key else f"`{name}`" for name in columns)
    mine = f"FROM {table.name} WHERE `{key}` = {last!r}"
    spark.sql(f"SELECT * {mine} UNION ALL SELECT {shifted} {mine}").createOrReplaceTempView("news")
    table.sql(
        f"MERGE INTO {{}} t USING news s ON t.`{key}` = s.`{key}` WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    [row] = (row for row in rows if row[key] == last)
    assert table.rows() == rows + Counter({_shifted(row, key): 1})
    table.sql(f"DELETE FROM {{}} WHERE `{key}` > {last!r}")

    table.sql("ALTER TABLE {} ADD COLUMN made_by_someone INT")
    table.sql(f"ALTER TABLE {{}} RENAME COLUMN `{columns[-1]}` TO called_otherwise")
    news = table.frame()
    assert news.columns == [*columns[:-1], "called_otherwise", "made_by_someone"]
    assert Counter(map(tuple, news.collect())) == Counter((*row, None) for row in rows.elements())
    table.sql("ALTER TABLE {} DROP COLUMN made_by_someone")
    table.sql(f"ALTER TABLE {{}} RENAME COLUMN called_otherwise TO `{columns[-1]}`")
    assert table.rows() == rows


def _assert_skips(table: _Table, key: str, last: int | str) -> None:
    """Every file says which keys it has: none may have one behind the last, and one has that."""
    assert table.frame().where(f"`{key}` > {last!r}").inputFiles() == []
    assert len(table.frame().where(f"`{key}` = {last!r}").inputFiles()) == 1


def _assert_row_ids(table: _Table, count: int) -> None:
    properties = dict(table.sql("SHOW TBLPROPERTIES {}").collect())
    if properties.get("delta.enableRowTracking") == "true":
        assert table.frame().select("_metadata.row_id").distinct().count() == count


def _shifted(row: Any, key: str) -> Any:
    from pyspark.sql import Row

    return Row(**{**row.asDict(), key: row[key] + (1 if isinstance(row[key], int) else "~")})


class _Table:
    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path
        self.name = f"delta.`{path}`"

    def sql(self, statement: str) -> Any:
        return self._spark.sql(statement.format(self.name))

    def frame(self) -> DataFrame:
        return self._spark.read.format("delta").load(self._path)

    def rows(self) -> Counter[Any]:
        return Counter(self.frame().collect())

    def known_files(self) -> set[str]:
        return {name.rpartition("/")[2] for name in self.frame().inputFiles()}

    def data_files(self) -> set[str]:
        system, directory = self._place("")
        # Where columns have names of their own in files, Delta's writer puts these into directories.
        found, paths = system.listFiles(directory, True), []
        while found.hasNext():
            paths.append(str(found.next().getPath().toString()))
        return {path.rpartition("/")[2] for path in paths if path.endswith(".parquet") and "/_delta_log/" not in path}

    def put(self, name: str) -> None:
        system, place = self._place(f"/{name}")
        system.create(place).close()

    def _place(self, name: str) -> tuple[Any, Any]:
        java: Any = self._spark._jvm
        place = java.org.apache.hadoop.fs.Path(self._path + name)
        return place.getFileSystem(self._spark._jsc.hadoopConfiguration()), place
