"""What copying rows needs of a server, where the connector does so."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from connectors.backfill.busy import limits_of, measured
from connectors.check.privileges import has_privilege
from connectors.check.result import CheckResult, failed, ok
from connectors.check.server import QuestionDenied, ServerView
from connectors.config import ServerSource

__all__ = ["copy_checks", "pause_checks"]

_GRANTS = {
    "history_list_length": "PROCESS",
    "replica_lag_seconds": "REPLICATION CLIENT",
}
_MARIADB_GRANTS = {"replica_lag_seconds": "SLAVE MONITOR"}


def copy_checks(source: ServerSource, server: ServerView) -> Iterator[CheckResult]:
    """Whether rows can be read as of a position, and brought back to it by the log."""
    mode = server.variable("gtid_mode") or "OFF"
    if source.flavor == "mysql" and mode == "OFF" and not has_privilege(server, "PROCESS"):
        found = f"gtid_mode=OFF, and {server.account()} has no PROCESS"
        expected = "PROCESS, or gtid_mode=ON: without GTIDs the server is asked which transactions are being committed"
        yield failed("first copy", found, expected, f"GRANT PROCESS ON *.* TO {server.account()}")
    elif source.flavor == "mysql" and mode not in ("ON", "OFF"):
        expected = "gtid_mode=ON or OFF: else the server does not tell which transactions a SELECT sees"
        mend = "switch GTIDs on, or say source.start: earliest or changes_only"
        yield failed("first copy", f"gtid_mode={mode}", expected, mend)
    image = server.variable("binlog_row_image")
    if image is not None and image != "FULL":
        expected = "binlog_row_image=FULL: a row that changes while it is copied is brought back by its whole image before the change"
        yield failed("first copy", f"binlog_row_image={image}", expected, server.set_global("binlog_row_image", "FULL"))


def pause_checks(source: ServerSource, server: ServerView) -> Iterator[CheckResult]:
    """Whether *server*, which rows are read from, tells the measures above which copies wait."""
    for name, limit in limits_of(source.backfill.pause_above).items():
        key = f"pause_above.{name}"
        try:
            found = server.asked(partial(measured, flavor=source.flavor, name=name), name)
        except QuestionDenied as error:
            grants = {**_GRANTS, **(_MARIADB_GRANTS if source.flavor == "mariadb" else {})}
            mend = f"GRANT {grants.get(name, 'PROCESS')} ON *.* TO {server.account()}"
            yield failed(key, str(error.found), "a user who may ask for it", mend)
            continue
        if found is not None:
            yield ok(key, f"{found}; copies wait above {limit}")
        elif name == "replica_lag_seconds":
            yield failed(key, "the server follows no source", "a replica whose replication runs", f"take {key} out")
        else:
            mend = f"SET GLOBAL innodb_monitor_enable = 'trx_rseg_history_len', or take {key} out"
            yield failed(key, "the server does not count it", "the count, from information_schema.innodb_metrics", mend)
