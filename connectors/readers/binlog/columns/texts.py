"""Values as the server prints them, of the packed numbers and bytes of row images, one at a time."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

__all__ = ["date_text", "datetime_text", "time_text", "timestamp_text", "wide_decimal_text"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DIGITS_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def date_text(packed: int, _digits: int) -> str:
    """DATE of its packed 24 bits, zero parts as they are."""
    return f"{packed >> 9:04d}-{packed >> 5 & 15:02d}-{packed & 31:02d}"


def _split(packed: int, digits: int) -> tuple[int, str]:
    """The part before the fraction, and the fraction's text with its point."""
    size = 8 * ((digits + 1) // 2)
    fraction = packed & ((1 << size) - 1)
    if digits == 0:
        return packed, ""
    # Two digits a byte, so an odd count has one digit too many, always 0. MySQL 5.7 rounds some times of its clock up to
    # 1,000,000 microseconds, which it prints with seven digits.
    return packed >> size, f".{fraction // 10 ** (digits % 2):0{digits}d}"


def datetime_text(packed: int, digits: int) -> str:
    """DATETIME of its 40 bits and fraction, zero parts as they are."""
    whole, fraction = _split(packed, digits)
    whole &= 0x7FFFFFFFFF
    year, month = divmod(whole >> 22, 13)
    date = f"{year:04d}-{month:02d}-{whole >> 17 & 31:02d}"
    return f"{date} {whole >> 12 & 31:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}{fraction}"


def timestamp_text(packed: int, digits: int) -> str:
    """TIMESTAMP of its seconds and fraction, in UTC."""
    seconds, fraction = _split(packed, digits)
    if packed == 0:
        return "0000-00-00 00:00:00" + fraction
    return f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}{fraction}"


def time_text(packed: int, digits: int) -> str:
    """TIME of its 24 bits and fraction, offset by half the range."""
    packed -= 1 << (8 * (3 + (digits + 1) // 2) - 1)
    whole, fraction = _split(abs(packed), digits)
    sign = "-" if packed < 0 else ""
    return f"{sign}{whole >> 12 & 1023:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}{fraction}"


def wide_decimal_text(piece: bytes, digits: int, scale: int) -> str:
    """DECIMAL of its groups of nine digits, with *scale* digits behind the point."""
    negative = piece[0] < 0x80
    raw = bytes((byte ^ 0xFF) if negative else byte for byte in piece)
    raw = bytes((raw[0] ^ 0x80,)) + raw[1:]
    whole = digits - scale
    groups = [whole % 9] + [9] * (whole // 9) + [9] * (scale // 9) + [scale % 9]
    number = at = 0
    for count in groups:
        size = _DIGITS_BYTES[count]
        number = number * 10**count + int.from_bytes(raw[at : at + size], "big")
        at += size
    text = f"{number:0{scale + 1}d}"
    text = f"{text[:-scale]}.{text[-scale:]}" if scale else text
    return "-" + text if negative else text
