"""The servers that other tests rely on are what those tests take them for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from databases.server_builds import BUILDS
from databases.servers import Server, ServerError, server_at


def test_version_is_of_the_named_series(server: Server) -> None:
    expected = BUILDS[server.name].series

    found = tuple(int(part) for part in server.version.split("-")[0].split(".")[:2])

    assert (expected[0], expected[1] or found[1]) == found


def test_log_names_no_columns(server: Server) -> None:
    setting = server.sql("SHOW GLOBAL VARIABLES LIKE 'binlog_row_metadata'")

    default = "NO_LOG" if server.flavor == "mariadb" else "MINIMAL"
    assert (() if server.name == "mysql57" else (("binlog_row_metadata", default),)) == setting


@pytest.mark.parametrize("name", BUILDS)
def test_new_server_has_executed_nothing(name: str, fresh_server: Callable[..., Server]) -> None:
    started = fresh_server(name)

    variable = "gtid_binlog_pos" if started.flavor == "mariadb" else "gtid_executed"
    assert (("",),) == started.sql(f"SELECT @@GLOBAL.{variable}")


@pytest.mark.parametrize("name", BUILDS)
def test_data_and_port_survive_crash_and_restart(name: str, fresh_server: Callable[..., Server]) -> None:
    started = fresh_server(name)
    started.sql("CREATE DATABASE kept")
    started.kill()

    with pytest.raises(Exception, match="Can't connect"):
        started.sql("SELECT 1")
    started.restart("max_connections=42")

    assert ((started.port, 42),) == started.sql("SELECT @@port, @@max_connections")
    assert (("kept",),) == started.sql("SHOW DATABASES LIKE 'kept'")


def test_binlog_files_are_listed_while_the_server_is_down(fresh_server: Callable[..., Server]) -> None:
    started = fresh_server("mariadb1011")
    started.sql("FLUSH BINARY LOGS")
    started.stop()

    files = started.binlog_files()

    assert ["binlog.000001", "binlog.000002"] == [file.name for file in files]
    assert [b"\xfebin", b"\xfebin"] == [file.read_bytes()[:4] for file in files]


def test_option_of_a_test_wins_over_the_default(fresh_server: Callable[..., Server]) -> None:
    started = fresh_server("mysql8", "binlog_row_metadata=FULL")

    assert (("FULL",),) == started.sql("SELECT @@GLOBAL.binlog_row_metadata")


def test_wrong_option_fails_with_the_servers_own_words(fresh_server: Callable[..., Server]) -> None:
    with pytest.raises(ServerError, match="unknown variable 'no_such_option=1'"):
        fresh_server("mariadb1011", "no_such_option=1")


def test_running_server_can_stand_in(mysql8: Server) -> None:
    url = f"mysql://{mysql8.user}:{mysql8.password}@{mysql8.host}:{mysql8.port}"

    assert mysql8.version == server_at("mysql8", url).version
    with pytest.raises(ServerError, match=r"mysql57: expected mysql 5\.7 at .*, found 8\.0"):
        server_at("mysql57", url)
    with pytest.raises(ServerError, match="left alone"):
        server_at("mysql8", url).kill()
