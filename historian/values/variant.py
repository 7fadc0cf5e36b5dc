"""JSON texts as VARIANT values: the two byte strings that Spark, Delta and Parquet have for them.

Encoding: "Variant Binary Encoding" of Parquet's format, byte for byte as Spark's ``parse_json`` writes it. Spark's own
encoder in Python orders keys by code point, where its readers search by UTF-16 units, drops repeated keys, and makes
infinity of numbers that are too large. This one does none of that.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from struct import pack
from typing import Any

from historian.errors import ValueUnrepresentable

__all__ = ["MAX_BYTES", "encoded"]

MAX_BYTES = 16 << 20
"""Of either byte string; longer ones are not read everywhere."""

_SHORT, _OBJECT, _ARRAY = 1, 2, 3
_NULL, _TRUE, _FALSE, _DOUBLE, _STRING = 0, 1, 2, 7, 16
_INTEGERS = ((3, 1), (4, 2), (5, 4), (6, 8))
_DECIMALS = ((8, 9, 4), (9, 18, 8), (10, 38, 16))
"""Type, digits, bytes."""
_PLAIN_NUMBER = frozenset("-.0123456789")


def encoded(text: str, where: str | None = None) -> tuple[bytes, bytes]:
    """The metadata and the value of a JSON document; *where* is for errors.

    Numbers with a point are decimals of at most 38 digits, others are doubles; keys are sorted.

    Raises:
        ValueUnrepresentable: the text is no JSON, repeats a key of an object, has a number beyond all doubles, is nested
            too deeply, or takes more than :data:`MAX_BYTES`.
    """
    keys: dict[str, int] = {}
    try:
        parsed = json.loads(text, parse_float=_real, parse_constant=_constant, object_pairs_hook=_object)
        value = _value(parsed, keys)
        metadata = _metadata(keys)
    except RecursionError as error:
        raise _refused("is nested too deeply", text, where) from error
    except ValueError as error:
        raise _refused(str(error), text, where) from error
    if max(len(metadata), len(value)) > MAX_BYTES:
        raise _refused(_TOO_LARGE, text, where)
    return metadata, value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("repeats a key")
    return found


def _constant(name: str) -> None:
    raise ValueError(f"holds {name}")


def _real(text: str) -> Decimal | float:
    if _PLAIN_NUMBER.issuperset(text):
        _, digits, exponent = (number := Decimal(text)).as_tuple()
        if len(digits) <= _DECIMALS[-1][1] and -int(exponent) <= _DECIMALS[-1][1]:
            return number
    value = float(text)
    if math.isinf(value):
        raise ValueError("holds a number beyond all doubles")
    return value


def _value(parsed: Any, keys: dict[str, int]) -> bytes:
    if isinstance(parsed, str):
        return _text(parsed.encode())
    if parsed is None or isinstance(parsed, bool):
        return _primitive(_NULL if parsed is None else _TRUE if parsed else _FALSE)
    if isinstance(parsed, int):
        return _integer(parsed)
    if isinstance(parsed, Decimal):
        return _decimal(parsed)
    if isinstance(parsed, float):
        return _primitive(_DOUBLE) + pack("<d", parsed)
    if isinstance(parsed, list):
        return _container(_ARRAY, [], [_value(each, keys) for each in parsed], range(len(parsed)))
    ids, parts = [], []
    for key, each in parsed.items():
        ids.append(keys.setdefault(key, len(keys)))
        parts.append(_value(each, keys))
    names = list(parsed)
    order = sorted(range(len(names)), key=lambda at: names[at].encode("utf-16-be", "surrogatepass"))
    return _container(_OBJECT, [ids[at] for at in order], parts, order)


def _primitive(kind: int) -> bytes:
    return bytes((kind << 2,))


def _text(data: bytes) -> bytes:
    if len(data) < 1 << 6:
        return bytes((len(data) << 2 | _SHORT,)) + data
    return _primitive(_STRING) + pack("<I", len(data)) + data


def _integer(number: int) -> bytes:
    for kind, size in _INTEGERS:
        if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1:
            return _primitive(kind) + number.to_bytes(size, "little", signed=True)
    real = _real(str(number))
    return _decimal(real) if isinstance(real, Decimal) else _primitive(_DOUBLE) + pack("<d", real)


def _decimal(number: Decimal) -> bytes:
    negative, digits, exponent = number.as_tuple()
    scale = -int(exponent)
    unscaled = int("".join(map(str, digits))) * (-1 if negative else 1)
    kind, _, size = next(fits for fits in _DECIMALS if max(len(digits), scale) <= fits[1])
    return _primitive(kind) + bytes((scale,)) + unscaled.to_bytes(size, "little", signed=True)


def _container(kind: int, ids: list[int], parts: list[bytes], order: Any) -> bytes:
    """An object or array: header, number of elements, ids of keys, offsets in *order* and the end's, then *parts*."""
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + len(part))
    many = len(parts) >= 1 << 8
    id_size, offset_size = _size(max(ids, default=0)), _size(starts[-1])
    header = offset_size - 1 | (id_size - 1 << 2 | many << 4 if kind == _OBJECT else many << 2)
    offsets = [starts[at] for at in order] + starts[-1:]
    return b"".join(
        (
            bytes((header << 2 | kind,)),
            len(parts).to_bytes(4 if many else 1, "little"),
            *(each.to_bytes(id_size, "little") for each in ids),
            *(offset.to_bytes(offset_size, "little") for offset in offsets),
            *parts,
        )
    )


def _metadata(keys: dict[str, int]) -> bytes:
    names = [key.encode() for key in keys]
    offsets = [0]
    for name in names:
        offsets.append(offsets[-1] + len(name))
    size = _size(max(offsets[-1], len(names)))
    counts = (len(names), *offsets)
    return b"".join((bytes((1 | size - 1 << 6,)), *(count.to_bytes(size, "little") for count in counts), *names))


def _size(number: int) -> int:
    """Bytes of an unsigned number; as for Spark, one to three."""
    if number >= 1 << 24:
        raise ValueError(_TOO_LARGE)
    return 1 if number < 1 << 8 else 2 if number < 1 << 16 else 3


_TOO_LARGE = f"takes more than {MAX_BYTES >> 20} MiB"
_SHOWN_CHARACTERS = 80


def _refused(why: str, text: str, where: str | None) -> ValueUnrepresentable:
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return ValueUnrepresentable(
        "a JSON document that VARIANT does not hold",
        where=where,
        expected="JSON without repeated keys, its numbers within a double's range",
        found=f"one that {why}: {shown}",
        next_step="choose types.json: text for the column, for new targets",
    ).because("invalid_variant")
