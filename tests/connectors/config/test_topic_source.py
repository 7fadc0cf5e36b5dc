"""Topics as a source: what the document says, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.config import KafkaSource, can_change, load_config, reread, revision
from connectors.readers.kafka.decoders import FORMATS
from connectors.readers.kafka.messages.modes import DebeziumModes
from connectors.readers.kafka.registry.client import RegistrySettings
from historian.errors import ConfigError
from historian.names import TableName

BASE = "name: shop\nhistory: {store: 'sqlite:///h.db'}\nsinks: [{type: console}]\nsource: "


def loaded(directory: Path, source: str) -> KafkaSource:
    file = directory / "shop.yaml"
    file.write_text(BASE + source, encoding="utf-8")
    found = load_config(file, environment={"PASSWORD": "s3cret"}).source
    assert isinstance(found, KafkaSource)
    return found


def test_settings_of_the_client_are_texts_and_secrets_are_not_shown(tmp_path: Path) -> None:
    client = "{sasl.password: '${env:PASSWORD}', socket.timeout.ms: 500, enable.ssl.certificate.verification: true}"

    found = loaded(
        tmp_path, f"{{type: kafka, brokers: 'a:1,b:2', topics: [x, 'y.*'], client: {client}, tables: ['s.*']}}"
    )

    assert ("a:1,b:2", ("x", "y.*"), "debezium_json", "earliest") == (
        found.brokers,
        found.topics,
        found.format,
        found.start,
    )
    assert {
        "sasl.password": "s3cret",
        "socket.timeout.ms": "500",
        "enable.ssl.certificate.verification": "true",
    } == found.client
    assert "s3cret" not in repr(found)
    assert (True, False) == (found.tables(TableName("s", "t")), found.tables(TableName("r", "t")))


def test_what_lets_a_run_in_to_brokers_and_registry_is_read_again(tmp_path: Path) -> None:
    path, secret, plain = tmp_path / "shop.yaml", tmp_path / "secret", "topics: [x], format: debezium_avro"
    secret.write_text("first")
    secrets = (
        "client: {sasl.password: '${file:secret}'}, registry: {url: 'http://r', user: u, password: '${file:secret}'}"
    )
    path.write_text(BASE + f"{{type: kafka, brokers: a, {plain}, {secrets}}}")
    config = load_config(path)
    assert can_change(config)
    assert reread(config) is config

    path.write_text(BASE + f"{{type: kafka, brokers: other, {plain}, {secrets}}}")
    secret.write_text("second")
    fresh = reread(config).source

    assert isinstance(fresh, KafkaSource)
    assert fresh.registry is not None
    assert ("a", "second", "second") == (fresh.brokers, fresh.client["sasl.password"], fresh.registry.password)
    path.write_text(BASE + "{type: kafka, brokers: a, topics: [x], client: {ssl.ca.location: ca.pem}}")
    assert can_change(load_config(path))
    path.write_text(BASE + "{type: kafka, brokers: a, topics: [x], client: {sasl.password: written}}")
    assert not can_change(load_config(path))


@pytest.mark.parametrize(
    "text,start",
    [
        ("latest", "latest"),
        ("changes_only", "latest"),
        ("b:0:7, a:1:3", "a:1:3,b:0:7"),
        ("2026-11-01T01:00:00+01:00",) * 2,
    ],
)
def test_a_start_has_one_text(tmp_path: Path, text: str, start: str) -> None:
    assert start == loaded(tmp_path, f"{{type: kafka, brokers: a, topics: [x], start: '{text}'}}").start


@pytest.mark.parametrize(
    "rest,problem",
    [
        ("topics: []", "source.topics"),
        ("topics: [x], start: initial", "expected earliest, latest, a moment with its zone"),
        ("topics: [x], start: 2026-11-01T00:00:00", "expected a moment with its zone: 2026-11-01T00:00:00Z"),
        ("topics: [x], start: 'binlog.000001:4'", "or offsets"),
        ("topics: [x], format: bson", "source.format"),
        ("topics: [x], format: maxwell, time_zone: Europe/Nowhere", "source.time_zone"),
        ("topics: [x], schema: no-such-file.sql", "source.schema"),
        ("topics: [x], client: {group.id: mine}", "no group is joined"),
        ("topics: [x], client: {bootstrap.servers: b}", "source.brokers says it"),
        ("topics: [x], format: debezium_avro", "format debezium_avro needs registry"),
        ("topics: [x], registry: {url: 'http://r'}", "format debezium_json needs no registry"),
        ("topics: [x], format: debezium_avro, registry: {url: 'r:8081'}", "source.registry.url"),
        ("topics: [x], format: debezium_avro, registry: {url: 'http://me:pw@r'}", "keys of their own"),
        ("topics: [x], format: debezium_avro, registry: {url: 'http://r', ca: no-such.pem}", "source.registry.ca"),
        ("topics: [x], format: debezium_avro, registry: {url: 'http://r', user: 'a:b'}", "source.registry.user"),
        ("topics: [x], format: debezium_avro, registry: {url: 'http://r,b'}", "source.registry.url"),
        ("topics: [x], format: debezium_avro, registry: {url: 'http://r', user: a, token: b}", "two ways in"),
        ("topics: [x], format: ticdc_simple_avro", "needs message_schema"),
        ("topics: [x], debezium: {decimals: string}", "format debezium_json tells how values are written"),
        ("topics: [x], format: debezium_unwrapped, debezium: {binary: utf8}", "source.debezium.binary"),
        ("topics: [x], tombstones: delete", "leave tombstones out @ $.source.tombstones"),
        ("topics: [x], format: json_upsert, tombstones: ignore", "they would be lost @ $.source.tombstones"),
        ("topics: [x], format: debezium_unwrapped, tombstones: keep", "source.tombstones"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, rest: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, f"{{type: kafka, brokers: a, {rest}}}")

    assert any(problem in each and "$.source" in each for each in caught.value.problems), caught.value.problems


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_that_is_read_can_be_configured(tmp_path: Path, name: str) -> None:
    (tmp_path / "tables.sql").write_text("CREATE TABLE s.t (id INT)", encoding="utf-8")

    by_registry = ("debezium_avro", "debezium_json_schema", "avro_upsert", "ticdc_avro")
    registry = ", registry: {url: 'http://r'}" if name in by_registry else ""

    if name == "ticdc_simple_avro":
        (tmp_path / "message.json").write_text("[]", encoding="utf-8")
        registry = f", message_schema: {tmp_path}/message.json"

    found = loaded(
        tmp_path,
        f"{{type: kafka, brokers: a, topics: [x], format: {name}, time_zone: Asia/Tokyo, schema: {tmp_path}/tables.sql{registry}}}",
    )

    assert (name, "Asia/Tokyo", tmp_path / "tables.sql") == (found.format, found.time_zone, found.schema)


def test_a_registry_has_its_own_secrets(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    registry = "{url: 'https://r:8081/apis/ccompat/v7', user: me, password: '${env:PASSWORD}', ca: ca.pem}"

    found = loaded(tmp_path, f"{{type: kafka, brokers: a, topics: [x], format: debezium_avro, registry: {registry}}}")

    ca = str(tmp_path / "ca.pem")
    assert RegistrySettings(url="https://r:8081/apis/ccompat/v7", user="me", password="s3cret", ca=ca) == found.registry
    assert "s3cret" not in repr(found)


def test_how_a_connector_writes_values_is_taken_over(tmp_path: Path) -> None:
    modes = "{decimals: double, binary: hex, temporal: isostring}"

    found = loaded(tmp_path, f"{{type: kafka, brokers: a, topics: [x], format: debezium_unwrapped, debezium: {modes}}}")

    assert DebeziumModes(decimals="double", binary="hex", temporal="isostring") == found.modes
    assert found.registry is None
    token = "{url: 'http://a, http://b', token: '${env:PASSWORD}'}"
    found = loaded(tmp_path, f"{{type: kafka, brokers: a, topics: [x], format: debezium_unwrapped, registry: {token}}}")
    assert RegistrySettings(url="http://a, http://b", token="s3cret") == found.registry


def test_how_values_are_written_decides_what_is_read(tmp_path: Path) -> None:
    def revised(more: str) -> str:
        loaded(tmp_path, f"{{type: kafka, brokers: a, topics: [x], format: debezium_unwrapped{more}}}")
        return revision(load_config(tmp_path / "shop.yaml"))

    assert revised("") == revised(", debezium: {decimals: precise}")
    assert revised("") != revised(", debezium: {decimals: string}")
    assert revised("") == revised(", tombstones: delete")
    assert revised("") != revised(", tombstones: ignore")


def test_a_placeholder_is_a_text_or_octets(tmp_path: Path) -> None:
    def placeholder(text: str, form: str = "debezium_json") -> str:
        debezium = f"{{unavailable_value: '{text}'}}"
        return loaded(
            tmp_path, f"{{type: kafka, brokers: a, topics: [x], format: {form}, debezium: {debezium}}}"
        ).modes.unavailable

    assert ["gone", "hex:00ff"] == [placeholder("gone"), placeholder("hex:00ff")]
    assert "gone" == placeholder("gone", "debezium_unwrapped")
    for text in ("hex:", "hex:0", "hex:zz"):
        with pytest.raises(ConfigError, match="no octets behind hex"):
            placeholder(text)
    with pytest.raises(ConfigError, match=r"leave source\.debezium out"):
        placeholder("gone", "maxwell")


def test_messages_are_kept_aside_where_sinks_keep_them(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    source = "{type: kafka, brokers: a, topics: [x], unreadable: dead_letter}"
    file.write_text(BASE.replace("console", f"parquet, path: {tmp_path}") + source, encoding="utf-8")

    with pytest.raises(ConfigError, match="dead_letter needs sinks that keep dead letters"):
        load_config(file)

    assert loaded(tmp_path, source).unreadable == "dead_letter"
