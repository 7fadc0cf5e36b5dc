"""Versions, columns and changes as commands print them: JSON forms and texts."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from historian.schema.snapshots import Column, Snapshot

if TYPE_CHECKING:
    from historian.history.timeline import TimelineEntry
    from historian.history.versions import Version
    from historian.schema.diff import Difference

__all__ = [
    "change_form",
    "change_text",
    "column_form",
    "columns_form",
    "entry_form",
    "place_text",
    "version_form",
]


def place_text(entry: TimelineEntry) -> str:
    """Where a statement stands: its GTID, else file and offset; of a capture, the position that it holds from."""
    return str(entry.position if entry.place is None else entry.place)


def entry_form(entry: TimelineEntry) -> dict[str, Any]:
    """Number, place, time and statement of a timeline entry."""
    time = datetime.fromtimestamp(entry.event_time_us / 1e6, timezone.utc) if entry.event_time_us else None
    return {
        "version": entry.number,
        "position": place_text(entry),
        "ordinal": 0 if entry.place is None else entry.place.ordinal,
        "time": None if time is None else time.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "statement": entry.statement or None,
    }


def version_form(version: Version) -> dict[str, Any]:
    """A version with its columns; ``columns`` is null where the table went or is not known."""
    return {
        **entry_form(version.entry),
        "unknown": version.unknown,
        "columns": columns_form(version.snapshot),
    }


def columns_form(snapshot: Snapshot | None) -> list[dict[str, Any]] | None:
    """The columns of a table in order, or None."""
    return None if snapshot is None else [column_form(snapshot, column) for column in snapshot.columns]


def column_form(snapshot: Snapshot, column: Column) -> dict[str, Any]:
    """One column of a table."""
    return {
        "id": column.id,
        "name": column.name,
        "type": str(column.type),
        "charset": column.type.charset,
        "nullable": column.nullable,
        "default": column.default,
        "primary_key": column.id in snapshot.primary_key,
    }


def change_form(change: Difference) -> dict[str, Any]:
    """One difference; a side that says nothing is left out."""
    one_sided = {"created": "before", "added": "before", "captured": "before", "dropped": "after"}.get(change.change)
    form = {"change": change.change, "column": change.column, "before": change.before, "after": change.after}
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in form.items()
        if key != one_sided and not (key == "column" and value is None)
    }


def change_text(change: Difference) -> str:
    """The same as one line."""
    return " ".join(_text(value) for value in change_form(change).values())


def _text(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    return str(value)
