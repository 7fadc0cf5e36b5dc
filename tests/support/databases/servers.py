"""Real MySQL and MariaDB servers for tests: each on a free loopback port, with its own data directory, without root.

    source = start_server("mysql9", tmp_path / "source")
    source.sql("CREATE DATABASE shop")
    source.stop()

A server ends with the thread that started it, however that ends: the kernel sends it SIGKILL then.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pymysql

from databases.server_builds import Build, Flavor, build
from databases.server_data import copy_data, file_options, write_options

__all__ = ["Server", "ServerError", "free_port", "global_setting", "server_at", "server_options", "start_server"]

USER = PASSWORD = "historian"
START_S = 60
STOP_S = 60
PORT_TRIES = 5


class ServerError(RuntimeError):
    """A server did not start, or cannot do what was asked of it."""


class _PortTaken(ServerError):
    """Another process has taken the port after we had found it free."""


@dataclass(slots=True)
class _Process:
    """The server's process, which a restart replaces."""

    running: subprocess.Popen[bytes] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server. ``version`` is the server's own text; ``directory`` is None for one that we did not start."""

    name: str
    flavor: Flavor
    version: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    directory: Path | None = None
    _process: _Process = field(default_factory=_Process, repr=False, compare=False)

    @property
    def pid(self) -> int:
        """Of the process; a server that is stopped, or that we did not start, has none."""
        process = self._process.running
        if process is None:
            raise ServerError(f"{self.name} at {self.host}:{self.port} has no process of ours")
        return process.pid

    def connect(self, **arguments: Any) -> pymysql.Connection[Any]:
        """A new connection in autocommit mode, without TLS; ``arguments`` are PyMySQL's and win."""
        address = {"host": self.host, "port": self.port, "user": self.user, "password": self.password}
        # PyMySQL would read the system's authorities anew each time, which takes longer than most statements.
        defaults = {"autocommit": True, "charset": "utf8mb4", "ssl_disabled": True}
        return pymysql.connect(**{**address, **defaults, **arguments})

    def sql(self, statement: str, *values: object) -> tuple[tuple[Any, ...], ...]:
        """The rows that ``statement`` returns, run on a connection of its own."""
        with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return tuple(cursor.fetchall())

    def stop(self) -> None:
        """Shuts the server down in order. A stopped server stays stopped."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the server as a crash would."""
        self._end(signal.SIGKILL)

    def restart(self, *options: str) -> None:
        """Stops the server if it runs and starts it on the same port and data; ``options`` come after those it had."""
        directory = self._own_directory()
        self.stop()
        if options:
            with (directory / "my.cnf").open("a", encoding="utf-8") as file:
                file.write("\n".join(options) + "\n")
        _run(build(self.name), self)

    def clear(self) -> None:
        """Drops all databases and begins a new log."""
        system = {"information_schema", "mysql", "performance_schema", "sys"}
        names = [name for (name,) in self.sql("SHOW DATABASES") if name not in system]
        # Foreign keys may lead from one to another.
        with contextlib.closing(self.connect(init_command="SET foreign_key_checks = 0")) as unchecked:
            for name in names:
                unchecked.cursor().execute(f"DROP DATABASE `{name}`")
        self.sql("RESET BINARY LOGS AND GTIDS" if self.name == "mysql9" else "RESET MASTER")
        if self.flavor == "mariadb":
            self.sql("SET GLOBAL gtid_slave_pos = ''")  # else a replica goes on where its last primary was

    def binlog_files(self) -> tuple[Path, ...]:
        """The server's binlog files, oldest first, whether it runs or not."""
        data = self._own_directory() / "data"
        names = (data / "binlog.index").read_text(encoding="utf-8").split()
        return tuple(data / Path(name).name for name in names)

    def _own_directory(self) -> Path:
        if self.directory is None:
            raise ServerError(f"{self.name} at {self.host}:{self.port} was not started here, so it is left alone")
        return self.directory

    def _end(self, how: signal.Signals) -> None:
        self._own_directory()
        process = self._process.running
        if process is not None:
            process.send_signal(how)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise ServerError(f"{self.name} did not stop in {STOP_S} s; {_log_end(self)}") from None
            self._process.running = None


def start_server(name: str, directory: Path, *options: str) -> Server:
    """Starts a server and waits until it takes connections.

    Args:
        name: mysql9, mysql8, mysql57, mariadb105, mariadb1011 or mariadb118.
        directory: where its data, log and socket go; made if missing. Data that is there already is used.
        options: lines of an option file, such as ``gtid_mode=OFF``; they win over the defaults.
    """
    kind = build(name)
    directory = directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    data = directory / "data"
    if not data.exists():
        copy_data(kind, data)
    for _ in range(PORT_TRIES):
        port = free_port()
        server = Server(
            name=name,
            flavor=kind.flavor,
            version="",
            host="127.0.0.1",
            port=port,
            user=USER,
            password=PASSWORD,
            directory=directory,
        )
        write_options(directory / "my.cnf", (*file_options(kind), *server_options(kind, directory, port), *options))
        try:
            return replace(server, version=_run(kind, server))
        except _PortTaken:
            continue
    raise ServerError(f"{name} found no free port in {PORT_TRIES} tries; {_log_end(server)}")


def server_at(name: str, url: str) -> Server:
    """The running server at ``mysql://user:password@host:port``, checked to be of the kind that ``name`` stands for."""
    parts = urlsplit(url)
    if parts.scheme not in {"mysql", "mariadb"} or parts.hostname is None or parts.username is None:
        raise ServerError(f"{name}: expected mysql://user:password@host:port, found {url!r}")
    kind = build(name)
    server = Server(
        name=name,
        flavor=kind.flavor,
        version="",
        host=parts.hostname,
        port=parts.port or 3306,
        user=unquote(parts.username),
        password=unquote(parts.password or ""),
    )
    ((version,),) = server.sql("SELECT VERSION()")
    flavor = "mariadb" if "MariaDB" in version else "mysql"
    same_major = version.split(".")[0] == str(kind.series[0])
    same_minor = kind.series[1] == 0 or version.split(".")[1] == str(kind.series[1])
    if (flavor, same_major, same_minor) != (kind.flavor, True, True):
        expected = f"{kind.flavor} {'.'.join(map(str, kind.series))}"
        raise ServerError(f"{name}: expected {expected} at {parts.hostname}:{server.port}, found {version}")
    return replace(server, version=version)


def server_options(kind: Build, directory: Path, port: int) -> tuple[str, ...]:
    """Small, quick and not durable; a binlog as a replication source has it, with the metadata that is the default."""
    data = directory / "data"
    common = (
        f"datadir={data}",
        f"tmpdir={directory / 'tmp'}",  # MariaDB deletes whatever temporary tables it finds there when it starts
        "socket=mysqld.sock",  # relative to the data directory: a socket's path may have 107 characters only
        f"pid_file={data}/mysqld.pid",
        f"log_error={directory}/error.log",
        "bind_address=127.0.0.1",
        f"port={port}",
        "report_host=127.0.0.1",
        f"report_port={port}",
        f"server_id={port}",
        f"init_file={directory}/init.sql",
        f"log_bin={data}/binlog",
        "binlog_format=ROW",
        "binlog_row_image=FULL",
        "sync_binlog=0",
        "innodb_flush_log_at_trx_commit=2",
        "innodb_buffer_pool_size=64M",
        "innodb_use_native_aio=OFF",  # the kernel's contexts are shared by all servers of a machine, and few
        "max_connections=100",
        "performance_schema=OFF",
        "secure_file_priv=",
        "skip_name_resolve=ON",
        "character_set_server=utf8mb4",
    )
    own: tuple[str, ...]
    if kind.flavor == "mariadb":
        own = ("gtid_strict_mode=ON", "log_slave_updates=ON", "binlog_row_metadata=NO_LOG", "skip_slave_start")
    elif kind.series < (8, 0):
        own = ("gtid_mode=ON", "enforce_gtid_consistency=ON", "log_slave_updates=ON", "skip_slave_start")
    else:
        # X Plugin would want a second port.
        own = ("gtid_mode=ON", "enforce_gtid_consistency=ON", "log_replica_updates=ON", "skip_replica_start")
        own += ("binlog_row_metadata=MINIMAL", "mysqlx=OFF")
    return (*common, *own)


def _run(kind: Build, server: Server) -> str:
    """Starts the server's process and waits until it answers; returns its version."""
    directory = server._own_directory()
    (directory / "init.sql").write_text(
        "SET sql_log_bin=0;\n"  # no transaction of our own in the log
        f"CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';\n"
        f"GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION;\n",
        encoding="utf-8",
    )
    (directory / "error.log").write_bytes(b"")
    (directory / "tmp").mkdir(exist_ok=True)
    setpriv = shutil.which("setpriv") or "/usr/bin/setpriv"
    # setpriv has the kernel kill the server when we die; a session of its own keeps Ctrl-C from reaching it.
    command = [setpriv, "--pdeathsig", "KILL", *kind.command(), f"--defaults-file={directory}/my.cnf"]
    with (directory / "error.log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory, start_new_session=True
        )
    deadline_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline_s:
        with contextlib.suppress(pymysql.err.OperationalError):
            ((version, data),) = server.sql("SELECT VERSION(), @@datadir")
            if Path(data) != directory / "data":
                process.kill()
                process.wait()
                raise _PortTaken(f"another server listens on port {server.port}")
            server._process.running = process
            return str(version)
        time.sleep(0.02)
    process.kill()
    process.wait()
    reason = _log_end(server)
    kind_of_error = _PortTaken if "ddress already in use" in reason else ServerError
    raise kind_of_error(f"{server.name} did not start on port {server.port}; {reason}")


def _log_end(server: Server) -> str:
    log = server._own_directory() / "error.log"
    return f"the end of {log}:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-20:])


def free_port() -> int:
    """A port that nobody listens on, below those of outgoing connections, so that a restart finds it free too."""
    ephemeral = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()
    highest = min(int(ephemeral[0]), 65536)
    for port in random.sample(range(max(1024, highest - 20000), highest), k=1000 if highest > 10000 else 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise ServerError("no free port on 127.0.0.1")


@contextmanager
def global_setting(server: Server, name: str, value: str) -> Iterator[None]:
    """The server has that setting meanwhile; *value* is SQL."""
    ((before,),) = server.sql(f"SELECT @@GLOBAL.{name}")
    server.sql(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        server.sql(f"SET GLOBAL {name} = %s", before)
