"""What the compiled walk over messages of one writer's schema does, one instruction after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from connectors.readers.kafka.kernels import avro_layout as avro

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.avro.writers import Writer

__all__ = ["Unwalkable", "instructions_of"]

_FACTS = {
    "op": avro.OPERATION,
    "source.db": avro.DATABASE_NAME,
    "source.table": avro.TABLE_NAME,
    "source.ts_us": avro.TIME_US,
    "source.ts_ms": avro.TIME_MS,
    "source.gtid": avro.GTID,
    "source.file": avro.FILE,
    "source.pos": avro.OFFSET,
    "source.row": avro.EVENT_ROW,
}
_SERVER = "source.server_id"
_FACTS_WITH_SERVER = {path: word for path, word in _FACTS.items() if word != avro.EVENT_ROW} | {_SERVER: avro.EVENT_ROW}
"""Of a walk that finds the server's id in the place of the row in the event, which the order of a log does not need."""
_SNAPSHOT = {"source.snapshot": avro.SNAPSHOT}
_TEXT, _INTEGER = ("string",), ("int", "long")
_FACT_TYPES = {
    "op": _TEXT,
    "source.db": _TEXT,
    "source.table": _TEXT,
    "source.ts_us": _INTEGER,
    "source.ts_ms": _INTEGER,
}
_PLACE_TYPES = {
    "source.gtid": _TEXT,
    "source.file": _TEXT,
    "source.pos": _INTEGER,
    "source.row": _INTEGER,
    _SERVER: _INTEGER,
}
"""Of another type they say no place in a log, as other servers' do not."""
_NEEDED = ("op", "source.db", "source.table")
_ROWS = {"before": avro.BEFORE, "after": avro.AFTER}
_FIXED = {"float": (4, avro.FLOAT), "double": (8, avro.DOUBLE)}
_CODES = {
    "int": avro.LONG,
    "long": avro.LONG,
    "boolean": avro.BOOLEAN,
    "string": avro.STRING,
    "bytes": avro.BYTES,
}
_NOWHERE = -1
_DEEPEST = 8
_MOST_INSTRUCTIONS = 10_000


class Unwalkable(Exception):
    """A schema has a type that the walk does not know."""


class _Assembler:
    """Makes the instructions of an envelope that find its *facts*, and its columns where these are *wanted*."""

    def __init__(self, writer: Writer, facts: Mapping[str, int], *, wanted: bool) -> None:
        self._names, self._facts, self._wanted = writer.names, facts, wanted
        self.code: list[list[int]] = []
        self.slots: dict[str, int] = {}
        self._found = set[str]()
        for field in writer.parsed["fields"]:
            self._part(str(field["name"]), field["type"])
        self._add(avro.END)
        if not {*_NEEDED, *_ROWS} <= self._found:
            raise Unwalkable("no envelope of a change")

    def _add(self, code: int, slot: int = _NOWHERE, argument: int = 0) -> list[int]:
        self.code.append([code, slot, argument, 0])
        if len(self.code) > _MOST_INSTRUCTIONS:
            raise Unwalkable("too many fields")
        return self.code[-1]

    def _part(self, name: str, kind: Any) -> None:
        """A field of the envelope."""
        self._found.add(name)
        if name in _ROWS:
            self._optional(kind, avro.META + _ROWS[name], lambda row: self._row(row, _ROWS[name]))
        elif name == "source":
            self._optional(kind, avro.META + avro.SOURCE, self._source)
        else:
            self._fact(name, kind)

    def _fact(self, path: str, kind: Any) -> None:
        """A part of the envelope that says what a message is, or says nothing of it."""
        if path not in self._facts or (path in _PLACE_TYPES and not self._is_of(kind, _PLACE_TYPES[path])):
            self._value(kind, _NOWHERE, 0)
            return
        if path in _FACT_TYPES and not self._is_of(kind, _FACT_TYPES[path]):
            raise Unwalkable(f"{path} of another type")
        self._value(kind, avro.META + self._facts[path], 0)

    def _is_of(self, kind: Any, names: tuple[str, ...]) -> bool:
        return all(self._name_of(each) in ("null", *names) for each in (kind if isinstance(kind, list) else [kind]))

    def _row(self, kind: Any, which: int) -> None:
        record = self._record(kind)
        self._add(avro.ROW, argument=which)
        slots = {str(field["name"]): number for number, field in enumerate(record["fields"])}
        if self.slots and slots != self.slots:
            raise Unwalkable("rows before and after of different columns")
        self.slots = slots
        for field in record["fields"]:
            self._value(field["type"], slots[str(field["name"])] if self._wanted else _NOWHERE, 0)

    def _source(self, kind: Any) -> None:
        for field in self._record(kind)["fields"]:
            path = f"source.{field['name']}"
            self._found.add(path)
            self._fact(path, field["type"])

    def _record(self, kind: Any) -> Mapping[str, Any]:
        found = self._resolved(kind)
        if not isinstance(found, dict) or found["type"] != "record":
            raise Unwalkable("no record")
        return found

    def _resolved(self, kind: Any) -> Any:
        return self._names.get(kind, kind) if isinstance(kind, str) else kind

    def _name_of(self, kind: Any) -> Any:
        found = self._resolved(kind)
        return found["type"] if isinstance(found, dict) else found

    def _optional(self, kind: Any, slot: int, then: Any) -> None:
        """A value, or null where the type is a union with it."""
        if not isinstance(kind, list):
            then(kind)
            return
        if len(kind) != 2 or "null" not in kind:
            raise Unwalkable("a union of several types")
        null = kind.index("null")
        union = self._add(avro.UNION, slot, 2 * null)
        then(kind[1 - null])
        union[avro.JUMP] = len(self.code)

    def _value(self, kind: Any, slot: int, depth: int) -> None:
        self._optional(kind, slot, lambda found: self._plain(found, slot, depth))

    def _plain(self, kind: Any, slot: int, depth: int) -> None:
        found = self._resolved(kind)
        name = self._name_of(kind)
        if depth > _DEEPEST:
            raise Unwalkable("a type within itself")
        if name in _CODES:
            self._add(_CODES[name], slot)
        elif name in _FIXED:
            size, code = _FIXED[name]
            self._add(avro.FIXED, slot, size << avro.FIXED_KIND_BITS | code)
        elif name == "fixed":
            self._add(avro.FIXED, slot, int(found["size"]) << avro.FIXED_KIND_BITS | avro.BODY)
        elif name == "record":
            if slot >= 0:
                self._add(avro.NEST)
            for field in found["fields"]:
                self._value(field["type"], _NOWHERE, depth + 1)
            if slot >= 0:
                self._add(avro.NESTED, slot)
        elif name == "array" and found["items"] in _FIXED:
            self._add(avro.ITEMS, slot, _FIXED[found["items"]][0])
        else:
            raise Unwalkable(f"a type {name}")


def instructions_of(
    writer: Writer, *, with_server: bool = False, with_snapshot: bool = False
) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The instructions of an envelope, and by name the column that a field of its rows goes to.

    Args:
        with_server: the server's id goes where the row in the event does, and columns go nowhere.
        with_snapshot: what a message says of a snapshot is found, too.

    Raises:
        Unwalkable: its messages are read one by one.
    """
    try:
        facts = (_FACTS_WITH_SERVER if with_server else _FACTS) | (_SNAPSHOT if with_snapshot else {})
        made = _Assembler(writer, facts, wanted=not with_server)
    except (KeyError, TypeError, ValueError) as error:
        raise Unwalkable(repr(error)) from None
    return np.array(made.code, np.int64), {} if with_server else made.slots
