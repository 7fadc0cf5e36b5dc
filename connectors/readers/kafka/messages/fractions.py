"""Fractions of a second in messages, as whole microseconds: columns hold no finer ones."""

from __future__ import annotations

__all__ = ["digits_us", "from_ns"]


def digits_us(digits: str) -> int:
    """The microseconds of the *digits* behind a point, as many as there are.

    Raises:
        ValueError: they tell a fraction of a microsecond.

    >>> digits_us("12"), digits_us("123456000"), digits_us("")
    (120000, 123456, 0)
    """
    if digits[6:].strip("0"):
        raise _too_fine(f".{digits}", "have the producer cut it")
    return int(digits[:6].ljust(6, "0"))


def from_ns(value: int) -> int:
    """The microseconds of *value* nanoseconds.

    Raises:
        ValueError: they tell a fraction of a microsecond.
    """
    us, rest = divmod(value, 1000)
    if rest:
        raise _too_fine(value, "time.precision.mode=microseconds of Debezium's connector cuts it")
    return us


def _too_fine(found: object, next_step: str) -> ValueError:
    return ValueError(f"a fraction of a microsecond, which no column holds; {next_step}: {found!r}")
