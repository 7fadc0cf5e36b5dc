"""What a Parquet sink is told: where its files are and how its tables are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from historian.errors import ConfigError
from historian.names import TableName
from sinks.contract.tables import tells_apart

__all__ = ["ParquetSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetSettings:
    """Settings of a Parquet sink.

    Attributes:
        path: directory or URL (as ``pyarrow.fs`` reads them) that holds a directory for each table.
        changelog: name of a table's directory, with ``{database}`` and ``{table}``.
    """

    path: str
    changelog: str = "{database}_{table}_changes"
    mirror: ClassVar[None] = None
    history: ClassVar[None] = None
    shape: ClassVar[str] = ""
    key: ClassVar[tuple[str, ...]] = ()
    keyless: ClassVar[str] = "changelog"

    def __post_init__(self) -> None:
        if not tells_apart(self.changelog):
            problem = f"expected a name with {{database}} and {{table}} @ $.changelog (got {self.changelog!r})"
            raise ConfigError("a Parquet sink that cannot work", problems=(problem,), where=self.path)

    def for_table(self, name: TableName) -> ParquetSettings:  # noqa: ARG002 as other sinks are asked
        """The settings of a table: the same for all."""
        return self
