"""Places between two steps of a write where a test can end the run.

In order: ``schema_changes_recorded``, ``plan_recorded``, ``tables_recorded`` (the lake's state); for each round of
segments ``files_written`` (Parquet files are there, no table knows them); for each table ``history_prepared`` (schema
and offsets, before a merge), ``history_filled`` (defaults on open rows), ``history_committed``, ``changelog_committed``, ``mirror_schema_committed``,
``mirror_filled`` (defaults on old rows), ``mirror_committed``; last ``plan_written``.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["PLACES", "arm", "disarm", "reached"]

PLACES = (
    "schema_changes_recorded",
    "plan_recorded",
    "tables_recorded",
    "letters_recorded",
    "files_written",
    "history_prepared",
    "history_filled",
    "history_committed",
    "changelog_committed",
    "mirror_schema_committed",
    "mirror_filled",
    "mirror_committed",
    "plan_written",
)

_armed: list[Callable[[str], None]] = []


def arm(fault: Callable[[str], None]) -> None:
    """Calls *fault* with the name of every place that a write reaches, until :func:`disarm`."""
    _armed[:] = [fault]


def disarm() -> None:
    """Writes run undisturbed again."""
    _armed.clear()


def reached(place: str) -> None:
    """Marks a place; does nothing unless a test armed a fault."""
    for fault in _armed:
        fault(place)
