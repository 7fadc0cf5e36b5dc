"""Preflight: can this configuration run, and would the data be right? Each failed check names what mends it.

Checks that a run makes by itself while it reads do not belong here (:mod:`connectors.tracking`).

Open to other rooms: ``draft``, ``rules``, ``server``, ``settings``, ``sizes``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING

from connectors.check.result import CheckResult, failed, ok
from connectors.config import BinlogFilesSource, KafkaSource, PipelineConfig, ServerSource, SourceConfig
from historian.errors import HistorianError, SourceError

if TYPE_CHECKING:
    from connectors.check.server import ServerView

__all__ = ["CheckResult", "require", "run_checks"]


def run_checks(config: PipelineConfig) -> tuple[CheckResult, ...]:
    """Every check that applies, in the order they are shown. Never raises for what a check is about.

    Reads only, but for an object that is put below a lake's path in S3 and removed again.
    """
    from connectors.check.places import place_checks, syntax_checks

    results: list[CheckResult] = []
    try:
        results.extend(_results(config, tells_all=True))
    except SourceError as error:
        expected = "a server that answers, and lets the user in"
        results.append(failed("server", str(error), expected, error.next_step or "correct source.host and source.port"))
    return (*results, *place_checks(config), *syntax_checks(config.sinks))


def require(config: PipelineConfig) -> None:
    """Lets a run begin whose data would be right.

    Raises:
        SourceError: with each failed check; or what kept the server from being asked, retryable where that is.
    """
    wrong = [result for result in _results(config, tells_all=False) if result.status == "failed"]
    if wrong:
        lines = [f"\n  {r.name}: {r.found}\n    expected {r.expected}\n    mend: {r.mend}" for r in wrong]
        raise SourceError(
            "the source does not meet what a right copy needs",
            where=config.name,
            found="".join(lines),
            next_step="mend it, then look again with `historian check`",
        )


def _results(config: PipelineConfig, *, tells_all: bool) -> Iterator[CheckResult]:
    """Checks of the source; without *tells_all* those that only warn, and read the log for it, are left out."""
    from connectors.check.log import position_check
    from connectors.tracking.sources import make_reader

    source = config.source
    results = tuple(_source_results(config, source))
    yield from results
    if any(result.status == "failed" and result.name in _NO_LOG for result in results):
        return
    with closing(make_reader(source)) as reader:
        position = position_check(config, reader)
        yield position
        if tells_all and isinstance(source, KafkaSource) and position.status == "ok":
            from connectors.check.topics import retention_checks

            yield from retention_checks(config, reader)


_NO_LOG = ("flavor", "log_bin", "replication privileges", "binlog files", "gaps", "topics", "rights")
"""Checks without which the log cannot be asked for a position."""


def _source_results(config: PipelineConfig, source: SourceConfig) -> Iterator[CheckResult]:
    from connectors.check.log import file_checks

    match source:
        case ServerSource():
            return _server_results(config, source)
        case BinlogFilesSource():
            return file_checks(source)
        case KafkaSource():
            from connectors.check.topics import topic_checks

            return topic_checks(source)


def _server_results(config: PipelineConfig, source: ServerSource) -> Iterator[CheckResult]:
    from connectors.check.capacity import connections_check, version_check
    from connectors.check.copies import copy_checks
    from connectors.check.privileges import privilege_checks
    from connectors.check.server import ServerView
    from connectors.check.settings import SETTINGS_CHECKS
    from connectors.check.tables import table_checks
    from connectors.tracking.sources import server_address

    address = server_address(source)
    with closing(address.connect()) as connection:
        server = ServerView.of(source, connection)
        yield ok("server", f"{server.version_text} at {address}")
        if server.flavor != source.flavor:
            yield failed("flavor", server.flavor, source.flavor, f"source.type: {server.flavor}")
            return
        yield version_check(server)
        if server.variable("log_bin") != "ON":
            mend = "log_bin=binlog among the server's options, then restart it"
            yield failed("log_bin", "OFF", "ON: without a binlog there is nothing to read", mend)
            return
        yield from privilege_checks(server)
        yield from (result for check in SETTINGS_CHECKS if (result := check(server)) is not None)
        room = connections_check(server)
        if room is not None:
            yield room
        copies = _copies_rows(config)
        if copies:
            yield from copy_checks(source, server)
            yield from _row_server_checks(source, server)
        yield from table_checks(server, config.sinks, copies=copies)


def _row_server_checks(source: ServerSource, server: ServerView) -> Iterator[CheckResult]:
    """Checks of the server that rows are copied from: a replica, or the source itself."""
    from connectors.backfill.replica import replica_of
    from connectors.check.copies import pause_checks
    from connectors.check.replica import replica_checks
    from connectors.check.server import ServerView

    at = replica_of(source)
    if at is None:
        yield from pause_checks(source, server)
        return
    try:
        connection = at.address.connect()
    except SourceError as error:
        mend = "correct source.backfill.server, or take it out"
        yield failed("backfill.server", str(error), "a replica that answers, and lets the user in", mend)
        return
    with closing(connection):
        replica = ServerView.of(source, connection)
        yield from replica_checks(source, server, replica)
        yield from pause_checks(source, replica)


def _copies_rows(config: PipelineConfig) -> bool:
    from connectors.tracking.copier import copies_rows
    from connectors.tracking.recorded import recorded_store

    try:
        store = recorded_store(config)
        with nullcontext() if store is None else closing(store):
            return copies_rows(config.source, store)
    except HistorianError:  # the check of the position tells of such a store
        return copies_rows(config.source, None)
