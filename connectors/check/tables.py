"""Checks of the captured tables: their columns, keys, and changes that never reach the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from connectors.check.generated import generated_checks
from connectors.check.keys import key_checks
from connectors.check.result import CheckResult, failed, ok, shortened, warning
from connectors.check.rules import rule_checks
from connectors.check.server import ServerView
from connectors.check.shards import shard_checks
from connectors.check.sizes import size_checks
from connectors.config import SinkConfig
from connectors.config.filters import TableFilter
from connectors.tracking.capture.catalog import capture_catalog
from connectors.tracking.capture.shared import shared_captures
from connectors.tracking.cascades import logs_cascades
from connectors.tracking.sources import make_reader, server_address
from historian.ddl.parsing.context import version_number
from historian.errors import SourceError
from historian.names import TableName
from historian.schema.merge_tables import is_merge
from historian.schema.snapshots import Catalog, Snapshot
from historian.values.arrow_types import is_readable

__all__ = ["table_checks"]

_ACTIONS = ("CASCADE", "SET NULL", "SET DEFAULT")
_FOREIGN_KEYS = """
    SELECT constraint_schema AS child_database, table_name AS child, constraint_name AS name,
        unique_constraint_schema AS parent_database, referenced_table_name AS parent,
        delete_rule AS on_delete, update_rule AS on_update
    FROM information_schema.referential_constraints ORDER BY 1, 2, 3
"""


def table_checks(server: ServerView, sinks: Sequence[SinkConfig], *, copies: bool) -> Iterator[CheckResult]:
    """Checks of the tables that the filter takes in and the user can see, and of what *sinks* make of them.

    Args:
        copies: whether the connector reads rows from the server itself.
    """
    wanted = server.source.tables
    catalog = _captured(server)
    tables = [snapshot for name, snapshot in sorted(catalog.tables.items()) if wanted(name)]
    patterns = ", ".join(wanted.patterns)
    if tables:
        yield ok("tables", f"{len(tables)} match {patterns}")
    else:
        yield warning("tables", f"none of {len(catalog.tables)} matches {patterns}", "tables, unless they come later")
    if copies and tables:
        yield from size_checks(server, tables)
    yield from _left_out(server, list(catalog.tables))
    yield from _unreadable(tables)
    yield from _untold(server, catalog.unknown_tables)
    yield from key_checks(tables, sinks)
    yield from generated_checks(server, tables, sinks)
    yield from rule_checks(sinks, tables)
    yield from shard_checks(sinks, tables)
    yield from _cascades(server, copies=copies)


def _captured(server: ServerView) -> Catalog:
    """Connectors of one process that begin together look at the same tables, with which their histories begin too."""
    shared, key = shared_captures(server_address(server.source)), (1, 1, True)

    def ask() -> Catalog:
        return capture_catalog(server.connection, 1, 1)

    with closing(make_reader(server.source)) as reader:
        try:
            reader.near_end()
        except SourceError:  # another check tells why
            return shared.begun_from_now(key, ask)
        return shared.unchanged(key, reader.near_end, ask)


def _left_out(server: ServerView, names: Sequence[TableName]) -> Iterator[CheckResult]:
    """Tables that the patterns take in, but that have the names of a tool's own."""
    wanted = server.source.tables
    matching = TableFilter(wanted.patterns)
    found = sorted(str(name) for name in names if matching(name) and not wanted(name))
    if found:
        mend = "source.online_changes: name the tools that you use, or none with []"
        expected = "no table of your own with a name that a tool for online schema changes gives"
        yield warning("online schema changes", f"left out: {shortened(found)}", expected, mend)


def _unreadable(tables: Sequence[Snapshot]) -> Iterator[CheckResult]:
    for snapshot in tables:
        columns = [f"{c.name} {c.type}" for c in snapshot.columns if not is_readable(c.type)]
        if columns:
            name = f"column types of {snapshot.name}"
            mend = f'leave the table out: "!{snapshot.name}" in source.tables'
            yield failed(name, ", ".join(columns), "types that this release reads", mend)


def _untold(server: ServerView, unknown: Mapping[TableName, str]) -> Iterator[CheckResult]:
    """Tables of which the server does not tell all that rows need."""
    for name, reason in sorted(unknown.items()):
        if server.source.tables(name) and not is_merge(reason):
            mend = "source.schema: a file with the table's CREATE TABLE, or leave the table out"
            yield warning(f"schema of {name}", reason, "a schema that the server tells whole", mend)


def _cascades(server: ServerView, *, copies: bool) -> Iterator[CheckResult]:
    """Rows that a foreign key changes in a child are changed by the storage engine, which older servers do not log."""
    native = server.variable("innodb_native_foreign_keys") == "ON"
    if _may_log_cascades(server) and not native:
        yield ok("cascades", "are logged as row events by this server")
        return
    accepted = server.source.accept_cascades
    found = ok("cascades", "no captured table is the child of one")
    for row in server.rows(_FOREIGN_KEYS):
        child = TableName(str(row["child_database"]), str(row["child"]))
        actions = [f"{word} {row[key]}" for word, key in (("ON DELETE", "on_delete"), ("ON UPDATE", "on_update"))
                   if row[key] in _ACTIONS]  # fmt: skip
        if not actions or not server.source.tables(child):
            continue
        text = f"{row['name']} to {row['parent_database']}.{row['parent']} {' '.join(actions)}"
        if str(child) in accepted:
            yield ok(f"cascades into {child}", f"{text}, accepted in source.accept_cascades")
        elif copies:
            what = (
                f"{text}: the rows concerned, or all of its rows, are read again with each plan in which the parent's rows change;"
                " all of them at once, and without limits, where values do not tell which"
            )
            yield warning(f"cascades into {child}", what, _expected(server), _mend(child, str(row["name"])))
        else:
            yield failed(f"cascades into {child}", text, _expected(server), _mend(child, str(row["name"])))
        found = ok("cascades", "those listed")
    yield found


def _may_log_cascades(server: ServerView) -> bool:
    return logs_cascades(server.flavor, version_number(server.version_text))


def _expected(server: ServerView) -> str:
    if _may_log_cascades(server):
        return "innodb_native_foreign_keys=OFF: with ON the rows that it changes are not in the log"
    return "no action of that kind: the rows that it changes are not in the log"


def _mend(child: TableName, key: str) -> str:
    database, table = (part.replace("`", "``") for part in child)
    return (
        f"ALTER TABLE `{database}`.`{table}` DROP FOREIGN KEY `{key}`, and add it again without the action;"
        f' or read its rows again each time: source.start: initial; or live with a wrong copy: source.accept_cascades: ["{child}"]'
    )
