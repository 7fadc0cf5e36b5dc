"""Whole changelogs with system columns, in both profiles, made of random changes."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from historian.changelog.operations import Op
from historian.changelog.validation import Profile
from models.changes import DATA, KEY, SCHEMA, Row, batch, rows_of

__all__ = ["START_MS", "changelog_of", "random_changelog", "state_of"]

START_MS = 1_700_000_000_000


def random_changelog(
    seed: int, steps: int, profile: Profile = Profile.BINLOG, *, before: int = 0
) -> tuple[pa.Table, pa.Table]:
    """A random changelog that keeps the rules of *profile*, and the rows before it, with their event time."""
    random, held = Random(seed), dict[Row, Row]()
    rows_of(random, before, held)
    former = [*held.values()]
    rows = changelog_of(rows_of(random, steps, held), profile, former=former)
    return rows, state_of(former)


def state_of(rows: list[Row]) -> pa.Table:
    """Rows of the data columns, with the event time that :func:`changelog_of` gives to rows before."""
    table = pa.Table.from_batches([batch([(0, *row) for row in rows])]).select(list(DATA))
    return table.add_column(0, "event_time", pa.array([START_MS - 1] * len(rows), pa.timestamp("ms", tz="UTC")))


def changelog_of(rows: list[Row], profile: Profile, former: list[Row] | None = None) -> pa.Table:
    """``(op, k, l, v, w)`` with system columns; each change has a time of its own, in the ODF profile until taken back."""
    times = {row[: len(KEY)]: START_MS - 1 for row in former or []}
    event_ms = []
    for at, row in enumerate(rows):
        key, own = row[1 : 1 + len(KEY)], START_MS + at * 10
        takes = row[0] in (Op.RETRACT, Op.CORRECT_FROM)
        event_ms.append(times.get(key, own) if takes and profile is Profile.ODF else own)
        times[key] = own
    table = pa.Table.from_batches([batch(rows)])
    unit = pa.timestamp("us" if profile is Profile.BINLOG else "ms", tz="UTC")
    factor = 1000 if profile is Profile.BINLOG else 1
    system = [
        pa.array([START_MS * factor] * len(rows), unit),
        pa.array([time * factor for time in event_ms], unit),
    ]
    names = ["system_time", "event_time"]
    if profile is Profile.BINLOG:
        system.append(pa.array([1] * len(rows), pa.int64()))
        names.append("schema_version")
    columns = [table.column("offset"), table.column("op"), *system, *(table.column(name) for name in DATA)]
    assert ["offset", "op", *DATA] == SCHEMA.names
    return pa.table(columns, names=["offset", "op", *names, *DATA])
