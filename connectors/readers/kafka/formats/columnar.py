"""Messages of flat formats by compiled code: what is looked for, and how each type is read."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from connectors.readers.kafka.debezium.names import is_by_schema, is_of_mysql
from connectors.readers.kafka.formats.decoder import LAST_US
from connectors.readers.kafka.formats.values import ADAPTIVE
from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.located import columns
from connectors.readers.kafka.located.forms import JsonForm
from connectors.readers.kafka.located.programs import Known, Program
from connectors.readers.kafka.messages.events import Event
from connectors.readers.kafka.messages.whole_rows import is_plain_change
from historian.changelog.operations import Op
from historian.errors import UnsupportedEvent
from historian.schema.snapshots import BYTE_TYPES, INTEGER_TYPES, TEXT_TYPES
from historian.values.arrow_types import arrow_type

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from connectors.readers.kafka.formats.decoder import FlatDecoder
    from connectors.readers.kafka.formats.tables import FlatFormat
    from connectors.readers.kafka.located.batches import Doubts
    from connectors.readers.kafka.messages.batch import Texts
    from connectors.readers.kafka.messages.events import Conventions
    from historian.schema.snapshots import ColumnType

__all__ = ["doubts_of", "form_of", "known_of", "reading_of", "told_of"]


def form_of(form: FlatFormat) -> JsonForm | None:
    """What compiled code looks for in messages of a format; None of one that it does not read."""
    if form.qualified or not form.time_unit_us:
        return None
    return JsonForm(
        members=form.members,
        op=form.op,
        ops=form.ops,
        database=form.database,
        table=form.table,
        schema=form.schema,
        server=(f"{form.source}.connector", form.schema, form.database) if form.source else (),
        time=form.time,
        time_unit_us=form.time_unit_us,
        time_bounds_us=(0, LAST_US),
        after=form.data,
        before=form.old,
        deleted=form.deleted,
        is_overlay=form.former == "overlay",
        false=tuple(path for path in (form.is_ddl, *form.partial) if path in form.members),
        object=form.types,
        told=(form.types, form.key) if form.types and form.key else (),
        tombstones=form.tombstones,
        exact=form.exact,
    )


def known_of(decoder: FlatDecoder, key: bytes | None, value: bytes) -> Known | None:
    """What is known of messages such as this one; None where it has no row.

    Args:
        decoder: which does not tell schemas.
    """
    try:
        events = decoder.events(key, value, "")
    except UnsupportedEvent:
        return None
    rows = [row for each in events if isinstance(each, Event) for row in (each.after, each.before) if row]
    first = events[0] if events else None
    if (
        not isinstance(first, Event)
        or not rows
        or any(isinstance(each, Event) and not is_plain_change(each) for each in events)
    ):
        return None
    source = decoder.source(value)
    if not (is_of_mysql(source) or is_by_schema(source)):
        return None
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    return Known(
        table=first.table,
        names=names,
        schema=first.schema,
        written=first.written,
        by_schema=is_by_schema(source),
        former_name=first.former_name,
        connector=str(source.get("connector")).encode() if is_by_schema(source) else b"",
    )


def told_of(decoder: FlatDecoder, form: JsonForm, key: bytes | None, value: bytes) -> Known | None:
    """What is known of messages which tell the same schema as this one; None where it has no row, or tells none.

    Args:
        decoder: which tells schemas; *form*: of its format.
    """
    known = known_of(decoder, key, value)
    if known is None or not form.told:
        return None
    events = [each for each in decoder.events(key, value, "") if isinstance(each, Event)]
    rows = [tuple(each.after or each.before or ()) for each in events]
    if len(set(rows)) != 1 or any(each.schema is not known.schema for each in events):
        return None
    strict = replace(known, names=rows[0], in_order=True)
    texts = Program(form, strict).texts_of(value, form.told)
    return None if texts is None else replace(strict, remembered=tuple(zip(form.told, texts, strict=True)))


def doubts_of(form: FlatFormat) -> Doubts | None:
    """What finds messages that may not tell all: see :func:`_cut` and :func:`_unchanged_updates`; None: those of *form* do."""
    marks = [path.rpartition(".")[2].encode() for path in form.partial if path not in form.members]
    each: list[Doubts] = [partial(_cut, marks, form.short_deletes)] if form.short_deletes or marks else []
    if form.old_has_changes:
        each.append(_unchanged_updates)
    if not each:
        return None
    return lambda program, texts, meta: np.concatenate([found(program, texts, meta) for found in each])


def _cut(
    marks: Collection[bytes],
    short_deletes: bool,  # noqa: FBT001 by partial
    program: Program,
    texts: Texts,
    meta: NDArray[np.int64],  # noqa: ARG001 as other doubts
) -> NDArray[np.int64]:
    """Messages with rows that lack columns of others, and may be cut: deletes of the key alone, and what a message itself says is not whole."""
    images = program.row_images[: program.rows]
    lacks = np.zeros(program.rows, np.bool_)
    for column in program.slots.values():
        words = program.words(column)[images].view(np.uint64)
        lacks |= words >> np.uint64(at.KIND_AT) == at.MISSING
    messages, is_gone = program.row_messages[: program.rows], program.row_ops[: program.rows] == Op.RETRACT
    deletes = messages[lacks & is_gone] if short_deletes else messages[:0]
    cut = [number for number in messages[lacks].tolist() if any(mark in (texts[number] or b"") for mark in marks)]
    return np.concatenate([deletes, np.array(cut, messages.dtype)])


def _unchanged_updates(program: Program, texts: Texts, meta: NDArray[np.int64]) -> NDArray[np.int64]:  # noqa: ARG001 as other doubts
    """Messages of updates that name no column which changed: the row before has the values of the row behind, as they stand there."""
    messages, ops = program.row_messages[: program.rows], program.row_ops[: program.rows]
    first = np.flatnonzero(ops == Op.CORRECT_FROM)
    before, after = program.row_images[first], program.row_images[first + 1]
    is_same = np.ones(len(first), np.bool_)
    for column in program.slots.values():
        words = program.words(column)
        is_same &= words[before] == words[after]
    return messages[first[is_same]]


def reading_of(kind: ColumnType, written: Conventions) -> columns.Reading | None:
    """How values are read as a column of *kind*; None: by no compiled code."""
    name, wanted = kind.name, arrow_type(kind)
    if kind.shape:
        return None
    if name in (*INTEGER_TYPES, "year"):
        return columns.integers(wanted, texts=True, wraps=name == "bigint" and kind.unsigned and written.wraps)
    if name in ("float", "double"):
        return columns.doubles(wanted, texts=True)
    if name == "decimal" and pa.types.is_decimal(wanted):
        return columns.base64_decimals(wanted) if written.decimal == "base64" else columns.decimals(wanted)
    if name in ("date", "datetime", "timestamp", "time"):
        return _reading_of_moment(kind, wanted, written)
    if name == "bit":
        return columns.booleans(numbers_too=True) if (kind.length or 1) == 1 else None
    if name in BYTE_TYPES and name != "binary":
        made = {"latin1": columns.latin1_bytes, "base64": columns.base64_bytes}.get(written.binary)
        return None if made is None else made()
    if name == "enum" and kind.labels:
        is_number = written.labels == "number"
        return columns.enum_numbers(kind.labels) if is_number else columns.labels(("", *kind.labels))
    is_text = name in TEXT_TYPES or (name == "json" and written.documents != "inline")
    return columns.texts() if is_text and pa.types.is_string(wanted) else None


def _reading_of_moment(kind: ColumnType, wanted: pa.DataType, written: Conventions) -> columns.Reading | None:
    if kind.name == "timestamp":
        is_utc = written.debezium or written.zone == "UTC"
        return columns.moments_of(wanted, zulu=written.debezium) if is_utc else None
    if written.debezium:
        if written.temporal != ADAPTIVE:
            return None
        unit = 1000 if kind.name == "datetime" and kind.fraction <= 3 else 1
        return columns.integers(wanted, multiplier=unit, texts=True)
    if kind.name == "date":
        return columns.dates()
    return columns.times() if kind.name == "time" else columns.moments_of(wanted, zulu=False)
