"""A lake whose tables are read from their files in this process, as the sink itself reads them: for comparisons of many tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lake import Lake
from sinks.delta.kernel import Kernel
from sinks.delta.rewrite import read

__all__ = ["HeldLake", "held_rows", "held_table"]


def held_table(kernel: Kernel, path: str) -> pa.Table | None:
    """A table's rows, columns in order; None where rows of its files are marked as deleted, which Spark can read."""
    view = kernel.view(path)
    assert view is not None
    fields, files = view.schema().fields, view.held_files()
    if any(file.has_deletions for file in files):
        return None
    schema = pa.schema([(field.physical, field.arrow) for field in fields])
    rows = pa.concat_tables([schema.empty_table(), *(read(file.path, schema) for file in files)])
    return rows.rename_columns([field.name for field in fields])


def held_rows(lake: Lake, directory: str) -> list[dict[str, Any]]:
    """A table's rows, columns in order; by Spark where rows of its files are marked as deleted."""
    rows = held_table(lake.kernel, str(lake.path / directory))
    return Lake.mirror(lake, directory) if rows is None else rows.to_pylist()


class HeldLake(Lake):
    """The same lake, and the same comparisons, without Spark; :meth:`read_by_spark` is for what is to be read by it."""

    def mirror(self, directory: str) -> list[dict[str, Any]]:
        return held_rows(self, directory)

    def raw_log(self, directory: str) -> list[dict[str, Any]]:
        return sorted(held_rows(self, directory), key=lambda row: row["offset"])

    def read_all_by_spark(self) -> None:
        """Checks that of every target."""
        homes = self.homes().values()
        self.read_by_spark(*sorted({name for h in homes for name in (h.changelog, h.mirror, h.history) if name}))

    def read_by_spark(self, *directories: str) -> None:
        """Checks that Spark reads of those tables what their files hold."""
        for directory in directories:
            assert sorted(map(repr, Lake.mirror(self, directory))) == sorted(map(repr, held_rows(self, directory)))
