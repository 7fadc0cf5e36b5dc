"""What leads the compiled walk over messages of one writer's schema: its instructions, and the rows that come of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from connectors.readers.kafka.kernels import avro_layout as avro
from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.kernels.avro_walk import locate_avro
from connectors.readers.kafka.kernels.sources import source_places
from historian.changelog.operations import Op

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.avro.writers import Writer
    from connectors.readers.kafka.located.programs import Known
    from connectors.readers.kafka.messages.batch import Texts

__all__ = ["AvroProgram", "Unwalkable", "instructions_of"]

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
_PLACE_SLOTS = np.arange(avro.PLACE_WORDS, dtype=np.int64)
_DEEPEST = 8
_MOST_INSTRUCTIONS = 10_000


class Unwalkable(Exception):
    """A schema has a type that the walk does not know."""


class _Assembler:
    """Makes the instructions of an envelope."""

    def __init__(self, writer: Writer) -> None:
        self._names = writer.names
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
        if path not in _FACTS or (path in _PLACE_TYPES and not self._is_of(kind, _PLACE_TYPES[path])):
            self._value(kind, _NOWHERE, 0)
            return
        if path in _FACT_TYPES and not self._is_of(kind, _FACT_TYPES[path]):
            raise Unwalkable(f"{path} of another type")
        self._value(kind, avro.META + _FACTS[path], 0)

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
            self._value(field["type"], slots[str(field["name"])], 0)

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


def instructions_of(writer: Writer) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The instructions of an envelope, and by name the column that a field of its rows goes to.

    Raises:
        Unwalkable: its messages are read one by one.
    """
    try:
        made = _Assembler(writer)
    except (KeyError, TypeError, ValueError) as error:
        raise Unwalkable(repr(error)) from None
    return np.array(made.code, np.int64), made.slots


class AvroProgram:
    """Leads the walk over messages of one writer's schema and table, and holds the rows of the last one. Not for several threads at once.

    *lone_updates*: an update without the row before it is its row alone. A :class:`connectors.readers.kafka.located.programs.RowProgram`.
    """

    def __init__(self, writer: Writer, known: Known, *, lone_updates: bool = False) -> None:
        self.known, self._writer = known, writer
        self._code, self.slots = instructions_of(writer)
        self._facts = np.zeros(avro.META_WORDS, np.int64)
        self._state = np.zeros(avro.STATE_WORDS, np.int64)
        self._names = [
            np.frombuffer(name.encode() + b"\0", np.uint8) for name in (known.table.database, known.table.table)
        ]
        state = self._state
        state[avro.HEADER_BYTES] = len(known.prefix)
        state[avro.INSTRUCTIONS], state[avro.FACTS] = self._code.ctypes.data, self._facts.ctypes.data
        state[avro.COLUMNS] = len(self.slots)
        state[avro.LONE_UPDATES] = int(lone_updates)
        for word, name in ((avro.DATABASE, self._names[0]), (avro.TABLE, self._names[1])):
            state[word], state[word + 1] = name.ctypes.data, len(name) - 1
        self._room(64)

    def _room(self, messages: int) -> None:
        self._messages = messages
        self._images = np.zeros(2 * messages * max(1, len(self.slots)), np.int64)
        self.row_images = np.zeros(2 * messages, np.int64)
        self.row_messages = np.zeros(2 * messages, np.int64)
        self.row_ops = np.zeros(2 * messages, np.uint8)
        self.row_ordinals = np.zeros(2 * messages, np.int64)
        self._row_places = np.zeros((2 * messages, avro.PLACE_WORDS), np.int64)
        for word, array in (
            (avro.IMAGES, self._images),
            (avro.ROW_IMAGE, self.row_images),
            (avro.ROW_MESSAGE, self.row_messages),
            (avro.ROW_OP, self.row_ops),
            (avro.ROW_PLACE, self._row_places),
        ):
            self._state[word] = array.ctypes.data

    def locate(
        self,
        texts: Texts,
        todo: NDArray[np.int64],
        status: NDArray[np.uint8],
        times: NDArray[np.int64],
    ) -> None:
        """Walks the messages *todo* of *texts*; those of the table have their rows behind, see ``rows``."""
        if len(todo) > self._messages:
            self._room(2 * len(todo))
        state = self._state
        state[avro.BUFFER], state[avro.STARTS] = texts.address, texts.starts.ctypes.data
        state[avro.TODO], state[avro.TODO_COUNT] = todo.ctypes.data, len(todo)
        state[avro.STATUS], state[avro.TIMES] = status.ctypes.data, times.ctypes.data
        state[avro.IMAGES_USED] = state[avro.ROWS_USED] = 0
        locate_avro(state.ctypes.data)

    @property
    def rows(self) -> int:
        """How many rows the messages of the last walk have."""
        return int(self._state[avro.ROWS_USED])

    @property
    def images(self) -> int:
        """The address of the row images."""
        return int(self._images.ctypes.data)

    def places(self, texts: Texts, meta: NDArray[np.int64], begin: int, end: int) -> NDArray[np.int64]:  # noqa: ARG002 as others
        """See :class:`connectors.readers.kafka.located.programs.RowProgram`."""
        out = np.zeros((end - begin, 6), np.int64)
        rows = np.arange(begin, end, dtype=np.int64)
        at_values = (texts.address, self._row_places.ctypes.data, avro.PLACE_WORDS)
        source_places(*at_values, rows.ctypes.data, len(rows), _PLACE_SLOTS.ctypes.data, out.ctypes.data)
        return out

    def ends(self, texts: Texts, begin: int, end: int) -> NDArray[np.int64]:
        """See :class:`connectors.readers.kafka.located.programs.RowProgram`."""
        words = self._row_places[begin:end, 0]
        behind = (words & at.START_MASK) + (words >> at.START_BITS & at.LENGTH_MASK)
        found: NDArray[np.int64] = behind - texts.starts[self.row_messages[begin:end]]
        return found

    def values(self, texts: Texts, rows: NDArray[np.intp], column: int) -> list[Any]:
        """The values of a column in *rows* as the library reads them, see :class:`connectors.readers.kafka.located.programs.RowProgram`."""
        name = next(each for each, slot in self.slots.items() if slot == column)
        words = self._images[self.row_images[rows] * len(self.slots) + column].view(np.uint64)
        kinds = (words >> np.uint64(at.KIND_AT)).tolist()
        found = list[Any]()
        for row, kind in zip(rows.tolist(), kinds, strict=True):
            if kind <= at.NULL:
                found.append(None)
                continue
            begin, end = texts.starts[int(self.row_messages[row]) :][:2]
            record = self._writer.value(texts.between(int(begin), int(end)), "a message")
            is_former = self.row_ops[row] in (Op.RETRACT, Op.CORRECT_FROM)
            found.append(record["before" if is_former else "after"][name])
        return found
