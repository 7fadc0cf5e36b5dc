"""Places between two steps of a write where a test can end the run.

:data:`PLACES` is the table of them, and the crash tests end a run at every one that a write reaches. A new step of a write needs a line in it and a call of :func:`reached`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

__all__ = ["PLACES", "arm", "arm_at", "disarm", "reached"]

PLACES: Mapping[str, str] = {
    # Of any commit.
    "file_written": "a Parquet file is there that the driver wrote; no table knows it",
    "commit_begun": "all that a commit of Kernel's needs is there, and its log entry is not",
    "commit_done": "the log entry is there, what Kernel does behind it is not",
    "checkpoint_begun": "a checkpoint of the log is due",
    "checkpoint_done": "the checkpoint is there",
    "statement_begun": "an UPDATE or MERGE of Spark's is about to run",
    "statement_done": "its commit is there, nobody has looked at it",
    "file_deleted": "a file is deleted that no table knows",
    # Of the lake's own tables.
    "schema_changes_recorded": "the schema changes of the plan are in the lake",
    "plan_recorded": "the plan is in the lake, no target has any of it",
    "tables_recorded": "the lake knows where each table's rows go",
    "letters_recorded": "dead letters are in their table",
    "target_brought_back": "a mirror or a history that was behind its changelog stands where that does",
    "repairs_recorded": "what repairs found is in their table; no target has it",
    # Of each target that begins with what another one held.
    "seed_made": "the table is there, with the next offset, and holds nothing",
    "seed_written": "files have the rows that the other one held; no table knows them",
    "seed_committed": "it holds them",
    # Of each round of segments.
    "retractions_written": "files have the rows that a statement takes back; no table knows them",
    "files_written": "files have all rows of the round; no table knows them",
    # Of each table of a round.
    "history_prepared": "schema and offsets of a history, before its merge",
    "history_filled": "open rows read the defaults of added columns",
    "history_committed": "the history holds the part",
    "changelog_prepared": "schema and offsets of a changelog, before Spark appends to it",
    "changelog_committed": "the changelog holds it",
    "mirror_taken_up": "files have a mirror's rows with the net change; no table knows them",
    "mirror_cleared": "a mirror with a change data feed has lost all rows, before new ones come",
    "mirror_schema_committed": "the schema of a mirror, before its merge",
    "mirror_filled": "old rows read the defaults of added columns",
    "mirror_committed": "the mirror holds it",
    # Behind all of them.
    "compaction_written": "files have the rows of small ones; no table knows them",
    "compaction_committed": "they took the place of those",
    "compaction_optimized": "OPTIMIZE joined small files, nobody has looked at it",
    "catalog_changed": "a table of the catalog was made or renamed",
    "plan_written": "every target holds the plan",
}
"""Name of each place, and how things stand there."""

_armed: list[Callable[[str, str], None]] = []


def arm(fault: Callable[[str], None]) -> None:
    """Calls *fault* with the name of every place that a write reaches, until :func:`disarm`."""
    arm_at(lambda place, at: fault(place))  # noqa: ARG005 its name is enough for that one


def arm_at(fault: Callable[[str, str], None]) -> None:
    """The same with what the write is at work on there; threads that write side by side call it each for itself."""
    _armed[:] = [fault]


def disarm() -> None:
    """Writes run undisturbed again."""
    _armed.clear()


def reached(place: str, at: str = "") -> None:
    """Marks a place; does nothing unless a test armed a fault.

    Args:
        place: one of :data:`PLACES`.
        at: what tells this place from others of that name in the plan; the same when the plan comes again.
    """
    for fault in _armed:
        if place not in PLACES:
            raise ValueError(f"a place that is not in the table of them: {place}")
        fault(place, at)
