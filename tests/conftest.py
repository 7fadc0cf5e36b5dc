"""Fixtures for all tests: real servers, and a Spark session.

A server fixture fails where its server cannot be had; it never skips. ``HISTORIAN_TEST_MYSQL9`` and the like, set to
``mysql://user:password@host:port``, make the fixture of that name use a running server instead of starting one;
``HISTORIAN_TEST_POSTGRES`` is ``postgresql://user:password@host:port``.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer.testing
from hypothesis import settings

from databases.kafka import Kafka, start_kafka
from databases.server_builds import BUILDS
from databases.servers import Server, server_at, start_server
from historian.store import engine
from lakes.few_rows import as_for_few_rows
from lakes.java_classes import java_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from databases.postgres import Postgres

# The same examples in every run, so that a change is judged by itself; `make soak` looks for new ones.
settings.register_profile("fixed", derandomize=True)
settings.register_profile("random")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# This process's and that of processes started by it.
os.environ.setdefault("SPARK_SUBMIT_OPTS", java_options())

_FILES = pytest.StashKey[dict[str, set[Path]]]()
SERVER_FIXTURES = {*BUILDS, "server", "fresh_server", "postgres", "kafka"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what needs a server or Spark, so that ``-m "not server and not spark"`` leaves the quick tests.

    Of several processes that share files of tests those come last, so that all processes end together.
    """
    long = set()
    for item in items:
        needs = set(getattr(item, "fixturenames", ()))
        if needs & SERVER_FIXTURES or _asks_for_a_server(item):
            item.add_marker("server")
            long.add(item.path)
        if "spark" in needs:
            item.add_marker("spark")
            long.add(item.path)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keeps which files have tests, of those that are to run, that need a server or Spark."""
    session.config.stash[_FILES] = {
        name: {item.path for item in session.items if item.get_closest_marker(name)} for name in ("server", "spark")
    }


def _asks_for_a_server(item: pytest.Item) -> bool:
    """Whether a test takes a server by its name, as a parameter of its own or of a fixture says."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    taken = {value for value in parameters.values() if isinstance(value, str)}
    code = getattr(getattr(item, "function", None), "__code__", None)
    return bool(taken & BUILDS.keys()) or (code is not None and "getfixturevalue" in code.co_names)


class _Servers(dict[str, Server]):
    """One server of each kind for the whole session, started when first asked for."""

    def __init__(self, make_directory: Callable[[str], Path]) -> None:
        super().__init__()
        self._make_directory = make_directory

    def __missing__(self, name: str) -> Server:
        url = os.environ.get(f"HISTORIAN_TEST_{name.upper()}")
        self[name] = server_at(name, url) if url else start_server(name, self._make_directory(name))
        return self[name]


@pytest.fixture(scope="session")
def _servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Servers]:
    servers = _Servers(tmp_path_factory.mktemp)
    yield servers
    for server in servers.values():
        _remove(server)


@pytest.fixture(scope="module", autouse=True)
def _as_new(request: pytest.FixtureRequest, _servers: _Servers) -> None:
    """Each file of tests that takes a server finds all without databases and with a new log, whatever ran before it."""
    takes_some = request.path in request.config.stash[_FILES]["server"]
    for server in _servers.values() if takes_some else ():
        if server.directory is not None:
            server.clear()


@pytest.fixture(scope="module")
def few_rows(spark: SparkSession) -> Iterator[None]:
    """Spark is set for queries of few rows."""
    with as_for_few_rows(spark):
        yield


_AS_USERS_HAVE_IT = {
    "a_day",
    "copies_on_executors",
    "first_copy_replica",
    "kafka",
    "normalized_topics",
    "nothing_stays_stopped",
    "partial_images",
    "random_workload",
    "s3",
    "spark_source",
    "topic_formats",
    "types",
    "values_in_keys",
    "variant",
}
"""Files of tests/integration, of each kind of writing and reading some, where Spark does as in users' sessions."""


@pytest.fixture(scope="module", autouse=True)
def _as_few_rows(request: pytest.FixtureRequest) -> None:
    """Of all others: a query for some rows takes a second less."""
    is_as_users = "integration" in request.path.parts and request.path.stem[5:] in _AS_USERS_HAVE_IT
    if not is_as_users and request.path in request.config.stash[_FILES]["spark"]:
        request.getfixturevalue("few_rows")


@pytest.fixture(scope="session", autouse=True)
def _quick_parts() -> Iterator[None]:
    """What takes longer than most that is asked of it, in this process.

    Stores are opened for each question, and need not wait for the disk: SQLite's transactions are what they are, and no test cuts
    the power. The command line is made once, not for each command.
    """
    connected = engine._connect_sqlite

    def connect(connection: sqlite3.Connection, record: object) -> None:
        connected(connection, record)
        connection.execute("PRAGMA synchronous = OFF")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_connect_sqlite", connect)
        patch.setattr(typer.testing, "_get_command", cache(typer.main.get_command))
        yield


def _remove(server: Server) -> None:
    """Ends a server and deletes its data; the log stays for a look."""
    if server.directory is not None:
        server.kill()
        shutil.rmtree(server.directory / "data", ignore_errors=True)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A Kafka broker. Tests make topics of their own names in it."""
    broker = start_kafka(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def mysql9(_servers: _Servers) -> Server:
    """MySQL 9."""
    return _servers["mysql9"]


@pytest.fixture(scope="session")
def mysql8(_servers: _Servers) -> Server:
    """MySQL 8.0."""
    return _servers["mysql8"]


@pytest.fixture(scope="session")
def mysql57(_servers: _Servers) -> Server:
    """MySQL 5.7."""
    return _servers["mysql57"]


@pytest.fixture(scope="session")
def mariadb105(_servers: _Servers) -> Server:
    """MariaDB 10.5."""
    return _servers["mariadb105"]


@pytest.fixture(scope="session")
def mariadb1011(_servers: _Servers) -> Server:
    """MariaDB 10.11."""
    return _servers["mariadb1011"]


@pytest.fixture(scope="session")
def mariadb118(_servers: _Servers) -> Server:
    """MariaDB 11.8."""
    return _servers["mariadb118"]


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """PostgreSQL 15, for stores."""
    from databases.postgres import postgres_at, start_postgres

    url = os.environ.get("HISTORIAN_TEST_POSTGRES")
    server = postgres_at(url) if url else start_postgres(tmp_path_factory.mktemp("postgres"))
    yield server
    server.stop()


@pytest.fixture(scope="session", params=list(BUILDS))
def server(request: pytest.FixtureRequest, _servers: _Servers) -> Server:
    """Each server in turn."""
    return _servers[request.param]


@pytest.fixture
def fresh_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """``fresh_server(name, *options)`` starts a server that only this test uses."""
    started: list[Server] = []

    def start(name: str, *options: str) -> Server:
        started.append(start_server(name, tmp_path / f"{name}-{len(started)}", *options))
        return started[-1]

    yield start
    for server in started:
        _remove(server)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark session with Delta for the whole session."""
    from connectors.spark.jvm import delta_jars
    from sinks.session import spark_session

    directory = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={directory / 'derby'}",
        "spark.local.dir": str(directory / "local"),
        # One session runs hundreds of pipelines here, and Spark keeps the plans of many queries.
        "spark.driver.memory": "4g",
    }
    session = spark_session(jars=delta_jars(), master="local[2]", name="tests", settings=settings)
    yield session
    session.stop()
