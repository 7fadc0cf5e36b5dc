"""A first configuration of a connector, from what a server holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectors.check.result import CheckResult
from connectors.readers.binlog.transport.connection import ServerAddress, answered
from connectors.tracking.capture.catalog import capture_catalog
from historian.errors import SourceError
from historian.names import TableName

if TYPE_CHECKING:
    from historian.schema.snapshots import Snapshot

__all__ = ["Draft", "draft"]

_SIZES = """
    SELECT table_schema, table_name, engine, table_rows, data_length + index_length FROM information_schema.tables
    WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')
"""
_GLOBS = re.compile(r"[*?!]")
_SNAPSHOT_ENGINES = ("InnoDB", "RocksDB", "TokuDB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a server holds, as a YAML text that :func:`connectors.config.load_config` takes.

    Attributes:
        name: of the connector.
        tables: of each database what is said of its tables, by name.
    """

    name: str
    address: ServerAddress
    flavor: str
    password: str
    tables: Mapping[str, Mapping[str, str]]

    def text(self, results: Sequence[CheckResult] = ()) -> str:
        """The text, with what checks say of it as comments."""
        lines = [
            "# Replicates a live server into Delta tables under ./lake. Paths are relative to this file.",
            f"#   historian check {self.name}.yaml && historian run {self.name}.yaml",
            "# All keys and their defaults: docs/reference/configuration.md.",
            *_checked(results),
            f"name: {self.name}",
            "source:",
            f"  type: {self.flavor}",
            f"  host: {_quoted(self.address.host)}",
            f"  port: {self.address.port}",
            f"  user: {_quoted(self.address.user)}             # needs REPLICATION SLAVE, REPLICATION CLIENT and SELECT",
            f"  password: {self.password}",
            "  tls: {mode: preferred}           # verify_identity where the server is not on this machine",
            "  start: initial                   # copies what the tables hold, then follows the log; or changes_only, earliest, a position",
            "  tables:                          # a pattern with ! before it leaves tables out",
        ]
        for database, tables in self.tables.items():
            lines.append(f"    - {_quoted(f'{database}.*')}")
            lines += [f"    #   {_printable(table)}: {said}" for table, said in tables.items()]
        lines += [
            "history:",
            f"  store: sqlite:///state/{self.name}.db",
            "sinks:",
            "  - type: delta",
            "    path: lake",
            '    changelog: "{database}_{table}_changes"',
            '    mirror: "{database}_{table}"',
            "run:",
            "  trigger: 2 seconds",
            "",
        ]
        return "\n".join(lines)


def draft(name: str, address: ServerAddress, password: str, databases: Iterable[str]) -> Draft:
    """A connector *name* of all tables in *databases*; of none: in all that the user sees.

    Args:
        password: as the YAML is to say it; the address has the real one.

    Raises:
        ConnectionLost: the server does not answer.
        SourceError: the user is refused, sees no table, or a database is not there.
    """
    with closing(address.connect()) as connection:
        catalog = capture_catalog(connection, 1, 1)
        with answered(str(address)), connection.cursor() as cursor:
            cursor.execute("SELECT VERSION()")
            ((version,),) = cursor.fetchall()
            cursor.execute(_SIZES)
            sizes = {TableName(d, t): (e, int(rows or 0), int(size or 0)) for d, t, e, rows, size in cursor.fetchall()}
    wanted = list(databases)
    found: dict[str, dict[str, str]] = {database: {} for database in wanted}
    for table, snapshot in sorted(catalog.tables.items()):
        if not wanted or table.database in found:
            found.setdefault(table.database, {})[table.table] = _said(snapshot, *sizes.get(table, ("", 0, 0)))
    empty = [database for database, tables in found.items() if not tables]
    if not found or empty:
        raise SourceError(
            "the user sees no tables to replicate",
            where=f"{address}{''.join(f', database {database}' for database in empty)}",
            expected="tables, and SELECT on them",
            found=f"databases with tables: {', '.join(sorted({t.database for t in catalog.tables})) or 'none'}",
            next_step="correct --database, or GRANT SELECT",
        )
    odd = [database for database in found if _GLOBS.search(database)]
    if odd:
        raise SourceError(
            "a database's name cannot stand in a pattern",
            where=odd[0],
            next_step="leave it out: name others with --database",
        )
    flavor = "mariadb" if "mariadb" in str(version).lower() else "mysql"
    return Draft(name=name, address=address, flavor=flavor, password=password, tables=found)


def _said(snapshot: Snapshot, engine: str, rows: int, size_bytes: int) -> str:
    key = [column.name for i in snapshot.primary_key if (column := snapshot.column_by_id(i)) is not None]
    said = [f"about {rows:,} rows, {size_bytes / 1e6:,.1f} MB"]
    said.append(
        f"key {', '.join(map(_printable, key))}" if key else "no primary key: a changelog only, copied by one SELECT"
    )
    if engine and engine not in _SNAPSHOT_ENGINES:
        said.append(f"{engine}: rows that change while they are copied are not exact")
    return "; ".join(said)


def _checked(results: Sequence[CheckResult]) -> list[str]:
    told = [result for result in results if result.status != "ok"]
    if not results:
        return []
    lines = [f"# historian check: {len(results) - len(told)} of {len(results)} checks are well."]
    for result in told:
        lines.append(f"#   {result.status}: {_printable(result.name)}: {_printable(result.found)}")
        lines += [f"#     expected: {_printable(result.expected)}"] if result.expected else []
        lines += [f"#     mend: {_printable(result.mend)}"] if result.mend else []
    return lines


def _quoted(text: str) -> str:
    """A YAML scalar that means *text*, whatever is in it."""
    return json.dumps(text.replace("${", "$${"))


def _printable(text: str) -> str:
    """*text* in one line of a comment."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
