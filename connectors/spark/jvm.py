"""The Java parts: which jars Delta needs, where they are kept, and how they get there.

PySpark carries Apache Ivy, so a machine with Python and Java needs nothing else to fetch them. Every jar is pinned with
its SHA-256 and fetched alone: what the jars' metadata asks for beyond this list is in PySpark already, in versions that
must not be mixed.

    >>> delta_jars()  # doctest: +SKIP
    [PosixPath('/home/me/.cache/pyspark-historian/jars/delta-spark_4.2_2.13-4.4.0.jar'), ...]
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from xml.sax.saxutils import quoteattr

from historian.errors import HistorianError

__all__ = ["DELTA_JARS", "Jar", "JvmPartMissing", "cache_directory", "delta_jars", "fetch_jars", "find_java"]


class JvmPartMissing(HistorianError):
    """Java, or a jar, is not there and cannot be had."""

    retryable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One jar of the central Maven repository, with the digest that it must have.

    Attributes:
        classifier, extension: of another file under the same name, such as an archive of a whole program.
    """

    organisation: str
    name: str
    revision: str
    sha256: str
    classifier: str = ""
    extension: str = "jar"

    @property
    def file_name(self) -> str:
        """The name that the jar has on disk."""
        return f"{self.name}-{self.revision}{self.classifier and '-'}{self.classifier}.{self.extension}"


def _delta(name: str, sha256: str) -> Jar:
    return Jar(organisation="io.delta", name=name, revision="4.4.0", sha256=sha256)


def _unity_catalog(name: str, sha256: str) -> Jar:
    return Jar(organisation="io.unitycatalog", name=name, revision="0.6.0", sha256=sha256)


DELTA_JARS: tuple[Jar, ...] = (
    _delta("delta-spark_4.2_2.13", "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead"),
    _delta("delta-storage", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
    _delta("delta-kernel-api", "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11"),
    _delta("delta-kernel-defaults", "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b"),
    _delta("delta-kernel-unitycatalog", "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa"),
    _unity_catalog("unitycatalog-client", "48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19"),
    _unity_catalog("unitycatalog-hadoop", "c47b63c961c87102b9e1d63809a0915ba4c86b7652f57c8d39ca3a05b441a150"),
)


def delta_jars() -> list[Path]:
    """Paths of the jars that Spark needs for Delta and Delta Kernel, fetched once into the user's cache.

    Join them with commas for ``spark.jars``; ``spark.jars.packages`` is then not needed, and a session starts without
    the network. Safe to call from several processes at once.

    Raises:
        JvmPartMissing: a jar is not cached and cannot be fetched.
    """
    return fetch_jars(DELTA_JARS, cache_directory() / "jars")


def cache_directory() -> Path:
    """Where fetched parts are kept: ``$PYSPARK_HISTORIAN_CACHE``, else ``pyspark-historian`` in the user's cache."""
    own = os.environ.get("PYSPARK_HISTORIAN_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "pyspark-historian"


def find_java() -> Path:
    """The Java that Spark will use: ``$JAVA_HOME``'s, else the first ``java`` on the path.

    Raises:
        JvmPartMissing: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java") if home else "java")
    if found is None:
        raise JvmPartMissing(
            "no Java was found",
            where=f"JAVA_HOME={home}" if home else "PATH",
            expected="a Java 17 or 21 runtime",
            next_step="install one (Debian: openjdk-17-jre-headless) or set JAVA_HOME",
        )
    return Path(found)


def fetch_jars(jars: Sequence[Jar], directory: Path) -> list[Path]:
    """Paths of ``jars`` under ``directory``, in their order; those not there yet are fetched with Ivy and checked.

    A jar appears under its name in one step and only with the right digest, so what is there needs no second look.

    Raises:
        JvmPartMissing: Ivy failed, or a jar's digest is not the expected one.
    """
    paths = [directory / jar.file_name for jar in jars]
    if all(path.exists() for path in paths):
        return paths
    with _only_process(directory):
        missing = [jar for jar, path in zip(jars, paths, strict=True) if not path.exists()]
        if missing:
            _fetch(missing, directory)
    return paths


@contextmanager
def _only_process(directory: Path) -> Iterator[None]:
    """Others that want the same directory wait here, then find their jars in place."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(jars: Sequence[Jar], directory: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".ivy-", dir=directory) as work:
        request = Path(work, "ivy.xml")
        request.write_text(_ivy_request(jars), encoding="utf-8")
        pattern = f"{work}/got/[organisation]/[artifact]-[revision](-[classifier]).[ext]"
        kinds = sorted({"jar", "bundle", *(jar.extension for jar in jars)})
        arguments = ["-cache", f"{work}/cache", "-ivy", str(request), "-retrieve", pattern, "-types", *kinds]
        settings = os.environ.get("PYSPARK_HISTORIAN_IVY_SETTINGS")
        if settings:
            arguments += ["-settings", settings]
        _run_ivy(arguments)
        for jar in jars:
            got = Path(work, "got", jar.organisation, jar.file_name)
            _check(jar, got)
            got.rename(directory / jar.file_name)


def _ivy_request(jars: Sequence[Jar]) -> str:
    """An Ivy module that depends on ``jars`` and on nothing that they depend on."""
    dependencies = "".join(
        f"<dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.name)} rev={quoteattr(jar.revision)}"
        f' transitive="false" conf="default-&gt;master">{_ivy_artifact(jar)}</dependency>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven"><info organisation="local" module="pyspark-historian"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _ivy_artifact(jar: Jar) -> str:
    if (jar.classifier, jar.extension) == ("", "jar"):
        return ""
    kind = quoteattr(jar.extension)
    classifier = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
    return f"<artifact name={quoteattr(jar.name)} type={kind} ext={kind}{classifier}/>"


def _run_ivy(arguments: list[str]) -> None:
    spark = importlib.util.find_spec("pyspark")
    origin = Path(spark.origin) if spark is not None and spark.origin is not None else None
    ivy = sorted(origin.parent.glob("jars/ivy-*.jar")) if origin is not None else []
    if not ivy:
        raise JvmPartMissing("PySpark's Ivy was not found", where=str(origin), next_step="install pyspark==4.2.0")
    command = [str(find_java()), "-cp", str(ivy[-1]), "org.apache.ivy.Main", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip(" \t.")]
        raise JvmPartMissing(
            "Ivy could not fetch the jars",
            found="\n" + "\n".join(lines[-15:]),
            next_step="check the network; PYSPARK_HISTORIAN_IVY_SETTINGS may name an Ivy settings file of a mirror",
        )


def _check(jar: Jar, path: Path) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "no file"
    if found != jar.sha256:
        raise JvmPartMissing("a jar is not the one we know", where=jar.file_name, expected=jar.sha256, found=found)


if __name__ == "__main__":
    for delta_jar in delta_jars():
        sys.stdout.write(f"{delta_jar}\n")
