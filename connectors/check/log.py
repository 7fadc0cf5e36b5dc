"""Checks of the log itself: whether what a run would read first is still there, and whether files make one log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING

from connectors.check.result import CheckResult, failed, ok, warning
from connectors.config import BinlogFilesSource, PipelineConfig
from connectors.tracking.continuity import Continuity
from connectors.tracking.first_schema import origin_of
from connectors.tracking.recorded import reached_plan, recorded_store
from historian.errors import HistorianError, LogReplaced
from historian.positions import KAFKA

if TYPE_CHECKING:
    from connectors.readers.base import Reader

__all__ = ["file_checks", "position_check"]

_START = "start position"
_MEND_LOST = "restore the missing binlogs; where they were purged for good, `historian heal CONFIG --lost-log` goes on without them"


def position_check(config: PipelineConfig, reader: Reader) -> CheckResult:
    """Whether the log holds everything behind the place where a run would go on, or else begin."""
    with ExitStack() as stack:
        try:
            store = recorded_store(config)
            if store is not None:
                stack.callback(store.close)
            plan = None if store is None else reached_plan(store)
        except HistorianError as error:
            return failed("history store", str(error), "a store that can be opened", "correct history.store")
        try:
            if store is not None and plan is not None:
                Continuity(store, reader).check()
                reader.locate(plan.end)
                return ok(_START, f"goes on behind {plan.end}, which the log holds")
            start = config.source.start
            place = origin_of(reader, start)
            if start not in ("initial", "initial_only", "earliest", "latest"):
                return ok(_START, f"begins behind {start}, which the log holds")
            at = place.gtids if place.flavor == KAFKA else f"{place.at}{f', {place.gtids}' if place.gtids else ''}"
            return ok(_START, f"{start}: {at or 'no messages yet'}")
        except LogReplaced as error:  # what was read is no part of this log, so there is nothing to go on behind
            return failed(_START, str(error), "the log that was read", error.next_step or "")
        except HistorianError as error:
            mend = _MEND_LOST if plan is not None else "choose another source.start"
            return failed(_START, str(error), "a position whose log is all there", mend)


def file_checks(source: BinlogFilesSource) -> Iterator[CheckResult]:
    """Whether the files are binlogs of the flavor configured, and follow each other without a gap."""
    from connectors.readers.binlog.transport.files import list_files, read_head

    name = "binlog files"
    try:
        files = list_files(source.paths())
        heads = [read_head(file) for file in files]
    except HistorianError as error:
        yield failed(name, str(error), "binlog files that can be read", "copy them from the server again")
        return
    yield ok(name, f"{len(files)}, {files[0].name} to {files[-1].name}, of {heads[-1].format.server_version}")
    for file, head in zip(files, heads, strict=True):
        if head.format.flavor != source.flavor:
            mend = f"source.flavor: {head.format.flavor}"
            yield failed("flavor", f"{file.name} is of {head.format.server_version}", source.flavor, mend)
            break
    for before, after in pairwise(files):
        if after.number != before.number + 1:
            found = f"{after.name} follows {before.name}"
            yield failed("gaps", found, "consecutive numbers", "add the files between them")
    if heads[0].gtids and source.schema is None:
        found = f"{files[0].name} is not the server's first: {heads[0].gtids} came before"
        expected = "all binlogs from the first, or the tables' schemas: those whose CREATE is earlier are not known"
        yield warning("first file", found, expected, "source.schema: an SQL file with the tables at that point")
