"""Tables of lakes read from their files in this process, as the sink itself reads them: for comparisons of many tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from lakes.deletion_vectors import deleted_rows
from lakes.lake import Lake
from sinks.delta.log.kernel import Kernel
from sinks.delta.log.table_view import TableView
from sinks.delta.rewrite.held_rows import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["HeldLake", "held_table", "spark_table"]


def spark_table(spark: SparkSession, path: str) -> pa.Table:
    """A table's rows as Spark reads them; through Arrow, which keeps time zones apart from their absence."""
    return spark.read.format("delta").load(path).toArrow()


def held_table(kernel: Kernel, path: str) -> pa.Table:
    """A table's rows, columns in order, without those that are marked as deleted."""
    view = kernel.view(path)
    assert view is not None
    fields, files = view.schema().fields, view.held_files()
    schema = pa.schema([(field.physical, field.arrow) for field in fields])
    vectors = _vectors(view) if any(file.has_deletions for file in files) else {}
    parts = [schema.empty_table()]
    for file in files:
        rows = read(file.path, schema)
        if file.has_deletions:
            stays = np.ones(rows.num_rows, bool)
            stays[deleted_rows(Path(path), vectors[file.path])] = False
            rows = rows.filter(pa.array(stays))
        parts.append(rows)
    return pa.concat_tables(parts).rename_columns([field.name for field in fields])


def _vectors(view: TableView) -> dict[str, Any]:
    """The deletion vectors of a table's files: the product's own view tells only who has one."""
    told = (json.loads(view.kernel.classes.row_json(row)) for row in view._files())
    return {f"{view.path}/{unquote(file['path'])}": file.get("deletionVector") for file in told}


class HeldLake(Lake):
    """The same lake, and the same comparisons, by files; :meth:`read_by_spark` is for what is to be read by Spark."""

    def mirror(self, directory: str) -> list[dict[str, Any]]:
        return held_table(self.kernel, str(self.path / directory)).to_pylist()

    def raw_log(self, directory: str) -> list[dict[str, Any]]:
        return sorted(self.mirror(directory), key=lambda row: row["offset"])

    def read_all_by_spark(self) -> None:
        """Checks that of every target."""
        locations = self.locations().values()
        self.read_by_spark(*sorted({name for h in locations for name in (h.changelog, h.mirror, h.history) if name}))

    def read_by_spark(self, *directories: str) -> None:
        """Checks that Spark reads of those tables what their files hold."""
        for directory in directories:
            assert sorted(map(repr, Lake.mirror(self, directory))) == sorted(map(repr, self.mirror(directory)))
