"""What leads the compiled walk over messages of one writer's schema and table, and the rows that come of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from connectors.readers.kafka.avro.instructions import instructions_of
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

__all__ = ["AvroProgram"]

_PLACE_SLOTS = np.arange(avro.PLACE_WORDS, dtype=np.int64)


class AvroProgram:
    """Leads the walk over messages of one writer's schema and table, and holds the rows of the last one. Not for several threads at once.

    *lone_updates*: an update without the row before it is its row alone; *mark*: messages with this ``source.snapshot`` are
    left to the library, none where it is empty; *with_server*: see :func:`instructions_of`.
    A :class:`connectors.readers.kafka.located.programs.RowProgram`.
    """

    def __init__(
        self, writer: Writer, known: Known, *, lone_updates: bool = False, mark: str = "", with_server: bool = False
    ) -> None:
        self.known, self._writer, self._lone_updates = known, writer, lone_updates
        self._again: AvroProgram | None = None
        self._servers: NDArray[np.uint64] | None = None
        self._code, self.slots = instructions_of(writer, with_server=with_server, with_snapshot=bool(mark))
        self._facts = np.zeros(avro.META_WORDS, np.int64)
        self._state = np.zeros(avro.STATE_WORDS, np.int64)
        self._names = [
            np.frombuffer(name.encode() + b"\0", np.uint8) for name in (known.table.database, known.table.table, mark)
        ]
        state = self._state
        state[avro.HEADER_BYTES] = len(known.prefix)
        state[avro.INSTRUCTIONS], state[avro.FACTS] = self._code.ctypes.data, self._facts.ctypes.data
        state[avro.COLUMNS] = len(self.slots)
        state[avro.LONE_UPDATES] = int(lone_updates)
        for word, name in zip((avro.DATABASE, avro.TABLE, avro.MARK), self._names, strict=True):
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
        self._servers = None
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

    @property
    def place_words(self) -> NDArray[np.uint64]:
        """Of all rows of the last walk the words of their operation, and of what says where their changes stand."""
        return self._row_places[: self.rows].view(np.uint64)

    def source_words(
        self,
        texts: Texts,
        meta: NDArray[np.int64],  # noqa: ARG002 as others
        begin: int,
        end: int,
    ) -> list[NDArray[np.uint64]]:
        """See :class:`connectors.readers.kafka.located.programs.RowProgram`."""
        if self._servers is None:
            again = self._again = self._again or AvroProgram(
                self._writer, self.known, lone_updates=self._lone_updates, with_server=True
            )
            messages = np.unique(self.row_messages[: self.rows])
            again.locate(texts, messages, np.zeros(len(texts), np.uint8), np.zeros(len(texts), np.int64))
            self._servers = again.place_words[:, -1].copy()
        return [*self.place_words[begin:end, :-1].T, self._servers[begin:end]]

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
