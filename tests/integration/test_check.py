"""Preflight on real servers: a plain server passes, and each thing that is wrong is named with what mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from connectors.check import CheckResult, require, run_checks
from connectors.config import PipelineConfig, load_config
from databases.servers import Server, global_setting
from historian.errors import SourceError
from logs.image_lab import has_whole_images

Results = dict[str, CheckResult]
FRESH = ["mysql9", "mysql8", "mysql57", "mariadb105", "mariadb1011", "mariadb118"]


def _config(directory: Path, server: Server, sinks: str = "", **settings: str) -> PipelineConfig:
    words = {
        "type": server.flavor,
        "host": server.host,
        "port": str(server.port),
        "user": server.user,
        "password": server.password,
        "tables": "['check_it.*']",
        "start": "latest",
        **settings,
    }
    file = directory / "pipeline.yaml"
    source = "".join(f"  {key}: {value}\n" for key, value in words.items())
    file.write_text(f"name: check\nsource:\n{source}" + (f"sinks: [{sinks}]\n" if sinks else ""))
    return load_config(file)


def _results(directory: Path, server: Server, sinks: str = "", **settings: str) -> Results:
    found = run_checks(_config(directory, server, sinks, **settings))
    assert len({result.name for result in found}) == len(found)
    return {result.name: result for result in found}


def _not_ok(results: Results) -> dict[str, str]:
    return {name: result.status for name, result in results.items() if result.status != "ok"}


@pytest.fixture
def database(server: Server) -> Iterator[Server]:
    server.sql("DROP DATABASE IF EXISTS check_it")
    server.sql("CREATE DATABASE check_it")
    server.sql("CREATE TABLE check_it.orders (id INT PRIMARY KEY, note TEXT)")
    yield server
    server.sql("DROP DATABASE check_it")


@contextmanager
def _user(server: Server, *grants: str) -> Iterator[dict[str, str]]:
    """Settings of a user who has just these privileges."""
    server.sql("DROP USER IF EXISTS checked")
    server.sql("CREATE USER checked IDENTIFIED BY 'checked'")
    for grant in grants:
        server.sql(f"GRANT {grant} TO checked")
    try:
        yield {"user": "checked", "password": "checked"}
    finally:
        server.sql("DROP USER checked")


def test_a_plain_server_passes(database: Server, tmp_path: Path) -> None:
    results = _results(tmp_path, database)

    assert {name for name, status in _not_ok(results).items() if status == "failed"} == set()
    assert set(_not_ok(results)) <= {"sync_binlog", "log_slave_updates"}
    assert database.version in results["server"].found
    assert results["tables"].found == "1 match check_it.*"
    require(_config(tmp_path, database))


def test_the_least_privileges_suffice(database: Server, tmp_path: Path) -> None:
    monitor = "BINLOG MONITOR" if database.flavor == "mariadb" else "REPLICATION CLIENT"
    with _user(database, f"SELECT, REPLICATION SLAVE, {monitor} ON *.*") as user:
        results = _results(tmp_path, database, **user)

    assert _not_ok(results).get("replication privileges") is None
    assert results["select privilege"].found == "on all tables"
    assert results["start position"].status == "ok"


def test_a_missing_replication_privilege_comes_with_its_grant(database: Server, tmp_path: Path) -> None:
    monitor = "BINLOG MONITOR" if database.flavor == "mariadb" else "REPLICATION CLIENT"
    with _user(database, f"SELECT, {monitor} ON *.*") as user:
        found = _results(tmp_path, database, **user)["replication privileges"]
        with pytest.raises(SourceError, match="has no REPLICATION SLAVE"):
            require(_config(tmp_path, database, **user))

    assert found == CheckResult(
        name="replication privileges",
        status="failed",
        found="'checked'@'%' has no REPLICATION SLAVE",
        expected=found.expected,
        mend="GRANT REPLICATION SLAVE ON *.* TO 'checked'@'%'",
    )


def test_a_user_without_any_privilege_is_told_all_of_them(database: Server, tmp_path: Path) -> None:
    monitor = "BINLOG MONITOR" if database.flavor == "mariadb" else "REPLICATION CLIENT"
    with _user(database) as user:
        results = _results(tmp_path, database, **user)

    assert results["replication privileges"].mend == f"GRANT REPLICATION SLAVE, {monitor} ON *.* TO 'checked'@'%'"
    assert results["select privilege"].status == "failed"
    assert results["select privilege"].mend == "GRANT SELECT ON *.* TO 'checked'@'%'"


def test_select_on_one_database_is_a_warning(database: Server, tmp_path: Path) -> None:
    with _user(database, "REPLICATION SLAVE, REPLICATION CLIENT ON *.*", "SELECT ON check_it.*") as user:
        found = _results(tmp_path, database, **user)["select privilege"]

    assert (found.status, found.found) == ("warning", "on check_it.* alone")


@pytest.mark.parametrize("name", ["mysql9", "mysql8", "mariadb105", "mariadb1011", "mariadb118"])
def test_privileges_of_an_active_role_count(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Server = request.getfixturevalue(name)
    server.sql("CREATE ROLE reader_of_logs")
    monitor = "BINLOG MONITOR" if server.flavor == "mariadb" else "REPLICATION CLIENT"
    server.sql(f"GRANT SELECT, REPLICATION SLAVE, {monitor} ON *.* TO reader_of_logs")
    try:
        with _user(server) as user:
            server.sql("GRANT reader_of_logs TO checked")
            inactive = _results(tmp_path, server, **user)["replication privileges"].status
            to = "FOR" if server.flavor == "mariadb" else "TO"
            server.sql(f"SET DEFAULT ROLE reader_of_logs {to} checked")
            active = _results(tmp_path, server, **user)
    finally:
        server.sql("DROP ROLE reader_of_logs")

    assert inactive == "failed"
    assert (active["replication privileges"].status, active["select privilege"].status) == ("ok", "ok")


def test_a_wrong_password_is_named_without_printing_it(database: Server, tmp_path: Path) -> None:
    results = _results(tmp_path, database, password="guessed-wrong")

    assert list(results) == ["server"]
    assert results["server"].status == "failed"
    assert results["server"].found.startswith("the server refuses the user or its password (historian@127.0.0.1:")
    assert "guessed-wrong" not in repr(results)


def test_a_server_of_the_other_flavor_is_named(database: Server, tmp_path: Path) -> None:
    other = "mysql" if database.flavor == "mariadb" else "mariadb"

    found = _results(tmp_path, database, type=other)["flavor"]

    assert (found.status, found.expected, found.mend) == ("failed", other, f"source.type: {database.flavor}")


@pytest.mark.parametrize("server", ["mysql57", "mariadb118"], indirect=True)
def test_a_compression_that_the_server_does_not_have_is_named(database: Server, tmp_path: Path) -> None:
    results = _results(tmp_path, database, compression="zstd")

    assert list(results) == ["server"]
    assert results["server"].status == "failed"
    assert results["server"].found.startswith("the server does not offer the compression that is asked for")
    assert "expected zstd; found zlib of " in results["server"].found
    assert results["server"].mend.startswith("set source.compression to zlib or none")
    assert _results(tmp_path, database, compression="zlib")["server"].status == "ok"


@pytest.mark.parametrize("value", ["STATEMENT", "MIXED"])
def test_a_statement_format_is_refused(database: Server, tmp_path: Path, value: str) -> None:
    with global_setting(database, "binlog_format", f"'{value}'"):
        found = _results(tmp_path, database)["binlog_format"]

    assert (found.status, found.found) == ("failed", value)
    word = "GLOBAL" if database.flavor == "mariadb" or database.version.startswith("5.7") else "PERSIST"
    assert found.mend == f"SET {word} binlog_format = ROW; then let clients connect anew"


@pytest.mark.parametrize(
    "variable, value, status",
    [
        ("binlog_row_image", "MINIMAL", "warning"),
        ("sync_binlog", "100", "warning"),
        ("binlog_checksum", "NONE", "warning"),
    ],
)
def test_a_setting_of_every_server_is_seen(
    database: Server, tmp_path: Path, variable: str, value: str, status: str
) -> None:
    with global_setting(database, variable, value):
        found = _results(tmp_path, database)[variable]

    assert (found.status, found.found) == (status, value)
    assert f"{variable} = " in found.mend


@pytest.mark.parametrize(
    "name, variable, value, check, status",
    [
        ("mysql8", "binlog_row_value_options", "'PARTIAL_JSON'", "binlog_row_value_options", "ok"),
        ("mysql9", "binlog_expire_logs_seconds", "3600", "retention", "warning"),
        ("mysql57", "expire_logs_days", "3", "retention", "ok"),
        ("mariadb1011", "gtid_strict_mode", "OFF", "gtid_strict_mode", "warning"),
        ("mariadb118", "max_binlog_total_size", "1048576", "retention", "warning"),
    ],
)
def test_a_setting_of_one_server_is_seen(
    name: str, variable: str, value: str, check: str, status: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    with global_setting(server, variable, value):
        found = _results(tmp_path, server)[check]

    assert found.status == status
    assert (status == "ok") == (found.mend == "")


def test_what_mends_a_setting_can_be_run(mysql9: Server, tmp_path: Path) -> None:
    with global_setting(mysql9, "binlog_row_image", "NOBLOB"), global_setting(mysql9, "sync_binlog", "7"):
        results = _results(tmp_path, mysql9)
        for name in ("binlog_row_image", "sync_binlog"):
            mysql9.sql(results[name].mend.split(";")[0])
        mended = _results(tmp_path, mysql9)
    mysql9.sql("RESET PERSIST")

    assert (mended["binlog_row_image"].status, mended["sync_binlog"].status) == ("ok", "ok")


def test_a_cascade_into_a_captured_table_is_refused_unless_accepted(database: Server, tmp_path: Path) -> None:
    database.sql(
        "CREATE TABLE check_it.items (id INT PRIMARY KEY, o INT, CONSTRAINT items_o FOREIGN KEY (o)"
        " REFERENCES check_it.orders (id) ON DELETE CASCADE ON UPDATE SET NULL)"
    )
    database.sql(
        "CREATE TABLE check_it.notes (id INT PRIMARY KEY, o INT, FOREIGN KEY (o) REFERENCES check_it.orders (id))"
    )
    logged = database.flavor == "mysql" and database.version.startswith("9")

    refused = _results(tmp_path, database)
    accepted = _results(tmp_path, database, accept_cascades="[check_it.items]")
    left_out = _results(tmp_path, database, tables="['check_it.*', '!check_it.items']")

    if logged:
        assert refused["cascades"].found == "are logged as row events by this server"
    else:
        found = refused["cascades into check_it.items"]
        assert (found.status, found.found) == (
            "failed",
            "items_o to check_it.orders ON DELETE CASCADE ON UPDATE SET NULL",
        )
        assert found.mend.startswith("ALTER TABLE `check_it`.`items` DROP FOREIGN KEY `items_o`")
        assert accepted["cascades into check_it.items"].status == "ok"
        assert "cascades into check_it.notes" not in refused
    assert "cascades into check_it.items" not in left_out


def test_a_table_without_a_key_is_a_warning(database: Server, tmp_path: Path) -> None:
    database.sql("CREATE TABLE check_it.bag (v INT)")

    found = _results(tmp_path, database)["primary keys"]

    assert (found.status, found.found) == ("warning", "none on check_it.bag")


def test_a_label_that_the_server_does_not_tell_is_a_warning(mysql8: Server, tmp_path: Path) -> None:
    mysql8.sql("DROP DATABASE IF EXISTS check_it")
    mysql8.sql("CREATE DATABASE check_it CHARACTER SET utf8mb4")
    mysql8.sql("CREATE TABLE check_it.t (id INT PRIMARY KEY, e ENUM('🍵', 'b'))")
    mysql8.sql("CREATE VIEW check_it.v AS SELECT * FROM check_it.t")

    found = _results(tmp_path, mysql8)

    mysql8.sql("DROP DATABASE check_it")
    assert found["schema of check_it.t"].status == "warning"
    assert "does not tell a label of column e" in found["schema of check_it.t"].found
    assert "schema of check_it.v" not in found


def test_generated_columns_that_images_leave_out_are_a_warning(database: Server, tmp_path: Path) -> None:
    database.sql(
        "CREATE TABLE check_it.g (id INT PRIMARY KEY, b INT, s INT AS (b + 1) STORED, v INT AS (b + 2) VIRTUAL)"
    )

    found, kept, excluded = (
        _results(
            tmp_path,
            database,
            f"{{type: delta, path: lake, tables: {{check_it.g: {{columns: {{exclude: [{columns}]}}}}}}}}",
        )
        for columns in ("b", "s", "S, v")
    )

    name = "generated columns of check_it.g"
    assert name not in excluded
    assert (name in found) == (not has_whole_images(database))
    if name in found:
        assert (found[name].status, found[name].found, kept[name].found) == ("warning", "s, v", "v")


def test_a_filter_that_matches_nothing_is_a_warning(database: Server, tmp_path: Path) -> None:
    found = _results(tmp_path, database, tables="['check_it.order']")["tables"]

    assert found.status == "warning"
    assert found.found.endswith("matches check_it.order")


def test_the_servers_own_id_in_the_range_is_refused(database: Server, tmp_path: Path) -> None:
    found = _results(tmp_path, database, server_id=f"{database.port}-{database.port + 9}")["server_id"]

    assert (found.status, found.mend) == ("failed", "choose another range for source.server_id")


def test_a_server_without_an_id_is_refused(mysql9: Server, tmp_path: Path) -> None:
    with global_setting(mysql9, "server_id", "0"):
        found = _results(tmp_path, mysql9)["server_id"]

    assert (found.status, found.found, found.mend) == (
        "failed",
        "the server has none",
        "SET PERSIST server_id = 1",
    )


@pytest.mark.parametrize("zone, is_told", [("SYSTEM", False), ("+02:00", True)])
def test_what_the_servers_time_zone_is_needed_for_is_said(
    mysql8: Server, tmp_path: Path, zone: str, *, is_told: bool
) -> None:
    with global_setting(mysql8, "time_zone", f"'{zone}'"):
        found = _results(tmp_path, mysql8)["time_zone"]

    assert (found.status, found.found.startswith(zone)) == ("ok", True)
    assert is_told == ("that the log does not tell" not in found.found)


@pytest.mark.parametrize("name", FRESH)
def test_a_purged_start_is_refused(name: str, fresh_server: Callable[..., Server], tmp_path: Path) -> None:
    server = fresh_server(name)
    server.sql("CREATE DATABASE check_it")
    first = server.sql("SHOW BINARY LOGS")[0][0]
    server.sql("FLUSH BINARY LOGS")
    second = server.sql("SHOW BINARY LOGS")[-1][0]
    server.sql("CREATE TABLE check_it.t (id INT PRIMARY KEY)")
    # A server keeps a file for as long as its storage engine may need it for recovery.
    while server.sql("SHOW BINARY LOGS")[0][0] <= second:
        server.sql("CREATE OR REPLACE VIEW check_it.v AS SELECT 1")
        server.sql("FLUSH BINARY LOGS")
        last = server.sql("SHOW BINARY LOGS")[-1][0]
        server.sql(f"PURGE BINARY LOGS TO '{last}'")

    by_file = _results(tmp_path, server, start=f"'{first}:4'")["start position"]
    by_gtid = _results(tmp_path, server, start=f"'{_first_gtid(server)}'")["start position"]
    earliest = _results(tmp_path, server, start="earliest")["start position"]

    assert (by_file.status, by_gtid.status, earliest.status) == ("failed", "failed", "ok")
    assert first in by_file.found
    assert "purged" in by_gtid.found or "no longer" in by_gtid.found


def _first_gtid(server: Server) -> str:
    if server.flavor == "mariadb":
        return f"0-{server.port}-1"
    return f"{server.sql('SELECT @@server_uuid')[0][0]}:1"


def test_a_server_without_a_binlog_is_refused(fresh_server: Callable[..., Server], tmp_path: Path) -> None:
    server = fresh_server("mysql9", "skip_log_bin")

    found = _results(tmp_path, server)

    assert (list(found), found["log_bin"].status) == (["server", "version", "log_bin"], "failed")


def test_a_log_with_a_filter_is_refused(fresh_server: Callable[..., Server], tmp_path: Path) -> None:
    server = fresh_server("mariadb1011", "binlog_do_db=shop")

    found = _results(tmp_path, server)["log_filters"]

    assert (found.status, found.found) == ("failed", "binlog-do-db=shop")


def test_a_server_without_gtids_is_a_warning(fresh_server: Callable[..., Server], tmp_path: Path) -> None:
    server = fresh_server("mysql57", "gtid_mode=OFF", "enforce_gtid_consistency=OFF")

    found = _results(tmp_path, server)

    assert (found["gtid_mode"].status, found["start position"].status) == ("warning", "ok")


def test_tables_with_the_names_of_a_tools_own_are_said_to_be_left_out(mysql9: Server, tmp_path: Path) -> None:
    mysql9.sql("CREATE DATABASE check_it")
    mysql9.sql("CREATE TABLE check_it._orders_new (id INT PRIMARY KEY)")
    try:
        found = _results(tmp_path, mysql9)["online schema changes"]
        assert (found.status, found.found) == ("warning", "left out: check_it._orders_new")
        assert "online schema changes" not in _results(tmp_path, mysql9, online_changes="[gh-ost]")
    finally:
        mysql9.sql("DROP DATABASE check_it")


def test_too_few_connections_are_told(mysql8: Server, tmp_path: Path) -> None:
    assert "ok" == _results(tmp_path, mysql8)["connections"].status
    with global_setting(mysql8, "max_connections", "12"):
        found = _results(tmp_path, mysql8, backfill="{connections: 16}")["connections"]
    assert ("warning", "of 12 are free") == (found.status, found.found.split(" ", 1)[1])
    assert found.mend.startswith("SET PERSIST max_connections = ")

    with _user(mysql8, "REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.*") as words:
        mysql8.sql("ALTER USER checked WITH MAX_USER_CONNECTIONS 3")
        found = _results(tmp_path, mysql8, **words)["connections"]
    assert ("warning", "the account may have 3") == (found.status, found.found)
    assert found.mend.startswith("ALTER USER 'checked'@'%' WITH MAX_USER_CONNECTIONS ")


@pytest.mark.parametrize(
    "hours, status, found",
    [
        ("NULL", "warning", "binlog retention hours: NULL, so they are purged at once"),
        ("3", "warning", "binlog retention hours: 3"),
        ("168", "ok", "binlog retention hours: 7 days"),
    ],
)
def test_amazons_own_retention_is_what_counts(
    mysql8: Server, tmp_path: Path, hours: str, status: str, found: str
) -> None:
    mysql8.sql("CREATE TABLE mysql.rds_configuration (name VARCHAR(60), value VARCHAR(60), description VARCHAR(60))")
    try:
        mysql8.sql(f"INSERT INTO mysql.rds_configuration VALUES ('binlog retention hours', {hours}, '')")
        result = _results(tmp_path, mysql8)["retention"]
    finally:
        mysql8.sql("DROP TABLE mysql.rds_configuration")
    assert (status, found) == (result.status, result.found)
    assert ("rds_set_configuration" in result.mend) == (status == "warning")
