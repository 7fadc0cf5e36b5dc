"""A real Kafka Connect with Debezium's connectors of MySQL and PostgreSQL for tests: what a server's tables hold, in topics of a broker, as JSON or Avro."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from databases.java_parts import jars_of, kill_all, started
from databases.kafka import Kafka
from databases.postgres import Postgres
from databases.registry import Registry
from databases.servers import Server, ServerError, free_port
from workload.waiting import wait_until

__all__ = ["Connect", "avro_settings", "debezium_settings", "postgres_settings", "start_connect"]

START_S = 90

_SETTINGS = """\
bootstrap.servers={brokers}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
value.converter.replace.null.with.default=false
offset.storage.file.filename={directory}/offsets
offset.flush.interval.ms=500
listeners=http://127.0.0.1:{port}
plugin.discovery=service_load
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect:
    """A running worker with its connectors."""

    url: str
    connectors: tuple[str, ...]
    directory: Path
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list, repr=False)

    def stop(self) -> None:
        """Ends the worker as a crash would: what it sends since its last noted offset comes again after :meth:`resume`.

        A worker takes a file of offsets that a crash has cut for none, and begins at the log's end: rows would be missing in the topics
        that no reader can bring back. Such a file is as it was before.
        """
        noted = self.directory / "offsets"
        before = self._whole_offsets()
        kill_all(self._running)
        if noted.exists() and not _is_whole(noted.read_bytes()):
            noted.write_bytes(before)

    def _whole_offsets(self) -> bytes:
        """The file of offsets between two writes."""
        noted = self.directory / "offsets"
        found = b""

        def is_read() -> bool:
            nonlocal found
            found = noted.read_bytes() if noted.exists() else b""
            return not noted.exists() or _is_whole(found)

        wait_until(is_read, START_S)
        return found

    def resume(self) -> None:
        """Starts the worker again where its offsets stand."""
        self._running.append(_run(self.directory, self.url, self.connectors))


def debezium_settings(server: Server, kafka: Kafka, prefix: str, databases: str, **settings: str) -> dict[str, str]:
    """A connector's settings: the databases of *server* in topics ``prefix.database.table``; *settings*: underscores for dots."""
    return (
        {
            "name": prefix,
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "tasks.max": "1",
            "database.hostname": server.host,
            "database.port": str(server.port),
            "database.user": server.user,
            "database.password": server.password,
            "database.server.id": "98711",
            "database.ssl.mode": "preferred",
            "topic.prefix": prefix,
            "database.include.list": databases,
            "include.schema.changes": "false",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "snapshot.mode": "no_data",
            "poll.interval.ms": "50",
            "producer.override.linger.ms": "0",
        }
        | {"schema.history.internal.kafka.bootstrap.servers": kafka.brokers}
        | {key.replace("_", "."): value for key, value in settings.items()}
    )


def avro_settings(registry: Registry) -> dict[str, str]:
    """Settings of a connector that writes Avro, whose schemas *registry* holds."""
    converter = {
        "": "io.apicurio.registry.utils.converter.AvroConverter",
        "apicurio.registry.url": registry.own_url,
        "apicurio.registry.auto-register": "true",
        "apicurio.registry.find-latest": "false",
        # The wire format of Confluent's serializers: a zero byte, and the schema's id in four.
        "apicurio.registry.as-confluent": "true",
        "apicurio.registry.use-id": "contentId",
        "apicurio.registry.headers.enabled": "false",
    }
    return {
        f"{part}.converter{name and '.'}{name}": value for part in ("key", "value") for name, value in converter.items()
    } | {"schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro"}


def postgres_settings(server: Postgres, kafka: Kafka, prefix: str, database: str, **settings: str) -> dict[str, str]:
    """A connector's settings: the tables of a *database* of PostgreSQL in topics ``prefix.schema.table``; *settings*: underscores for dots."""
    user, _, place = server.address.partition("@")
    host, _, port = place.rpartition(":")
    return {
        "name": prefix,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "database.hostname": host,
        "database.port": port,
        "database.user": user,
        "database.password": "none",
        "database.dbname": database,
        "topic.prefix": prefix,
        "plugin.name": "pgoutput",
        "snapshot.mode": "no_data",
        "poll.interval.ms": "50",
        "producer.override.linger.ms": "0",
        "schema.history.internal.kafka.bootstrap.servers": kafka.brokers,
    } | {key.replace("_", "."): value for key, value in settings.items()}


def start_connect(directory: Path, kafka: Kafka, *connectors: dict[str, str]) -> Connect:
    """Starts a worker with *connectors*, each by its settings, in *directory* and waits until they run."""
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    (directory / "worker.properties").write_text(
        _SETTINGS.format(brokers=kafka.brokers, directory=directory, port=port), encoding="utf-8"
    )
    for settings in connectors:
        whole = {**settings, "schema.history.internal.file.filename": str(directory / f"{settings['name']}.history")}
        lines = "".join(f"{key}={value}\n" for key, value in whole.items())
        (directory / f"{settings['name']}.properties").write_text(lines, encoding="utf-8")
    url = f"http://127.0.0.1:{port}"
    names = tuple(settings["name"] for settings in connectors)
    return Connect(url=url, connectors=names, directory=directory, _running=[_run(directory, url, names)])


def _is_whole(offsets: bytes) -> bool:
    """Whether a map that Java has serialized is there to its end."""
    return offsets.startswith(b"\xac\xed\0\5") and offsets.endswith(b"x")


def _parts(directory: Path, connectors: tuple[str, ...]) -> list[str]:
    """Further lists of jars that the connectors need."""
    settings = [(directory / f"{each}.properties").read_text(encoding="utf-8") for each in connectors]
    return ["debezium_postgres"] if any("PostgresConnector" in each for each in settings) else []


def _run(directory: Path, url: str, connectors: tuple[str, ...]) -> subprocess.Popen[bytes]:
    log = directory / "connect.log"
    arguments = [str(directory / "worker.properties"), *(str(directory / f"{each}.properties") for each in connectors)]
    process = started(
        "connect",
        log,
        "org.apache.kafka.connect.cli.ConnectStandalone",
        arguments,
        heap="512m",
        more=(*jars_of("avro_converter"), *(jar for part in _parts(directory, connectors) for jar in jars_of(part))),
    )
    deadline_s = time.monotonic() + START_S
    waiting, state = list(connectors), "nothing"
    while process.poll() is None and time.monotonic() < deadline_s and "FAILED" not in state:
        try:
            with urllib.request.urlopen(f"{url}/connectors/{waiting[0]}/status", timeout=5) as answer:
                state = answer.read().decode()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            state = "no answer"
        found = json.loads(state) if state.startswith("{") else {}
        if [task["state"] for task in found.get("tasks", ())] == ["RUNNING"]:
            del waiting[0]
            if not waiting:
                return process
            continue
        time.sleep(0.1)
    process.kill()
    process.wait()
    raise ServerError(f"Connect did not start: {state}\nthe end of {log}:\n{log.read_text(errors='replace')[-3000:]}")
