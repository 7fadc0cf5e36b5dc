"""Checks of a server's global settings. Each takes a server and gives one result, or None where it does not apply."""

from __future__ import annotations

from collections.abc import Callable

from connectors.check.result import CheckResult, failed, ok, warning
from connectors.check.server import ServerView

__all__ = ["SETTINGS_CHECKS", "retention_s"]

_AT_AMAZON = "binlog retention hours"
_AT_ONCE_H = 1e-9
_AMAZON = "SELECT 1 FROM information_schema.tables WHERE table_schema = 'mysql' AND table_name = 'rds_configuration'"
_DAY_S = 86_400
_UNTOLD_ZONE = (
    "Of a column that is added with a moment as its default, rows from before have a value that the log does not tell"
)
_SESSIONS = "a session that may set its own is not seen here; a captured table that it changes is stopped"


def _row_format(server: ServerView) -> CheckResult | None:
    found = server.variable("binlog_format")
    if found is None:
        return None
    if found == "ROW":
        return ok("binlog_format", f"ROW ({_SESSIONS})")
    mend = server.set_global("binlog_format", "ROW") + "; then let clients connect anew"
    return failed("binlog_format", found, "ROW: other formats log statements, which say nothing of rows", mend)


def _row_image(server: ServerView) -> CheckResult | None:
    found = server.variable("binlog_row_image")
    if found is None or found == "FULL":
        return None if found is None else ok("binlog_row_image", found)
    mend = server.set_global("binlog_row_image", "FULL") + "; then let clients connect anew"
    expected = (
        "FULL: changelogs name the columns that images lack, and a mirror needs all rows from the table's beginning"
    )
    if server.flavor == "mariadb" and found != "FULL_NODUP":
        expected += "; of REPLACE these images lack what goes back to its default, so that even replicas differ"
    return warning("binlog_row_image", found, expected, mend)


def _gtid_mode(server: ServerView) -> CheckResult | None:
    if server.flavor != "mysql":
        return None
    found = server.variable("gtid_mode") or "OFF"
    steps = "SET GLOBAL enforce_gtid_consistency = ON, then gtid_mode = OFF_PERMISSIVE, ON_PERMISSIVE, ON, one by one"
    if found == "ON":
        return ok("gtid_mode", found)
    if found == "OFF":
        return warning("gtid_mode", found, "ON: file and offset hold on this server only, so no failover", steps)
    return failed("gtid_mode", found, "ON or OFF: the log may mix transactions with and without GTID", steps)


def _gtid_strict_mode(server: ServerView) -> CheckResult | None:
    if server.flavor != "mariadb":
        return None
    why = "a position stands for all sequence numbers before it only while they ascend"
    return _recommended(server, "gtid_strict_mode", "OFF", "ON", why)


def _row_value_options(server: ServerView) -> CheckResult | None:
    found = server.variable("binlog_row_value_options")
    if not found:
        return None if found is None else ok("binlog_row_value_options", "empty")
    if server.variable("binlog_row_image") == "FULL":
        return ok("binlog_row_value_options", found)
    mend = server.set_global("binlog_row_value_options", "''") + "; then let clients connect anew"
    expected = "empty, unless binlog_row_image is FULL: a JSON diff says nothing without the document before it"
    return warning("binlog_row_value_options", found, expected, mend)


def _sync_binlog(server: ServerView) -> CheckResult:
    why = "else a crash can take transactions out of the log that were read from it"
    return _recommended(server, "sync_binlog", "0", "1", why)


def _checksum(server: ServerView) -> CheckResult:
    return _recommended(server, "binlog_checksum", "NONE", "CRC32", "without it damaged events are not noticed")


def _recommended(server: ServerView, name: str, default: str, recommended: str, why: str) -> CheckResult:
    found = server.variable(name) or default
    if found == recommended:
        return ok(name, found)
    return warning(name, found, f"{recommended}: {why}", server.set_global(name, recommended))


def retention_s(server: ServerView) -> float:
    """For how many seconds binlogs are kept; 0: until someone purges them."""
    return _kept(server)[1]


def _kept(server: ServerView) -> tuple[str, float]:
    """The setting that says how long binlogs are kept, and that in seconds."""
    hours = _hours_at_amazon(server)
    if hours is not None:
        return _AT_AMAZON, hours * 3600
    name = "binlog_expire_logs_seconds"
    seconds = float(server.variable(name) or 0)
    if not seconds:
        days = float(server.variable("expire_logs_days") or 0)
        name, seconds = ("expire_logs_days", days * _DAY_S) if days else (name, 0.0)
    return name, seconds


def _hours_at_amazon(server: ServerView) -> float | None:
    """What Amazon RDS keeps binlogs for, whatever the server's own variables say; None: it is none, or does not tell."""
    if not server.rows(_AMAZON):
        return None
    answer = server.rows_if_allowed("SELECT value FROM mysql.rds_configuration WHERE name = 'binlog retention hours'")
    # Without a value they go as soon as no replica of Amazon's needs them.
    return None if not answer else float(answer[0]["value"] or _AT_ONCE_H)


def _retention(server: ServerView) -> CheckResult:
    name, seconds = _kept(server)
    if name == _AT_AMAZON and seconds < _DAY_S:
        found = f"{name}: {seconds / 3600:g}" if seconds >= 1 else f"{name}: NULL, so they are purged at once"
        expected = "a day or more: a pause longer than this loses the place in the log"
        return warning("retention", found, expected, f"CALL mysql.rds_set_configuration('{name}', 168)")
    size_bytes = server.variable("max_binlog_total_size") or "0"
    if size_bytes != "0":
        found = f"max_binlog_total_size {size_bytes}"
        expected = "0: with a limit, a busy hour can purge what was not read yet"
        return warning("retention", found, expected, server.set_global("max_binlog_total_size", "0"))
    if not seconds:
        return ok("retention", "binlogs are kept until someone purges them")
    if seconds >= _DAY_S:
        return ok("retention", f"{name}: {seconds / _DAY_S:g} days")
    expected = "a day or more: a pause longer than this loses the place in the log"
    value = "7" if name == "expire_logs_days" else str(7 * _DAY_S)
    return warning("retention", f"{name}: {seconds / 3600:g} hours", expected, server.set_global(name, value))


def _log_filters(server: ServerView) -> CheckResult | None:
    names = {"binlog_do_db": "binlog-do-db", "binlog_ignore_db": "binlog-ignore-db"}
    question = "SHOW BINARY LOG STATUS" if server.is_mysql(8, 2) else "SHOW MASTER STATUS"
    answer = server.rows_if_allowed(question)
    if answer is None:
        return None  # the check of privileges has said why
    status = next(iter(answer), {})
    found = [f"{option}={status[column]}" for column, option in names.items() if status.get(column)]
    if not found:
        return ok("log_filters", "all databases are logged")
    expected = "no filter: DDL on a captured table can be missing from the log"
    return failed(
        "log_filters", ", ".join(found), expected, f"take {', '.join(names.values())} out of the server's options"
    )


def _replica_updates(server: ServerView) -> CheckResult | None:
    logged = server.variable("log_replica_updates") or server.variable("log_slave_updates")
    if logged != "OFF":
        return None
    new = server.is_mysql(8, 0, 22)
    name = "log_replica_updates" if new else "log_slave_updates"
    upstream = server.rows_if_allowed("SHOW REPLICA STATUS" if new else "SHOW SLAVE STATUS")
    expected, mend = "ON: what it replicates is not in its own log", f"{name}=ON among the server's options"
    if upstream is None:
        return warning(name, "OFF; the user cannot see whether this is a replica", f"if it is one, {expected}", mend)
    return failed(name, "OFF on a replica", expected, mend) if upstream else None


def _server_ids(server: ServerView) -> CheckResult:
    ids = server.source.server_ids
    own = int(server.variable("server_id") or 0)
    if not own:
        expected = "a number that no other server has: one without refuses who reads its log"
        return failed("server_id", "the server has none", expected, server.set_global("server_id", "1"))
    expected = "ids that nobody else uses: the server cuts off the older of two connections with one id"
    mend = "choose another range for source.server_id"
    if own in ids:
        return failed("server_id", f"{ids} holds the server's own id, {own}", expected, mend)
    new = server.is_mysql(8, 0, 22)
    replicas = server.rows_if_allowed("SHOW REPLICAS" if new else "SHOW SLAVE HOSTS") or ()
    taken = [number for number in (int(row["server_id"]) for row in replicas) if number in ids]
    if taken:
        found = f"{ids}; connected with such an id: {', '.join(map(str, taken))}"
        return warning("server_id", found, f"{expected} (a run of this connector is no harm)", mend)
    return ok("server_id", str(ids))


def _time_zone(server: ServerView) -> CheckResult:
    """Nothing has to be configured: values need no zone. Of a named one the log has the name alone, and what it means can change."""
    zone = server.variable("time_zone") or "SYSTEM"
    named = f" ({server.variable('system_time_zone')})" if zone == "SYSTEM" else ""
    found = f"{zone}{named}; the log has TIMESTAMPs in UTC, and DATETIMEs as they were written"
    if zone.upper() != "UTC" and zone[0] not in "+-":
        found += f". {_UNTOLD_ZONE}"
    return ok("time_zone", found)


def _encrypted_connection(server: ServerView) -> CheckResult:
    cipher = next(iter(server.rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'")), {}).get("value")
    if cipher:
        return ok("tls", f"{cipher}, mode {server.source.tls.mode}")
    if server.source.host in ("127.0.0.1", "localhost", "::1"):
        return ok("tls", "not encrypted, on this machine")
    expected = "an encrypted connection: rows and statements are readable on the way"
    return warning("tls", f"not encrypted, mode {server.source.tls.mode}", expected, "source.tls.mode: verify_identity")


SETTINGS_CHECKS: tuple[Callable[[ServerView], CheckResult | None], ...] = (
    _encrypted_connection,
    _row_format,
    _row_image,
    _gtid_mode,
    _gtid_strict_mode,
    _row_value_options,
    _log_filters,
    _replica_updates,
    _sync_binlog,
    _checksum,
    _retention,
    _server_ids,
    _time_zone,
)
"""In the order they are shown. They need a server that writes a binlog."""
