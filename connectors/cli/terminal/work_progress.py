"""How far the work of commands is that tells by itself: a log that is read, and the tasks of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from connectors.cli.terminal.kernels import compile_first
from connectors.cli.terminal.progress import Progress, can_be_live, progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.readers.base import Reader
    from historian.positions import LogPosition

__all__ = ["log_progress", "spark_progress"]


@contextmanager
def log_progress(what: str, reader: Reader, start: LogPosition, end: LogPosition | None = None) -> Iterator[Progress]:
    """Draws inside the ``with`` how much of the log between two positions *reader* has scanned; *end*: None: its present end."""
    if not can_be_live():
        yield Progress(what)
        return
    compile_first()
    total = reader.waiting_bytes(start) - (0 if end is None else reader.waiting_bytes(end))
    last = start
    with progress(what, total if total > 0 else None) as told:

        def note(position: LogPosition) -> None:
            nonlocal last
            # A bound stands at the end of each file. A part that is read a second time does not count.
            before = last.offset if position.file == last.file else 0
            told.reach(told.done + max(0, position.offset - before))
            last = position

        reader.on_bound = note
        try:
            yield told
        finally:
            reader.on_bound = None


@contextmanager
def spark_progress(what: str, spark: SparkSession) -> Iterator[Progress]:
    """Draws inside the ``with`` how many tasks of Spark's jobs are done: of those that have begun, and what they know to be theirs."""
    with progress(what) as told:
        stages: dict[int, tuple[int, int]] = {}
        tracker = spark.sparkContext.statusTracker()

        def look() -> None:
            for job in tracker.getActiveJobsIds():
                info = tracker.getJobInfo(job)
                for stage in () if info is None else info.stageIds:
                    found = tracker.getStageInfo(stage)
                    if found is not None:
                        stages[stage] = (found.numCompletedTasks, found.numTasks)
            active = set(tracker.getActiveStageIds())
            # Of a stage that has ended since the last look all tasks are done.
            ended = {stage: tasks for stage, tasks in stages.items() if stage not in active and tasks[0] > 0}
            stages.update({stage: (tasks, tasks) for stage, (_, tasks) in ended.items()})
            told.done = sum(done for done, _ in stages.values())
            told.total = sum(tasks for _, tasks in stages.values()) or None

        told.look = look
        try:
            yield told
        finally:
            told.look = None
