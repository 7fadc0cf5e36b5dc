"""What leads the compiled walk over messages of one table: a tree of names, and the rows that come of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import orjson

from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.kernels.locating import locate
from connectors.readers.kafka.kernels.sources import source_places
from connectors.readers.kafka.located.forms import JsonForm
from connectors.readers.kafka.messages.batch import Texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.messages.events import Conventions, RowSchema
    from historian.names import TableName

__all__ = ["Known", "Program", "RowProgram", "meta_words"]

_CODES = {"c": at.CREATED, "r": at.CREATED, "u": at.UPDATED, "d": at.DELETED, "w": at.WRITTEN}
_LONGEST_OP = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What messages of a table under one schema have in common.

    Attributes:
        names: of the row's fields.
        schema, written: of their events.
        prefix: what such messages begin with; ``key``: and their keys. None: keys are not looked at; b"": there is no key.
        remembered: by path, texts that are mostly the same.
        in_order: rows have all fields, in that order.
        by_schema: they name their table by its schema, in the place of its database; ``connector``: what kind of server they come from.
        former_name: see :class:`connectors.readers.kafka.messages.events.Event`.
    """

    table: TableName
    names: tuple[str, ...]
    schema: RowSchema = field(compare=False)
    written: Conventions | None = field(compare=False)
    prefix: bytes = b""
    key: bytes | None = None
    remembered: tuple[tuple[str, bytes], ...] = ()
    in_order: bool = False
    by_schema: bool = False
    former_name: TableName | None = field(default=None, compare=False)
    connector: bytes = b""


@dataclass(slots=True)
class _Node:
    """A node that is made: its members by name, each a path."""

    members: dict[str, str]


def _slots(form: JsonForm) -> dict[str, int]:
    """Where the values of a message go, by path."""
    wanted = [
        form.op,
        form.database,
        form.table,
        form.time,
        form.coarse_time,
        form.object,
        *form.false,
        *form.told,
        *form.sources,
        *form.server,
        form.mark,
    ]
    slots: dict[str, int] = {}
    used = 0
    for path in (path for path in wanted if path):
        if path not in slots:
            slots[path] = used
            used += 1
        for parent in _parents(path):
            if parent not in slots:
                slots[parent] = used
                used += 1
    for path in (form.after, form.before):
        slots[path] = used
        used += 3
    return slots


def meta_words(form: JsonForm) -> int:
    """How many words are kept of each message."""
    slots = _slots(form)
    return max(slots.values()) + 3


def _parents(path: str) -> Iterator[str]:
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


class RowProgram(Protocol):
    """Leads a walk over messages of what is ``known``, and holds the rows of the last one.

    Attributes:
        slots: the columns of row images, by name.
        row_images, row_messages, row_ordinals: a word a row; ``row_ops``: a byte.
    """

    known: Known
    slots: dict[str, int]
    row_images: NDArray[np.int64]
    row_messages: NDArray[np.int64]
    row_ordinals: NDArray[np.int64]
    row_ops: NDArray[np.uint8]

    @property
    def rows(self) -> int:
        """How many rows the messages of the last walk have."""

    @property
    def images(self) -> int:
        """The address of the row images."""

    def places(self, texts: Texts, meta: NDArray[np.int64], begin: int, end: int) -> NDArray[np.int64]:
        """Where the changes of the rows from *begin* to *end* stand in the source's log, as :func:`.kernels.sources.source_places` tells it; zeros where nobody looks."""

    def source_words(self, texts: Texts, meta: NDArray[np.int64], begin: int, end: int) -> list[NDArray[np.uint64]]:
        """Of the rows from *begin* to *end* the words of what says where their changes stand: the operation first, the server's id last."""

    def ends(self, texts: Texts, begin: int, end: int) -> NDArray[np.int64]:
        """How many bytes of each row's message end with its operation; 0: that is not told."""

    def values(self, texts: Texts, rows: NDArray[np.intp], column: int) -> list[Any]:
        """The values of a column in *rows*, of messages that are *texts*, as one reads them without compiled code; None for NULL."""


class Program:
    """Leads the walk over messages of what is :class:`Known`, and holds the rows of the last one. Not for several threads at once."""

    def __init__(self, form: JsonForm, known: Known) -> None:
        self.form, self.known = form, known
        self.slots = {name: number for number, name in enumerate(known.names)}
        self._held: list[Any] = []
        self._paths = _slots(form)
        self._state = np.zeros(at.STATE_WORDS, np.int64)
        self._stack = np.zeros(at.STACK_WORDS, np.int64)
        self._fill()
        self._room(64)

    # ---- what the walk is led by -----------------------------------------------------------------------------------
    def _fill(self) -> None:
        form, state, slots = self.form, self._state, self._paths
        low, high = form.time_bounds_us
        ops = [
            (int.from_bytes(name.encode(), "little"), _CODES[code])
            for name, code in form.ops.items()
            if len(name.encode()) <= _LONGEST_OP
        ]
        false = [slots[path] for path in form.false] + [-1, -1]
        told = ([slots[path] for path in form.told] if self.known.in_order else []) + [-1, -1]
        values = {
            at.META_COUNT: meta_words(form),
            at.COLUMNS: len(self.known.names),
            at.ROOT: self._tree(),
            at.SUFFIX: ord("}") if form.prefixed else 0,
            at.NAMES_MAY_LACK: int(form.names_may_lack),
            at.DATABASE_SLOT: slots[form.database],
            at.TABLE_SLOT: slots[form.table],
            at.SOURCE_SLOT: slots.get(form.database.rpartition(".")[0], -1),
            at.OP_SLOT: slots[form.op],
            at.OPS: self._kept(np.array(ops, np.int64)),
            at.OPS_COUNT: len(ops),
            at.TIME_SLOT: slots[form.time],
            at.TIME_UNIT_US: form.time_unit_us,
            at.COARSE_TIME_SLOT: slots[form.coarse_time] if form.coarse_time else -1,
            at.COARSE_TIME_UNIT_US: form.coarse_time_unit_us,
            at.TIME_LOW_US: low,
            at.TIME_HIGH_US: high,
            at.AFTER_SLOT: slots[form.after],
            at.BEFORE_SLOT: slots[form.before],
            at.DELETED_SLOT: slots[form.deleted],
            at.IS_OVERLAY: int(form.is_overlay),
            at.WITH_ARRAYS: int(form.with_arrays),
            at.FALSE_SLOT: false[0],
            at.SECOND_FALSE_SLOT: false[1],
            at.OBJECT_SLOT: slots[form.object] if form.object else -1,
            at.TOLD_SLOT: told[0],
            at.SECOND_TOLD_SLOT: told[1],
            at.IN_ORDER: int(self.known.in_order),
            at.STACK: self._stack.ctypes.data,
        }
        for text_at, text in (
            (at.PREFIX, self.known.prefix),
            (at.DATABASE, _stands(self.known.table.database)),
            (at.TABLE, _stands(self.known.table.table)),
        ):
            values[text_at], values[text_at + 1] = self._text(text), len(text)
        for index, value in values.items():
            state[index] = value

    def _tree(self) -> int:
        """The address of the outermost node."""
        form = self.form
        remembered = dict(self.known.remembered)
        paths = list(dict.fromkeys([*form.members, *(path for path in self._paths)]))
        columns = [(name, at.VALUE, slot, 0, b"") for name, slot in self.slots.items()]
        rows = {
            form.after: self._node(columns, row=1),
            form.before: self._node(columns, row=2 if form.is_overlay else 1),
        }

        def node(parent: str) -> int:
            members = []
            for path in paths:
                above, _, name = path.rpartition(".")
                if above != parent:
                    continue
                if path in rows:
                    members.append((name, at.ROWS, self._paths[path], rows[path], b""))
                elif any(other.startswith(f"{path}.") and other in self._paths for other in paths):
                    members.append((name, at.ENTER, self._paths[path], node(path), b""))
                elif path in self._paths:
                    text = remembered.get(path, b"")
                    action = at.REMEMBER if text else at.VALUE
                    members.append((name, action, self._paths[path], 0, text))
                else:
                    members.append((name, at.PASS_OVER, 0, 0, b""))
            return self._node(members)

        return node("")

    def _node(self, members: list[tuple[str, int, int, int, bytes]], *, row: int = 0) -> int:
        words = []
        for name, action, slot, below, text in members:
            key = f'"{_stands(name).decode()}":'.encode()
            words.append([self._text(key), len(key), action, slot, below, self._text(text), len(text)])
        first = self._kept(np.array(words, np.int64).reshape(len(words), at.MEMBER_WORDS))
        return self._kept(np.array([len(words), first, row], np.int64))

    def _kept(self, words: NDArray[np.int64]) -> int:
        self._held.append(words)
        return int(words.ctypes.data)

    def _text(self, text: bytes) -> int:
        padded = np.frombuffer(text + b"\0" * at.SLACK, np.uint8)
        self._held.append(padded)
        return int(padded.ctypes.data)

    # ---- the walk --------------------------------------------------------------------------------------------------
    def _room(self, images: int) -> None:
        """Has room for so many images in all; what is there stays."""
        state, used = self._state, int(self._state[at.IMAGES_USED])
        rows = int(state[at.ROWS_USED])

        def grown(before: str, kind: Any, words: int, kept: int) -> NDArray[Any]:
            made = np.empty(images * words, kind)
            if kept:
                made[: kept * words] = getattr(self, before)[: kept * words]
            return made

        self._images = grown("_images", np.int64, max(1, len(self.known.names)), used)
        self.row_images = grown("row_images", np.int64, 1, rows)
        self.row_messages = grown("row_messages", np.int64, 1, rows)
        self.row_ops = grown("row_ops", np.uint8, 1, rows)
        self.row_ordinals = grown("row_ordinals", np.int64, 1, rows)
        for index, array in (
            (at.IMAGES, self._images),
            (at.ROW_IMAGE, self.row_images),
            (at.ROW_MESSAGE, self.row_messages),
            (at.ROW_OP, self.row_ops),
            (at.ROW_ORDINAL, self.row_ordinals),
        ):
            state[index] = array.ctypes.data
        state[at.IMAGES_ROOM] = images

    def locate(
        self,
        values: Texts,
        todo: NDArray[np.int64],
        status: NDArray[np.uint8],
        meta: NDArray[np.int64],
        times: NDArray[np.int64],
    ) -> None:
        """Walks the messages *todo*; those of the table have their rows behind, see ``rows``."""
        state = self._state
        state[at.BUFFER], state[at.STARTS] = values.address, values.starts.ctypes.data
        state[at.TODO], state[at.TODO_COUNT], state[at.DONE] = todo.ctypes.data, len(todo), 0
        state[at.STATUS], state[at.META], state[at.TIMES] = status.ctypes.data, meta.ctypes.data, times.ctypes.data
        state[at.IMAGES_USED] = state[at.ROWS_USED] = 0
        if state[at.IMAGES_ROOM] < 2 * len(todo):
            self._room(2 * len(todo) + 64)
        while locate(state.ctypes.data) < len(todo):
            self._room(2 * int(state[at.IMAGES_ROOM]))

    def texts_of(self, value: bytes, paths: Sequence[str]) -> tuple[bytes, ...] | None:
        """Of one message the texts of fields that are objects or arrays, or NULL; None where it is not understood or one is neither."""
        texts, meta = Texts.of([value]), np.zeros(meta_words(self.form), np.int64)
        status, one = np.zeros(1, np.uint8), np.zeros(1, np.int64)
        self.locate(texts, np.zeros(1, np.int64), status, meta, one)
        words = [int(meta[self._paths[path]]) for path in paths]
        kinds = [word >> at.KIND_AT & 0xF for word in words]
        if status[0] != at.LOCATED or any(kind not in (at.NESTED, at.NULL) for kind in kinds):
            return None
        starts = [word & at.START_MASK for word in words]
        lengths = [word >> at.START_BITS & at.LENGTH_MASK for word in words]
        return tuple(texts.between(start, start + length) for start, length in zip(starts, lengths, strict=True))

    def places(self, texts: Texts, meta: NDArray[np.int64], begin: int, end: int) -> NDArray[np.int64]:
        """See :class:`RowProgram`."""
        form = self.form
        out = np.zeros((end - begin, 6), np.int64)
        if form.sources:
            slots = np.array([self._paths[path] for path in (form.op, *form.sources)], np.int64)
            chosen = self.row_messages[begin:end]
            addresses = (slots.ctypes.data, out.ctypes.data)
            at_meta = (texts.address, meta.ctypes.data, meta_words(form))
            source_places(*at_meta, chosen.ctypes.data, len(chosen), *addresses)
        return out

    def source_words(
        self,
        texts: Texts,  # noqa: ARG002 as others
        meta: NDArray[np.int64],
        begin: int,
        end: int,
    ) -> list[NDArray[np.uint64]]:
        """See :class:`RowProgram`."""
        messages = self.row_messages[begin:end]
        return [self.words_at(path, meta, messages) for path in (self.form.op, *self.form.sources)]

    def ends(self, texts: Texts, begin: int, end: int) -> NDArray[np.int64]:  # noqa: ARG002 as others
        """See :class:`RowProgram`: in JSON it is sooner found where it is asked for."""
        return np.zeros(end - begin, np.int64)

    def words_at(self, path: str, meta: NDArray[np.int64], messages: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Of each of *messages* the word of a field that is looked for."""
        found: NDArray[np.uint64] = meta.reshape(-1, meta_words(self.form))[messages, self._paths[path]].view(np.uint64)
        return found

    def strangers(self, texts: Texts, meta: NDArray[np.int64]) -> NDArray[np.int64]:
        """The messages with rows that come from another kind of server, which names its tables otherwise."""
        messages = self.row_messages[: self.rows]
        if not self.form.server:
            return messages[:0]
        connector, schema, _ = self.form.server
        if self.known.by_schema:
            is_strange = ~self._has_text(connector, self.known.connector, texts, meta, messages)
        else:
            is_strange = self.words_at(schema, meta, messages) >> np.uint64(at.KIND_AT) > at.NULL
        found: NDArray[np.int64] = messages[is_strange]
        return found

    def marked(self, texts: Texts, meta: NDArray[np.int64], mark: bytes) -> NDArray[np.int64]:
        """The messages with rows whose ``mark`` is that one."""
        messages = self.row_messages[: self.rows]
        return messages[self._has_text(self.form.mark, mark, texts, meta, messages)] if self.form.mark else messages[:0]

    def _has_text(
        self, path: str, text: bytes, texts: Texts, meta: NDArray[np.int64], messages: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Whether each of *messages* has *text* in a field that is looked for, without escapes."""
        words = self.words_at(path, meta, messages)
        sizes = (words >> np.uint64(at.START_BITS) & np.uint64(at.LENGTH_MASK)).astype(np.int64)
        found: NDArray[np.bool_] = (words >> np.uint64(at.KIND_AT) == at.TEXT) & (sizes == len(text))
        starts = (words[found] & np.uint64(at.START_MASK)).astype(np.int64)
        letters = texts.body[starts[:, None] + np.arange(len(text))]
        found[found] = (letters == np.frombuffer(text, np.uint8)).all(axis=1)
        return found

    def texts_at(self, path: str, texts: Texts, meta: NDArray[np.int64], messages: NDArray[np.int64]) -> list[bytes]:
        """Of each of *messages* the text of a field that is an object or an array; b"" where it is neither."""
        words = self.words_at(path, meta, messages)
        kinds = (words >> np.uint64(at.KIND_AT)).tolist()
        starts = (words & np.uint64(at.START_MASK)).tolist()
        sizes = (words >> np.uint64(at.START_BITS) & np.uint64(at.LENGTH_MASK)).tolist()
        return [
            texts.between(start, start + size) if kind == at.NESTED else b""
            for kind, start, size in zip(kinds, starts, sizes, strict=True)
        ]

    @property
    def rows(self) -> int:
        """How many rows the messages of the last walk have."""
        return int(self._state[at.ROWS_USED])

    def words(self, column: int) -> NDArray[np.int64]:
        """The words of a column, of each image one."""
        columns = max(1, len(self.known.names))
        used = int(self._state[at.IMAGES_USED])
        return self._images[: used * columns].reshape(used, columns)[:, column]

    def values(self, texts: Texts, rows: NDArray[np.intp], column: int) -> list[Any]:
        """The values of a column in *rows* as JSON has them, see :class:`RowProgram`."""
        words = self.words(column)[self.row_images[rows]].view(np.uint64)
        kinds = (words >> np.uint64(at.KIND_AT)).astype(np.int64)
        quoted = (kinds == at.TEXT) | (kinds == at.ESCAPED)
        starts = (words & np.uint64(at.START_MASK)).astype(np.int64) - quoted
        ends = starts + ((words >> np.uint64(at.START_BITS)) & np.uint64(at.LENGTH_MASK)).astype(np.int64) + 2 * quoted
        pieces = [
            texts.between(start, end) if kind > at.NULL else b"null"
            for kind, start, end in zip(kinds.tolist(), starts.tolist(), ends.tolist(), strict=True)
        ]
        text = b"[" + b",".join(pieces) + b"]"
        found: list[Any] = json.loads(text, parse_float=Decimal) if self.form.exact else orjson.loads(text)
        return found

    @property
    def images(self) -> int:
        """The address of the row images."""
        return int(self._images.ctypes.data)


def _stands(name: str) -> bytes:
    """A name as it stands between quotes in JSON."""
    return json.dumps(name, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
