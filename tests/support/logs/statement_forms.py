"""Statements and rows as messages of formats that have both: Canal's, Maxwell's, TiCDC's and Debezium's."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from typing import Any

from logs.source_logs import STATED, compact, source_at
from logs.topic_streams import Message

__all__ = ["FORMS", "Row", "StatementForm"]

Row = dict[str, int | None]


class StatementForm:
    """Messages of Canal; other formats differ from it.

    Attributes:
        broadcasts: each partition has each statement; else the first one has it.
        empties: it has TRUNCATE.
        infers: what columns a table has is told by its rows, so that a partition knows late which ones it has no more.
        least_grain_ms: times are told in steps of so much at least.
        of_statements: the topic of statements; "": they stand among rows.
    """

    format = "canal_json"
    broadcasts = False
    empties = True
    infers = False
    least_grain_ms = 1
    of_statements = ""

    def statement(self, time_ms: int, table: str, kind: str, sql: str, _columns: Iterable[str]) -> Message:
        """The message of a statement about *table*, of a *kind* in Canal's words, which leaves the table with *_columns*."""
        told = {
            "database": "shop",
            "table": table,
            "type": kind,
            "isDdl": True,
            "es": time_ms,
            "sql": sql,
            "data": None,
        }
        return None, json.dumps(told | self.beside(time_ms)).encode()

    def row(self, time_ms: int, table: str, before: Row | None, after: Row | None) -> Message:
        """The message of a change."""
        whole = after if after is not None else before
        assert whole is not None
        kind = "INSERT" if before is None else "DELETE" if after is None else "UPDATE"
        texts = {name: None if value is None else str(value) for name, value in whole.items()}
        told: dict[str, Any] = {"database": "shop", "table": table, "type": kind, "isDdl": False, "es": time_ms}
        told |= {"pkNames": ["id"], "mysqlType": dict.fromkeys(whole, "int"), "data": [texts], "old": None}
        if before is not None and after is not None:
            changed = {name: value for name, value in before.items() if value != after[name]}
            told["old"] = [{name: None if value is None else str(value) for name, value in changed.items()}]
        return None, json.dumps(told | self.beside(time_ms)).encode()

    def beside(self, _time_ms: int) -> dict[str, Any]:
        """What each message has besides."""
        return {}


class _Ticdc(StatementForm):
    """TiCDC's canal-json: statements in partition 0, too."""

    format = "ticdc_canal_json"

    def beside(self, time_ms: int) -> dict[str, Any]:
        return {"_tidb": {"commitTs": time_ms << 18}}


class _Maxwell(StatementForm):
    """Messages of Maxwell, which has none of TRUNCATE."""

    format = "maxwell"
    empties = False
    infers = True
    least_grain_ms = 1000

    def statement(self, time_ms: int, table: str, kind: str, sql: str, _columns: Iterable[str]) -> Message:
        kind = {"CREATE": "create", "ERASE": "drop"}.get(kind, "alter")
        told = {"type": f"table-{kind}", "database": "shop", "table": table, "ts": time_ms, "sql": sql}
        return None, json.dumps(told).encode()

    def row(self, time_ms: int, table: str, before: Row | None, after: Row | None) -> Message:
        whole = after if after is not None else before
        kind = "insert" if before is None else "delete" if after is None else "update"
        told: dict[str, Any] = {"database": "shop", "table": table, "type": kind, "ts": time_ms // 1000}
        told |= {"primary_key_columns": ["id"], "data": whole}
        if before is not None and after is not None:
            told["old"] = {name: value for name, value in before.items() if value != after[name]}
        return None, json.dumps(told).encode()


class _Open(StatementForm):
    """TiCDC's open protocol: statements in each partition."""

    format = "ticdc_open_protocol"
    broadcasts = True

    def statement(self, time_ms: int, table: str, _kind: str, sql: str, _columns: Iterable[str]) -> Message:
        return self._framed(time_ms, table, 2, {"q": sql, "t": 3})

    def row(self, time_ms: int, table: str, before: Row | None, after: Row | None) -> Message:
        sides = {"u": after, "p": before} if after is not None else {"d": before}
        told = {side: self._typed(row) for side, row in sides.items() if row is not None}
        return self._framed(time_ms, table, 1, told)

    def _typed(self, row: Row) -> dict[str, Any]:
        key = {"h": True, "f": 11}
        return {name: {"t": 3, **(key if name == "id" else {"f": 65}), "v": value} for name, value in row.items()}

    def _framed(self, time_ms: int, table: str, kind: int, told: dict[str, Any]) -> Message:
        key = json.dumps({"ts": time_ms << 18, "scm": "shop", "tbl": table, "t": kind}).encode()
        value = json.dumps(told).encode()
        return struct.pack(">QQ", 1, len(key)) + key, struct.pack(">Q", len(value)) + value


class _Simple(StatementForm):
    """TiCDC's simple protocol: statements in each partition, with the schemas that rows name by version."""

    format = "ticdc_simple"
    broadcasts = True

    def __init__(self) -> None:
        self._count = 0
        self._versions: dict[str, int] = {}

    def statement(self, time_ms: int, table: str, kind: str, sql: str, columns: Iterable[str]) -> Message:
        self._count += 1
        self._versions[table] = self._count
        whole = {"mysqlType": "int", "charset": "binary", "collate": "binary", "length": 11}
        told: dict[str, Any] = {"version": 1, "type": kind, "sql": sql, "commitTs": time_ms << 18, "buildTs": 1}
        told["tableSchema"] = {
            "schema": "shop",
            "table": table,
            "tableID": 1,
            "version": self._count,
            "columns": [
                {"name": name, "dataType": whole, "nullable": name != "id", "default": None} for name in columns
            ],
            "indexes": [{"name": "primary", "unique": True, "primary": True, "nullable": False, "columns": ["id"]}],
        }
        return None, json.dumps(told).encode()

    def row(self, time_ms: int, table: str, before: Row | None, after: Row | None) -> Message:
        kind = "INSERT" if before is None else "DELETE" if after is None else "UPDATE"
        told: dict[str, Any] = {"version": 1, "database": "shop", "table": table, "tableID": 1, "type": kind}
        told |= {"commitTs": time_ms << 18, "buildTs": 1, "schemaVersion": self._versions[table]}
        for side, row in (("data", after), ("old", before)):
            if row is not None:
                told[side] = {name: None if value is None else str(value) for name, value in row.items()}
        return None, json.dumps(told).encode()


class _Debezium(StatementForm):
    """Debezium's JSON: statements in a topic of their own, and each place in the source's log."""

    format = "debezium_json"
    of_statements = STATED

    def __init__(self) -> None:
        self._count = 9

    def statement(self, time_ms: int, table: str, _kind: str, sql: str, _columns: Iterable[str]) -> Message:
        told = {"source": self._source(time_ms, table), "databaseName": "shop", "ddl": sql}
        return None, json.dumps(told).encode()

    def row(self, time_ms: int, table: str, before: Row | None, after: Row | None) -> Message:
        whole = after if after is not None else before
        assert whole is not None
        fields = [{"type": "int32", "optional": name != "id", "field": name} for name in whole]
        sides = [{"type": "struct", "optional": True, "fields": fields, "field": side} for side in ("before", "after")]
        op = "c" if before is None else "d" if after is None else "u"
        told = {"before": before, "after": after, "source": self._source(time_ms, table), "op": op, "ts_ms": 1}
        key = {"schema": {"type": "struct", "fields": fields[:1]}, "payload": {"id": whole["id"]}}
        return compact(key), compact({"schema": {"type": "struct", "fields": sides}, "payload": told})

    def _source(self, time_ms: int, table: str) -> dict[str, Any]:
        self._count += 1
        told = source_at(self._count, 0) | {"ts_ms": time_ms, "table": table}
        return told if time_ms % 1000 == 0 else told | {"ts_us": 1000 * time_ms + self._count % 1000}


FORMS: dict[str, type[StatementForm]] = {
    each.format: each for each in (StatementForm, _Ticdc, _Maxwell, _Open, _Simple, _Debezium)
}
