"""A real PostgreSQL server for tests of the store and of topics: Debian's packages, a free loopback port, no installation.

PostgreSQL refuses to run as root. Started by root it runs as another user that keeps one right of root's, to pass by
file permissions, since nothing of ours is readable by others.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg

from connectors.spark.jvm import cache_directory
from databases import debian
from databases.server_builds import placed
from databases.servers import ServerError, free_port

__all__ = ["Postgres", "postgres_at", "prepare", "start_postgres"]

NAME = "postgresql15"
BIN = "usr/lib/postgresql/15/bin"
USER = "historian"
NOBODY = 65534
START_S = 60
# The loader of the tree runs its programs, which start one another by name.
WRAPPER = """\
#!/bin/sh
root="$(dirname "$0")/../../../../.."
libraries="$root/lib/{triplet}:$root/usr/lib/{triplet}"
for loader in "$root"/lib/{triplet}/ld-linux-x86-64.so.2 "$root"/usr/lib/{triplet}/ld-linux-x86-64.so.2; do
  if [ -e "$loader" ]; then exec "$loader" --library-path "$libraries" "$0.bin" "$@"; fi
done
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """A running server; ``address`` is user, host and port as in a URL. ``directory`` is None for one not started here."""

    address: str
    directory: Path | None = None
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list, repr=False)
    _numbers: count[int] = field(default_factory=count, repr=False)

    def new_store(self) -> str:
        """The URL of a store in a new database."""
        database = f"store_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(f"postgresql://{self.address}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {database}".encode())
        return f"postgresql+psycopg://{self.address}/{database}"

    def stop(self) -> None:
        """Ends the server and deletes its data; the log stays for a look."""
        self.pause()
        if self.directory is not None:
            shutil.rmtree(self.directory / "data", ignore_errors=True)

    def pause(self) -> None:
        """Ends the server; its data stays."""
        while self._running:
            process = self._running.pop()
            process.send_signal(signal.SIGQUIT)  # at once; SIGKILL would leave its children to find out
            process.wait(START_S)

    def resume(self) -> None:
        """Starts the server again, on the same port and data."""
        if self.directory is None:
            raise ServerError(f"the server at {self.address} was not started here, so it is left alone")
        self._running.append(_run(self.directory, int(self.address.rpartition(":")[2])))


def prepare() -> Path:
    """The directory of the server's build with an initialised ``data``, made if need be."""
    directory = cache_directory() / "test-servers" / NAME
    with placed(directory) as place:
        if place is not None:
            _fetch(place)
    with placed(directory / "data") as place:
        if place is not None:
            _give(place)
            command = [
                str(directory / "root" / BIN / "initdb"),
                "--pgdata",
                str(place),
                "--username",
                USER,
                "--auth=trust",
            ]
            done = subprocess.run(
                [*_unprivileged(), *command, "--no-sync", "--encoding=UTF8", "--locale=C"],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise ServerError(f"{NAME} could not make a data directory:\n{done.stdout}{done.stderr}")
    return directory


def start_postgres(directory: Path) -> Postgres:
    """Starts a server with new data in *directory* and waits until it takes connections."""
    build = prepare()
    subprocess.run(["cp", "-a", "--reflink=auto", str(build / "data"), str(directory / "data")], check=True)
    port = free_port()
    return Postgres(address=f"{USER}@127.0.0.1:{port}", directory=directory, _running=[_run(directory, port)])


def _run(directory: Path, port: int) -> subprocess.Popen[bytes]:
    """A process of the server that takes connections."""
    settings = {
        "port": port,
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "off",
        "jit": "off",
        "max_connections": 50,
        "shared_buffers": "32MB",
        "wal_level": "logical",
    }
    command = [str(prepare() / "root" / BIN / "postgres"), "-D", str(directory / "data")]
    command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    log = directory / "postgres.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*_unprivileged(), *command], stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    deadline_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline_s:
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(f"postgresql://{USER}@127.0.0.1:{port}/postgres").close()
            return process
        time.sleep(0.02)
    process.kill()
    process.wait()
    raise ServerError(
        f"{NAME} did not start on port {port}; the end of {log}:\n{log.read_text(errors='replace')[-2000:]}"
    )


def postgres_at(url: str) -> Postgres:
    """The running server at ``postgresql://user:password@host:port``."""
    return Postgres(address=url.removeprefix("postgresql://").rstrip("/"))


def _fetch(place: Path) -> None:
    root = place / "root"
    with tempfile.TemporaryDirectory(prefix="historian-apt-") as work:
        debian.unpack("bookworm", ["postgresql-15"], root, Path(work))
    for part in ("share/doc", "share/man", "share/locale", "share/perl", "lib/postgresql/15/lib/bitcode"):
        shutil.rmtree(root / "usr" / part, ignore_errors=True)
    for program in ("postgres", "initdb"):
        path = root / BIN / program
        path.rename(path.with_name(f"{program}.bin"))
        path.write_text(WRAPPER.format(triplet=debian.TRIPLET), encoding="ascii")
        path.chmod(0o755)
    done = subprocess.run([str(root / BIN / "postgres"), "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServerError(f"{NAME} was fetched but does not run:\n{done.stdout}{done.stderr}")
    (place / "VERSION").write_text(done.stdout.split()[2] + "\n", encoding="utf-8")


def _give(path: Path) -> None:
    """Makes *path* the server's own, as it wants its data directory to be."""
    path.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)


def _unprivileged() -> list[str]:
    """What the server's command begins with: killed by the kernel when we die, and never root."""
    setpriv = [shutil.which("setpriv") or "/usr/bin/setpriv", "--pdeathsig", "KILL"]
    if os.geteuid() != 0:
        return setpriv
    # Without the secure bit access(2), which PostgreSQL asks about its own programs, would not count that right.
    user = ["--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--securebits", "+no_setuid_fixup"]
    return [*setpriv, *user, "--inh-caps", "+dac_override", "--ambient-caps", "+dac_override"]
