"""Changelog rows for programs that read lines: ndjson.

One ndjson line is ``{"table", "position", "op", "event_time", "schema_version", "data"}``. In ``data`` integers, BIT,
YEAR and floats are numbers (floats the shortest that read back the same, and "Infinity", "-Infinity" and "NaN" texts, since
JSON has no such numbers). Binary values are base64; everything else is
the server's own text. TIMESTAMP and ``event_time`` are UTC. A row whose images lack columns has lists of names ``absent``
and ``unseen`` (:mod:`historian.changelog.missing_columns`), and ``data`` without them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from functools import partial
from json.encoder import encode_basestring
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.chunks import Chunk, positions
from historian.changelog.missing_columns import ABSENT, missing_names
from historian.changelog.operations import CHUNK_COLUMNS, Op
from historian.errors import ValueUnrepresentable
from historian.schema.snapshots import Column, Snapshot

__all__ = ["json_texts", "ndjson_rows"]

_SIGNS = [op.sign for op in Op]
# Arrow writes a decimal of a larger scale with an exponent where it is small.
_PLAIN_SCALE = 6
# As the JSON form of Protocol Buffers has them.
_NO_NUMBERS = {"inf": '"Infinity"', "-inf": '"-Infinity"', "nan": '"NaN"'}


def ndjson_rows(chunk: Chunk, snapshot: Snapshot) -> Iterator[str]:
    """The rows of *chunk* as JSON texts without line ends, in order. Read with ``as_text=True``, it has dates that no calendar has.

    Raises:
        ValueUnrepresentable: a column of a type that has no text here.
    """
    columns = [json_texts(chunk, at, column) for at, column in enumerate(snapshot.columns)]
    if ABSENT in chunk.rows.schema.names:
        yield from _partial_rows(chunk, snapshot, columns)
        return
    names = [encode_basestring(column.name) for column in snapshot.columns]
    # A template of constants and places is filled in once a row, which is quicker than building objects for json.dumps.
    data = ", ".join(f"{_escaped(name)}: %s" for name in names)
    template = (
        f'{{"table": {_escaped(encode_basestring(str(snapshot.name)))}, "position": "%s", "op": "%s", '
        f'"event_time": "%s", "schema_version": {chunk.version}, "data": {{{data}}}}}'
    )
    for row in zip(positions(chunk).to_pylist(), _signs(chunk), _event_times(chunk), *columns, strict=True):
        yield template % row


def _partial_rows(chunk: Chunk, snapshot: Snapshot, columns: list[list[str]]) -> Iterator[str]:
    names = [column.name for column in snapshot.columns]
    heads = zip(positions(chunk).to_pylist(), _signs(chunk), _event_times(chunk), strict=True)
    for (position, op, time), lists, *row in zip(heads, missing_names(chunk.rows, names), *columns, strict=True):
        absent = lists.get(ABSENT, ())
        data = [
            f"{encode_basestring(name)}: {text}" for name, text in zip(names, row, strict=True) if name not in absent
        ]
        more = "".join(f'"{name}": {json.dumps(found, ensure_ascii=False)}, ' for name, found in lists.items())
        yield (
            f'{{"table": {encode_basestring(str(snapshot.name))}, "position": "{position}", "op": "{op}", '
            f'"event_time": "{time}", "schema_version": {chunk.version}, {more}"data": {{{", ".join(data)}}}}}'
        )


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _signs(chunk: Chunk) -> list[str]:
    return [_SIGNS[op] for op in chunk.rows.column("op").to_pylist()]


def _event_times(chunk: Chunk) -> list[str]:
    naive = chunk.rows.column("event_time").cast(pa.int64()).cast(pa.timestamp("us"))
    texts: list[str] = pc.replace_substring(naive.cast(pa.string()), " ", "T").to_pylist()
    return [f"{text}Z" for text in texts]


_Texts: TypeAlias = Callable[[pa.Array], list[str]]


def json_texts(chunk: Chunk, at: int, column: Column) -> list[str]:
    """The values of the column with index *at* as JSON texts.

    Raises:
        ValueUnrepresentable: it is of a type that has no text here.
    """
    values = chunk.rows.column(len(CHUNK_COLUMNS) + at)
    make = _texts_of(values.type, column)
    if make is None:
        raise ValueUnrepresentable("no text for a column", where=f"{column.name} {column.type}", found=values.type)
    if not values.null_count:
        return make(values)
    present = iter(make(values.drop_null()))
    return [next(present) if valid else "null" for valid in values.is_valid().to_pylist()]


def _texts_of(kind: pa.DataType, column: Column) -> _Texts | None:
    if pa.types.is_string(kind):
        return lambda values: list(map(encode_basestring, values.to_pylist()))
    if pa.types.is_binary(kind):
        if column.type.name == "bit":
            return lambda values: [str(int.from_bytes(value, "big")) for value in values.to_pylist()]
        return _base64
    if pa.types.is_boolean(kind):
        return lambda values: ["1" if value else "0" for value in values.to_pylist()]
    if pa.types.is_floating(kind):
        return _floats
    if pa.types.is_integer(kind):
        return partial(_times, column.type.fraction) if column.type.name == "time" else _numbers
    if pa.types.is_date(kind):
        return lambda values: [f'"{text}"' for text in values.cast(pa.string()).to_pylist()]
    if pa.types.is_timestamp(kind):
        return partial(_moments, column.type.fraction)
    if pa.types.is_decimal(kind):
        # Unsigned BIGINT travels as a decimal; it is a number all the same.
        return _numbers if column.type.name == "bigint" else _decimals
    return None


def _numbers(values: pa.Array) -> list[str]:
    texts: list[str] = values.cast(pa.string()).to_pylist()
    return texts


def _moments(fraction: int, values: pa.Array) -> list[str]:
    naive = values.cast(pa.int64()).cast(pa.timestamp("us")).cast(pa.string()).to_pylist()
    return [f'"{text[: 20 + fraction] if fraction else text[:19]}"' for text in naive]


def _times(fraction: int, values: pa.Array) -> list[str]:
    """Of microseconds, as servers write a TIME."""
    texts = []
    for value in values.to_pylist():
        seconds, micros = divmod(abs(value), 1_000_000)
        minutes, second = divmod(seconds, 60)
        digits = f".{micros:06}"[: 1 + fraction] if fraction else ""
        texts.append(f'"{"-" if value < 0 else ""}{minutes // 60:02}:{minutes % 60:02}:{second:02}{digits}"')
    return texts


def _floats(values: pa.Array) -> list[str]:
    if values.type == pa.float32():
        # Arrow's text is the shortest that gives the same float32; as a float64 it is the shortest of that too.
        texts = [repr(float(text)) for text in values.cast(pa.string()).to_pylist()]
    else:
        texts = [repr(value) for value in values.to_pylist()]
    if pc.all(pc.is_finite(values)).as_py() is False:
        return [_NO_NUMBERS.get(text, text) for text in texts]
    return texts


def _decimals(values: pa.Array) -> list[str]:
    if values.type.scale <= _PLAIN_SCALE:
        return [f'"{text}"' for text in values.cast(pa.string()).to_pylist()]
    return [f'"{value:f}"' for value in values.to_pylist()]


def _base64(values: pa.Array) -> list[str]:
    found: list[Any] = values.to_pylist()
    return [f'"{base64.b64encode(value).decode()}"' for value in found]
