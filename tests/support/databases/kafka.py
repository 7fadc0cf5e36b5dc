"""A real Kafka broker (KRaft) for tests: jars from the central Maven repository, free loopback ports, no installation."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from certificates import own_certificate
from databases.java_parts import kill_all, started
from databases.servers import ServerError, free_port
from workload.waiting import wait_until

__all__ = ["Kafka", "start_kafka"]

START_S = 60
USER, PASSWORD = "historian", "of-the-brokers"

_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secured},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secured}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.ssl.keystore.type=PEM
listener.name.sasl_ssl.ssl.keystore.location={directory}/broker.pem
log.dirs={directory}/data
num.partitions=1
auto.create.topics.enable=true
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=500
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
log.initial.task.delay.ms=500
log.cleaner.backoff.ms=500
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """A running broker.

    Attributes:
        brokers: its address as clients want it; ``secured``: that for clients with TLS and a password.
    """

    brokers: str
    secured: str
    directory: Path
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list, repr=False)

    def stop(self) -> None:
        """Ends the broker and deletes its data; the log stays for a look."""
        self.kill()
        shutil.rmtree(self.directory / "data", ignore_errors=True)

    def kill(self) -> None:
        """Ends the broker as a crash would."""
        kill_all(self._running)

    def resume(self) -> None:
        """Starts the broker again, on the same port and data."""
        self._running.append(_run(self.directory, self.brokers))

    def security(self, password: str = PASSWORD) -> dict[str, str]:
        """Settings of librdkafka for ``secured``."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": USER,
            "sasl.password": password,
            "ssl.ca.location": f"{self.directory}/broker.pem",
        }

    def admin(self) -> AdminClient:
        """A client that changes topics."""
        return AdminClient({"bootstrap.servers": self.brokers})

    def make_topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        """Makes a topic; *settings* as the broker calls them, underscores for dots."""
        config = {key.replace("_", "."): value for key, value in settings.items()}
        admin = self.admin()
        admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(30)
        # The controller has it before the broker tells of it.
        wait_until(lambda: name in admin.list_topics(timeout=START_S).topics, START_S)

    def add_partitions(self, name: str, count: int) -> None:
        """Gives a topic *count* partitions in all."""
        admin = self.admin()
        admin.create_partitions([NewPartitions(name, count)])[name].result(30)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic."""
        admin = self.admin()
        admin.delete_topics([name])[name].result(30)

    def produce(self, topic: str, messages: Sequence[tuple[bytes | None, bytes | None]], partition: int = 0) -> None:
        """Writes messages, each a key and a value, and waits until the broker has them."""
        producer = Producer({"bootstrap.servers": self.brokers, "linger.ms": 0})
        for key, value in messages:
            producer.produce(topic, key=key, value=value, partition=partition)
        if producer.flush(30):
            raise ServerError(f"{self.brokers} did not take all messages")


def start_kafka(directory: Path) -> Kafka:
    """Starts a broker with new data in *directory* and waits until it answers."""
    directory.mkdir(parents=True, exist_ok=True)
    port, secured, controller = free_port(), free_port(), free_port()
    own_certificate(directory / "broker.pem")
    settings = directory / "server.properties"
    settings.write_text(
        _SETTINGS.format(port=port, secured=secured, controller=controller, directory=directory), encoding="ascii"
    )
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    log = directory / "kafka.log"
    user = f"SCRAM-SHA-512=[name={USER},password={PASSWORD},iterations=4096]"
    arguments = ["format", "-t", f"A{cluster[1:]}", "-c", str(settings), "--add-scram", user]
    formatted = started("kafka", log, "kafka.tools.StorageTool", arguments, heap="128m")
    if formatted.wait(START_S) != 0:
        raise ServerError(f"Kafka's storage could not be made; the end of {log}:\n{log.read_text()[-2000:]}")
    brokers = f"127.0.0.1:{port}"
    running = [_run(directory, brokers)]
    return Kafka(brokers=brokers, secured=f"127.0.0.1:{secured}", directory=directory, _running=running)


def _run(directory: Path, brokers: str) -> subprocess.Popen[bytes]:
    log = directory / "kafka.log"
    process = started("kafka", log, "kafka.Kafka", [str(directory / "server.properties")], heap="256m")
    host, _, port = brokers.rpartition(":")
    deadline_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline_s:
        # Clients tell on standard error of each address that does not answer.
        with socket.socket() as asked:
            if asked.connect_ex((host, int(port))) == 0:
                break
        time.sleep(0.05)
    if process.poll() is None and AdminClient({"bootstrap.servers": brokers}).list_topics(timeout=START_S).brokers:
        return process
    process.kill()
    process.wait()
    raise ServerError(f"Kafka did not start at {brokers}; the end of {log}:\n{log.read_text(errors='replace')[-2000:]}")
