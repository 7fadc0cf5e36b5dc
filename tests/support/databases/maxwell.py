"""A real Maxwell for tests: what a MySQL server before 8.4 logs, in a topic of a broker."""

from __future__ import annotations

import struct
import subprocess
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from databases.java_parts import kill_all, started
from databases.kafka import Kafka
from databases.servers import Server, ServerError

__all__ = ["Maxwell", "start_maxwell"]

START_S = 90
_CONNECTED = "Binlog connected"
_SCRIPTS = "jdk/nashorn/api/scripting/ScriptObjectMirror"
"""A class of the script engine that Java had up to 14. Maxwell asks of each value whether it is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maxwell:
    """A running Maxwell; ``topic`` has its rows and statements."""

    topic: str
    directory: Path
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list, repr=False)

    def stop(self) -> None:
        """Ends it as a crash would."""
        kill_all(self._running)


def start_maxwell(directory: Path, server: Server, kafka: Kafka, topic: str, databases: str) -> Maxwell:
    """Starts a Maxwell at the present end of the *server*'s log and waits until it follows: rows of *databases*, statements too."""
    directory.mkdir(parents=True, exist_ok=True)
    settings = {
        "host": server.host,
        "port": str(server.port),
        "user": server.user,
        "password": server.password,
        "producer": "kafka",
        "kafka.bootstrap.servers": kafka.brokers,
        "kafka_topic": topic,
        "ddl_kafka_topic": topic,
        "output_ddl": "true",
        "output_primary_key_columns": "true",
        "replica_server_id": "98721",
        "client_id": topic,
        "filter": f"exclude: *.*, include: {databases}.*",
        "jdbc_options": "useSSL=false&allowPublicKeyRetrieval=true&serverTimezone=UTC",
    }
    path = directory / "config.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
    with zipfile.ZipFile(directory / "scripts.jar", "w") as jar:
        jar.writestr(f"{_SCRIPTS}.class", _empty_class(_SCRIPTS))
    log = directory / "maxwell.log"
    process = started(
        "maxwell",
        log,
        "com.zendesk.maxwell.Maxwell",
        ["--config", str(path)],
        heap="256m",
        more=(directory / "scripts.jar",),
        options=("-Duser.timezone=UTC",),
    )
    deadline_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline_s:
        if _CONNECTED in log.read_text(errors="replace"):
            return Maxwell(topic=topic, directory=directory, _running=[process])
        time.sleep(0.05)
    process.kill()
    process.wait()
    raise ServerError(f"Maxwell did not start; the end of {log}:\n{log.read_text(errors='replace')[-3000:]}")


def _empty_class(name: str) -> bytes:
    """The class file of a public class without members, for Java 8 and later."""

    def text(value: str) -> bytes:
        return b"\x01" + struct.pack(">H", len(value)) + value.encode("ascii")

    own, parent = text(name) + b"\x07\x00\x01", text("java/lang/Object") + b"\x07\x00\x03"
    head = b"\xca\xfe\xba\xbe" + struct.pack(">HHH", 0, 52, 5)
    return head + own + parent + struct.pack(">HHHHHHH", 0x21, 2, 4, 0, 0, 0, 0)
