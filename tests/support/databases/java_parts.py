"""Processes of Java for tests: jars named in a list beside this module, fetched once, and what starts with them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from connectors.spark.jvm import Jar, cache_directory, fetch_jars, find_java

__all__ = ["jars_of", "kill_all", "started", "started_with"]


def jars_of(part: str) -> list[Path]:
    """Paths of the jars in ``{part}_jars.txt``: organisation, name, revision and SHA-256 of one a line."""
    lines = Path(__file__).with_name(f"{part}_jars.txt").read_text(encoding="ascii").splitlines()
    jars = [
        Jar(organisation=organisation, name=name, revision=revision, sha256=sha256)
        for organisation, name, revision, sha256 in (line.split() for line in lines if not line.startswith("#"))
    ]
    return fetch_jars(jars, cache_directory() / "test-servers" / "java")


def started(
    part: str,
    log: Path,
    main: str,
    arguments: Sequence[str],
    *,
    heap: str,
    more: Sequence[Path] = (),
    options: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    """A Java process of *main* with the jars of *part* and *more*, which the kernel kills with the thread that started it."""
    return started_with((*jars_of(part), *more), log, main, arguments, heap=heap, options=options)


def started_with(
    jars: Sequence[Path], log: Path, main: str, arguments: Sequence[str], *, heap: str, options: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """As :func:`started`, with *jars*."""
    setpriv = [shutil.which("setpriv") or "/usr/bin/setpriv", "--pdeathsig", "KILL"]
    # What runs for seconds is not worth compiling well.
    java = [str(find_java()), f"-Xmx{heap}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *options]
    classpath = ":".join(map(str, jars))
    with log.open("ab") as output:
        return subprocess.Popen(
            [*setpriv, *java, "-cp", classpath, main, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=log.parent,
        )


def kill_all(running: list[subprocess.Popen[bytes]]) -> None:
    """Ends processes as a crash would, and takes them out of the list."""
    while running:
        process = running.pop()
        process.kill()
        process.wait()
