"""The examples of docs/reference/conversions.md run, one after another as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from historian.changelog.operations import Op
from historian.changelog.validation import Profile
from models.changelogs import changelog_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "conversions.md").read_text()


def _examples(kind: str) -> str:
    blocks = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 2
    return "\n".join(blocks)


def _run(code: str, **given: Any) -> None:
    exec(compile(code, "docs/reference/conversions.md", "exec"), dict(given))


def test_the_examples_in_arrow_run() -> None:
    _run(_examples("python"))


def test_the_examples_in_spark_run(spark: SparkSession) -> None:
    rows = [(Op.APPEND, "1", 0, b"x", None), (Op.CORRECT_FROM, "1", 0, b"x", None)]
    rows += [(Op.CORRECT_TO, "1", 0, b"y", None), (Op.RETRACT, "1", 0, b"y", None)]
    table = changelog_of([*rows], Profile.BINLOG)
    changes = spark.createDataFrame(table.set_column(1, "op", table.column("op").cast(pa.int32())))
    lake = 'spark.read.format("delta").load("lake/shop_orders_changes")'
    code = _examples('python title="Spark"')

    assert lake in code
    _run(code.replace(lake, "given"), spark=spark, given=changes)
