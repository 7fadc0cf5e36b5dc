"""A real schema registry (Apicurio, with the interface of Confluent's) for tests: an archive from the central Maven repository, a free loopback port."""

from __future__ import annotations

import json
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connectors.spark.jvm import Jar, cache_directory, fetch_jars
from databases.java_parts import kill_all, started_with
from databases.server_builds import placed
from databases.servers import ServerError, free_port

__all__ = ["REVISION", "Registry", "prepare", "start_registry"]

START_S = 60

REVISION = "2.6.13.Final"

_ARCHIVE = Jar(
    organisation="io.apicurio",
    name="apicurio-registry-app",
    revision=REVISION,
    classifier="all",
    extension="tar.gz",
    sha256="3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """A running registry.

    Attributes:
        url: of the interface that clients of Confluent's registry ask; ``own_url``: of its own, which its converter asks.
    """

    port: int
    directory: Path
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    @property
    def own_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/apis/registry/v2"

    def register_json_schema(self, subject: str, schema: str, *references: Mapping[str, Any]) -> int:
        """The id of a JSON Schema that the registry is given, the same of one that *subject* has."""
        body = {"schemaType": "JSON", "schema": schema, "references": list(references)}
        request = urllib.request.Request(
            f"{self.url}/subjects/{subject}/versions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(json.loads(answer.read())["id"])

    def stop(self) -> None:
        """Ends the registry as a crash would; what it holds stays."""
        kill_all(self._running)

    def resume(self) -> None:
        """Starts the registry again, on the same port and data."""
        self._running.append(_run(self.directory, self.port))


def prepare() -> Path:
    """The directory of the unpacked registry, fetched once."""
    directory = cache_directory() / "test-servers" / "registry"
    if not directory.exists():
        (archive,) = fetch_jars([_ARCHIVE], cache_directory() / "test-servers" / "java")
        with placed(directory) as place:
            if place is not None:
                with tarfile.open(archive) as packed:
                    packed.extractall(place, filter="data")
        archive.unlink(missing_ok=True)
    return directory


def start_registry(directory: Path) -> Registry:
    """Starts a registry without schemas in *directory* and waits until it answers."""
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    return Registry(port=port, directory=directory, _running=[_run(directory, port)])


def _run(directory: Path, port: int) -> subprocess.Popen[bytes]:
    log = directory / "registry.log"
    options = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(port),
        "quarkus.datasource.jdbc.url": f"jdbc:h2:file:{directory}/schemas",
        "quarkus.datasource.jdbc.initial-size": "1",
        "quarkus.datasource.jdbc.min-size": "1",
        "quarkus.log.level": "WARN",
    }
    runner = prepare() / f"apicurio-registry-app-{REVISION}-runner.jar"
    process = started_with(
        [runner],
        log,
        "io.quarkus.runner.GeneratedMain",
        [],
        heap="256m",
        options=[f"-D{key}={value}" for key, value in options.items()],
    )
    deadline_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline_s:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/apis/ccompat/v7/subjects", timeout=5):
                return process
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    process.kill()
    process.wait()
    raise ServerError(f"the registry did not start; the end of {log}:\n{log.read_text(errors='replace')[-3000:]}")
