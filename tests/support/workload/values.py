"""Random values of every column type, and how they are written in SQL."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from workload.shapes import ColumnShape

__all__ = ["BITS", "literal", "random_value"]

WORDS = (
    "Kaffee",
    "thé vert",
    "черный чай",
    "抹茶",
    "café crème",
    "🍵 matcha",
    "ya'ar",
    'say "hi"',
    "back\\slash",
    "tab\there",
    "",
)
LATIN1_WORDS = ("Kaffee", "thé", "Größe", "ñandú", "", "it's", "façade")
BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}


def random_value(column: ColumnShape, rng: random.Random) -> Any:
    """A value that *column* stores exactly as it is; NULL at times where it may be."""
    if column.nullable and rng.random() < 0.15:
        return None
    if column.stem == "doc":
        return _document(rng)
    return _MAKERS[column.type](column, rng)


def literal(column: ColumnShape, value: Any) -> str:
    """*value* as SQL."""
    if value is None:
        return "NULL"
    if column.type == "time":
        return f"'{_time_text(value)}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    if isinstance(value, (date, datetime)):
        return f"'{value.isoformat(*([' '] if isinstance(value, datetime) else []))}'"
    return repr(value) if isinstance(value, float) else str(value)


def _time_text(value_us: int) -> str:
    seconds, fraction = divmod(abs(value_us), 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{'-' if value_us < 0 else ''}{hours:02}:{minute:02}:{second:02}.{fraction:06}"


def _integer(column: ColumnShape, rng: random.Random) -> int:
    bits = BITS[column.type]
    low, high = (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    kind = rng.random()
    if kind < 0.08:
        return rng.choice((low, high, 0))
    return rng.randint(low, high) if kind < 0.4 else rng.randint(max(low, -100), 100)


def _decimal(column: ColumnShape, rng: random.Random) -> Decimal:
    digits, scale = column.numbers if len(column.numbers) == 2 else (*column.numbers, 0)
    whole = rng.choice((1, digits, max(1, digits // 2)))
    number = rng.randrange(10**whole)
    return Decimal(number if rng.random() < 0.7 else -number).scaleb(-scale)


def _float(_: ColumnShape, rng: random.Random) -> float:
    # The server prints FLOAT with six digits, so only such values can be noted exactly.
    return float(f"{rng.uniform(-1, 1) * 10.0 ** rng.randint(-6, 30):.5e}")


def _double(_: ColumnShape, rng: random.Random) -> float:
    return rng.choice(
        (0.0, 0.1, 1.7976931348623157e308, rng.uniform(-1, 1) * 10.0 ** rng.randint(-300, 300), rng.gauss(0, 9))
    )


def _text(column: ColumnShape, rng: random.Random) -> str:
    words = LATIN1_WORDS if column.charset == "latin1" else WORDS
    limit = column.numbers[0] if column.numbers else 60
    if column.type in {"text", "mediumtext", "longtext"} and rng.random() < 0.02:
        return rng.choice(words[:4]) * 300
    made = " ".join(rng.choice(words) for _ in range(rng.randint(0, 4))) + rng.choice(
        ("", rng.choice(string.ascii_letters))
    )
    # CHAR loses its trailing spaces, so no value may have one.
    return made[:limit].strip()


def _bytes(column: ColumnShape, rng: random.Random) -> bytes:
    limit = column.numbers[0] if column.numbers else 60
    if column.type == "binary":
        # Trailing zeros are not in the log: the reader has to put them back.
        return rng.randbytes(rng.randint(0, limit)).ljust(limit, b"\0")
    return rng.randbytes(rng.randint(0, limit))


def _fraction_us(column: ColumnShape, rng: random.Random) -> int:
    digits = column.numbers[0] if column.numbers else 0
    return int(rng.randrange(10**digits) * 10 ** (6 - digits))


def _date(_: ColumnShape, rng: random.Random) -> date:
    first, days = (date(1000, 1, 1), 3_287_181) if rng.random() < 0.2 else (date(2020, 1, 1), 2000)
    return first + timedelta(days=rng.randrange(days))


def _datetime(column: ColumnShape, rng: random.Random) -> datetime:
    day = _date(column, rng)
    second = timedelta(seconds=rng.randrange(86_400), microseconds=_fraction_us(column, rng))
    return datetime(day.year, day.month, day.day) + second  # noqa: DTZ001 a DATETIME has no zone


def _timestamp(column: ColumnShape, rng: random.Random) -> datetime:
    seconds = rng.randrange(1, 2**31 - 1)
    return datetime(1970, 1, 1) + timedelta(seconds=seconds, microseconds=_fraction_us(column, rng))  # noqa: DTZ001


def _time_us(column: ColumnShape, rng: random.Random) -> int:
    limit_s = rng.choice((86_400, 839 * 3600 - 1))
    value = rng.randrange(limit_s) * 1_000_000 + _fraction_us(column, rng)
    return value if rng.random() < 0.7 else -value


def _set(column: ColumnShape, rng: random.Random) -> str:
    return ",".join(label for label in column.labels if rng.random() < 0.4)


def _document(rng: random.Random) -> str:
    return json.dumps(_node(rng, 0), ensure_ascii=rng.random() < 0.3)


def _node(rng: random.Random, depth: int) -> Any:
    leaves: tuple[Callable[[], Any], ...] = (
        lambda: None,
        lambda: rng.random() < 0.5,
        lambda: rng.randint(-5, 300),
        lambda: rng.choice((2**63 - 1, -(2**63), 2**64 - 1, 70_000, -40_000)),
        lambda: rng.randint(-1000, 1000) / 8,
        lambda: rng.choice(WORDS),
        lambda: "long " * rng.choice((1, 40)),
    )
    if depth < 2 and rng.random() < 0.5:
        if rng.random() < 0.5:
            return [_node(rng, depth + 1) for _ in range(rng.randint(0, 4))]
        return {rng.choice(WORDS) + str(n): _node(rng, depth + 1) for n in range(rng.randint(0, 4))}
    return rng.choice(leaves)()


_MAKERS: dict[str, Callable[[ColumnShape, random.Random], Any]] = {
    **dict.fromkeys(BITS, _integer),
    "decimal": _decimal,
    "float": _float,
    "double": _double,
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _text),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _bytes),
    "date": _date,
    "datetime": _datetime,
    "timestamp": _timestamp,
    "time": _time_us,
    "year": lambda _, rng: rng.choice((0, rng.randint(1901, 2155))),
    "enum": lambda column, rng: rng.choice(column.labels),
    "set": _set,
    "bit": lambda column, rng: rng.randrange(2 ** column.numbers[0]),
    "json": lambda _, rng: _document(rng),
}
