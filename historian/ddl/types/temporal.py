"""Dates and times that a DEFAULT clause writes, in the text form of the server."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo

from historian.ddl.types.numbers import as_decimal, integer_text

__all__ = ["at_microsecond", "in_session", "in_utc", "session_zone", "temporal_text", "year_text"]

_UTC = frozenset(("UTC", "ETC/UTC", "GMT", "ETC/GMT", "ZULU", "ETC/ZULU", "UCT", "ETC/UCT"))
_OFFSET = re.compile(r"([+-])(\d{1,2}):(\d{2})")
_WITH_OFFSET = re.compile(
    r"(\d{2}|\d{4})[^\d\s](\d{1,2})[^\d\s](\d{1,2})(?:T|\s+)(\d{1,2})[^\d](\d{1,2})[^\d](\d{1,2})(\.\d*)?([+-]\d{2}:\d{2})",
    re.ASCII,
)
_MARK = r"[!-/:-@\[-`{-~]"
"""What may stand between two parts of a date and time. Several such marks in a row servers read differently."""
_PARTS = re.compile(
    rf"(?P<date>(?P<year>\d{{1,4}}){_MARK}\d{{1,2}}{_MARK}\d{{1,2}})"
    rf"(?P<gap>T|\s+|{_MARK})?(?(gap)(?P<hour>\d{{1,2}})(?:{_MARK}(\d{{1,2}})(?:{_MARK}(\d{{1,2}})(?:\.(?P<fraction>\d*))?(?:[^\d.].*)?)?)?)",
    re.ASCII | re.DOTALL,
)
_DIGITS = re.compile(r"(\d+)(?:\.(\d*))?", re.ASCII)
_CLOCK = re.compile(r"(-?)(?:(\d+)\s+)?(\d+)(?::(\d+)(?::(\d+))?)?(?:\.(\d*))?", re.ASCII)
_MICROSECONDS = 6
_YEAR_DIGITS, _FIRST_YEAR, _LAST_YEAR = 4, 1901, 2155
_WHOLE_MOMENTS = (12, 14)
"""Digits of a date and time without marks, behind which a point begins a fraction."""
_LEAST_MOMENT = 10_000_000_000
_LARGEST_CLOCK = 8_385_959
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def session_zone(name: str) -> tzinfo | None:
    """The time zone that a session's ``time_zone`` names; None for SYSTEM and for named zones but UTC.

    A server converts a named zone by its own tables, whose rules can be older than any that are known here.
    """
    found = _OFFSET.fullmatch(name)
    if found:
        sign, hours, minutes = found.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-offset if sign == "-" else offset)
    return timezone.utc if name.upper() in _UTC else None


def at_microsecond(time_us: int, zone: tzinfo, fraction: int) -> str:
    """``YYYY-MM-DD hh:mm:ss[.f]`` of a moment, fraction cut off."""
    return _printed(_EPOCH + timedelta(microseconds=time_us), zone, fraction)


def in_utc(text: str, zone: tzinfo | None) -> str | None:
    """A TIMESTAMP of the session as UTC; None where that cannot be told."""
    if text.startswith("0000-00-00"):
        return text
    if zone is None:
        return None
    body, _, fraction = text.partition(".")
    try:
        local = datetime.strptime(body, "%Y-%m-%d %H:%M:%S").replace(tzinfo=zone)
    except ValueError:
        return None
    return _printed(local, timezone.utc, 0) + (f".{fraction}" if fraction else "")


def in_session(kind: str, text: str, zone: tzinfo | None, fraction: int, *, rounds: bool) -> str | None:
    """A literal of MySQL's with an offset behind it, such as ``2020-01-01 00:00:00+02:00``, in the session's time zone.

    Any other text is given back as it is; None where the time zone is not known. With *rounds* the server forgets the offset
    for a DATE or DATETIME of *fraction* digits where it rounds a second up, for a TIME it does not.
    """
    found = _WITH_OFFSET.fullmatch(text.strip())
    if found is None or (kind == "time" and "T" in text):
        return text
    offset, digits = session_zone(found[8]), (found[7] or "")[1:]
    if rounds and kind != "time" and _fraction(digits, fraction, rounds=True)[0]:
        return text.strip()[: found.start(8)]
    if zone is None or offset is None:
        return None
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    year = _full_year(year) if len(found[1]) == 2 else year
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=offset)
    except ValueError:
        return None
    return _printed(moment, zone, 0) + (f".{digits}" if digits else "")


def _printed(moment: datetime, zone: tzinfo, fraction: int) -> str:
    local = moment.astimezone(zone)
    text = local.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")
    return f"{text}.{local.microsecond:06d}"[: 20 + fraction] if fraction else text


def year_text(text: str, *, is_number: bool) -> str | None:
    """A YEAR's text: two digits stand for 1970 to 2069, the number 0 for the zero year.

    Of texts that say 0, only one of four characters is the zero year.

    >>> year_text("70", is_number=True), year_text("0", is_number=True), year_text("0", is_number=False), year_text("1e1", is_number=False)
    ('1970', '0000', '2000', '2010')
    """
    number = as_decimal(text)
    if number is None or number < 0:
        return None
    year = int(integer_text(number))
    if year == 0 and (is_number or len(text) == _YEAR_DIGITS):
        return "0000"
    year = _full_year(year)
    return str(year) if _FIRST_YEAR <= year <= _LAST_YEAR else None


def temporal_text(kind: str, text: str, fraction: int, *, is_mysql: bool, rounds: bool) -> str | None:
    """The server's text of a DATE, TIME, DATETIME or TIMESTAMP literal; None for one that is not understood.

    Args:
        rounds: whether surplus digits of a fraction are rounded; else they are cut.
    """
    text = text.strip()
    try:
        if kind == "time":
            return _clock_text(text, fraction, is_mysql, rounds)
        return _date_text(kind, text, fraction, is_mysql, rounds)
    except (ValueError, OverflowError):
        return None


def _date_text(kind: str, text: str, fraction: int, is_mysql: bool, rounds: bool) -> str | None:  # noqa: FBT001 private
    found = _PARTS.fullmatch(text)
    if found:
        numbers = [int(part or 0) for part in (*re.findall(r"\d+", found["date"]), *found.group("hour", 5, 6))]
        digits = found["fraction"] or ""
        length = len(found["year"])
        dotted = is_mysql and text[length] == "."  # MySQL counts digits then, as where there are no marks
        if dotted and length == 3:
            return None
        short = length == 2 or (dotted and length == 1)
    else:
        plain = _DIGITS.fullmatch(text)
        if plain is None or (is_mysql and plain.group(2) and len(plain.group(1)) not in _WHOLE_MOMENTS):
            return None
        numbers, short = _cut(plain.group(1))
        digits = plain.group(2) or ""
    if short:
        numbers[0] = _full_year(numbers[0])
    year, month, day, hour, minute, second = numbers
    if month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59 or year > 9999:
        return None
    more, shown = _fraction(digits, fraction, rounds)
    if more:
        later = datetime(year, month, day, hour, minute, second) + timedelta(seconds=1)  # noqa: DTZ001 no zone
        year, month, day, hour, minute, second = later.timetuple()[:6]
    if kind == "date":
        return f"{year:04d}-{month:02d}-{day:02d}"
    return f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}{shown}"


def _cut(digits: str) -> tuple[list[int], bool]:
    """Digits without separators: [YY]YYMMDD[hhmmss]; a number may have lost its leading zeros."""
    if int(digits) == 0:
        return [0] * 6, False
    width = next(width for width in (6, 8, 12, 14) if len(digits) <= width or width == 14)
    digits = digits.rjust(width, "0")
    short = width in (6, 12)
    year_digits = 2 if short else 4
    pairs = [int(digits[at : at + 2]) for at in range(year_digits, width, 2)]
    return [int(digits[:year_digits]), *pairs, *([0] * (5 - len(pairs)))], short


def _clock_text(text: str, fraction: int, is_mysql: bool, rounds: bool) -> str | None:  # noqa: FBT001 private
    dated = _PARTS.fullmatch(text)
    gap = (dated and dated["gap"]) or ""
    if gap.isspace() or (gap == "T" and not is_mysql):
        return _time_of_day(text, fraction, is_mysql, rounds)
    if dated and ":" not in dated["date"]:
        # MariaDB takes a date here only where the literal is typed. MySQL reads the year as the digits of a time.
        year, _, month = dated["date"].partition(".")
        text = (f"{year}.{re.split(_MARK, month)[0]}" if month else dated["year"]) if is_mysql else "0"
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    sign, days, first, second, third, digits = found.groups()
    if is_mysql and days is not None and second is None and digits is None and len(first) == 1:
        days, first = None, days  # MySQL looks for hours in two characters or more
    if second is None and days is None:  # a number: [hh[mm]]ss, or a date and time
        whole = int(first)
        if whole >= _LEAST_MOMENT:
            return _time_of_day(text, fraction, is_mysql, rounds)
        if (
            whole > _LARGEST_CLOCK and not is_mysql
        ):  # MariaDB takes eight digits for a date, and those of a fraction for nothing
            return _time_of_day(first, fraction, is_mysql, rounds)
        hours, minutes, seconds = whole // 10000, whole // 100 % 100, whole % 100
    else:
        hours, minutes, seconds = int(days or 0) * 24 + int(first), int(second or 0), int(third or 0)
    if minutes > 59 or seconds > 59:
        return None
    more, shown = _fraction(digits or "", fraction, rounds)
    total = hours * 3600 + minutes * 60 + seconds + more
    return f"{sign}{total // 3600:02d}:{total // 60 % 60:02d}:{total % 60:02d}{shown}"


def _time_of_day(text: str, fraction: int, is_mysql: bool, rounds: bool) -> str | None:  # noqa: FBT001 private
    """The time in a date and time; rounded up it can be 24:00:00."""
    moment = _date_text("datetime", text, _MICROSECONDS, is_mysql, rounds)
    return None if moment is None else _clock_text(moment[11:], fraction, is_mysql, rounds)


def _fraction(digits: str, wanted: int, rounds: bool) -> tuple[int, str]:  # noqa: FBT001 private
    """Whole seconds to carry, and the text of the fraction with its point."""
    digits = digits[: _MICROSECONDS + 1].ljust(_MICROSECONDS + 1, "0")
    # A server that rounds reads a literal with six digits, rounded, and rounds that again to those of the column.
    microseconds = int(digits[:_MICROSECONDS]) + (rounds and digits[_MICROSECONDS] >= "5")
    step = 10 ** (_MICROSECONDS - wanted)
    kept = (microseconds + (step // 2 if rounds else 0)) // step
    carry, kept = divmod(kept, 10**wanted)
    return carry, f".{kept:0{wanted}d}" if wanted else ""


def _full_year(year: int) -> int:
    if year > 99:
        return year
    return 2000 + year if year < 70 else 1900 + year
