"""The columns that a changelog must have before its data."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from historian.changelog.validation.findings import Finding, Profile, Rule

__all__ = ["check_columns"]


def check_columns(schema: pa.Schema, profile: Profile, *, any_unit: bool = False) -> tuple[Finding, ...]:
    """What is wrong with a changelog's columns.

    Args:
        schema: of the changelog.
        profile: that it is held to.
        any_unit: whether timestamps may have any unit, as in Spark, which has one alone.
    """
    return tuple(_findings(schema, profile, any_unit=any_unit))


def _findings(schema: pa.Schema, profile: Profile, *, any_unit: bool) -> Iterator[Finding]:
    wanted = profile.system_columns
    if tuple(schema.names[: len(wanted)]) != wanted:
        found = ", ".join(schema.names[: len(wanted)])
        yield Finding(rule=Rule.COLUMNS, offset=None, expected=f"first {', '.join(wanted)}", found=found)
    repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if repeated:
        yield Finding(rule=Rule.COLUMNS, offset=None, expected="each name once", found=f"{', '.join(repeated)} again")
    types = _types(profile)
    for name in wanted:
        at = schema.get_field_index(name)
        if at < 0:
            continue  # told above
        kind = schema.field(at).type
        fits = kind in types[name]
        if not fits and any_unit and pa.types.is_timestamp(kind):
            fits = any(pa.types.is_timestamp(each) and each.tz == kind.tz for each in types[name])
        if not fits:
            expected = f"{name} as {' or '.join(map(str, types[name]))}"
            yield Finding(rule=Rule.COLUMNS, offset=None, expected=expected, found=str(kind))


def _types(profile: Profile) -> dict[str, tuple[pa.DataType, ...]]:
    codes = (pa.uint8(), pa.int32())
    if profile is Profile.BINLOG:
        time = (pa.timestamp("us", tz="UTC"),)
        return {
            "offset": (pa.int64(),),
            "op": codes,
            "system_time": time,
            "event_time": time,
            "schema_version": (pa.int64(),),
        }
    # The specification has uint64; readers of Parquet files that know no unsigned numbers made int64 as good.
    time = (pa.timestamp("ms", tz="UTC"),)
    dates = (pa.date32(), pa.date64())
    return {"offset": (pa.int64(), pa.uint64()), "op": codes, "system_time": time, "event_time": (*time, *dates)}
