"""Numbers that a DEFAULT clause writes, in the text form of the server."""

from __future__ import annotations

import math
import struct
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext

__all__ = ["as_decimal", "declared_float_text", "fixed_text", "float_text", "integer_text", "plain_text"]

_LARGEST_PLAIN_EXPONENT = 15
_DOUBLE_DIGITS = 17
_FLOAT_DIGITS = 6
_MOST_DIGITS = 400


def as_decimal(text: str) -> Decimal | None:
    """The number that *text* says; None where it says none, or one beyond any column."""
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) < _MOST_DIGITS else None


def integer_text(number: Decimal) -> str:
    """Rounded half away from zero.

    >>> integer_text(Decimal("5.5"))
    '6'
    """
    return fixed_text(number, 0)


def fixed_text(number: Decimal, scale: int) -> str:
    """With exactly *scale* digits behind the point.

    >>> fixed_text(Decimal("1.555"), 2)
    '1.56'
    """
    with localcontext() as context:
        context.prec = 2 * _MOST_DIGITS
        rounded = number.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)
    return f"{abs(rounded) if rounded == 0 else rounded:f}"


def declared_float_text(number: Decimal, scale: int, *, single: bool) -> str:
    """A FLOAT(M,D) or DOUBLE(M,D): rounded as the server does, in floating point and half to even.

    >>> declared_float_text(Decimal("0.125"), 2, single=False), declared_float_text(Decimal("1.5"), 0, single=False)
    ('0.12', '1')
    """
    value = float(number)
    whole = math.floor(value)
    value = whole + round((value - whole) * 10.0**scale) / 10.0**scale
    if single:
        (value,) = struct.unpack("<f", struct.pack("<f", value))
    return f"{value:.{scale}f}"


def float_text(number: Decimal, *, single: bool) -> str:
    """As the server prints a DOUBLE, or a FLOAT, of which it shows six digits.

    >>> float_text(Decimal("1e20"), single=False), float_text(Decimal("123456789"), single=True)
    ('1e20', '123457000')
    """
    if number == 0:
        return "0"
    shortest = f"{float(number):.{_FLOAT_DIGITS - 1}e}" if single else repr(float(number))
    exact = Decimal(shortest)
    digits = "".join(map(str, exact.as_tuple().digits)).rstrip("0")[:_DOUBLE_DIGITS]
    point = exact.adjusted() + 1
    sign = "-" if exact < 0 else ""
    if 1 - _LARGEST_PLAIN_EXPONENT <= point <= _LARGEST_PLAIN_EXPONENT:
        return sign + plain_text(abs(exact))
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{point - 1}"


def plain_text(number: Decimal) -> str:
    """Without exponent and without zeros at the end of a fraction."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
