"""The document's part on topics as a source."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from connectors.config import settings
from connectors.config.filters import TableFilter, check_pattern
from connectors.config.model import ExistingPath, Model
from connectors.config.webhooks import is_webhook
from connectors.readers.kafka.messages.modes import DEFAULT_MODES, DebeziumModes
from connectors.readers.kafka.registry.client import RegistrySettings
from historian.errors import PositionError
from historian.positions import KAFKA, parse_position
from historian.positions.moments import moment_us

__all__ = ["DebeziumDocument", "KafkaDocument", "RegistryDocument"]

_OURS = {
    "bootstrap.servers": "source.brokers says it",
    "group.id": "no group is joined: plans hold the offsets; source.group notes them for monitors",
    "auto.offset.reset": "an offset that is gone is an error",
    "enable.auto.commit": "plans hold the offsets",
    "enable.auto.offset.store": "plans hold the offsets",
    "enable.partition.eof": "the reader needs it",
}

_BY_REGISTRY = ("debezium_avro", "debezium_json_schema", "avro_upsert", "ticdc_avro")
"""Formats whose schemas a registry has."""

_MAYBE_BY_REGISTRY = ("debezium_unwrapped",)
_BY_MODES = ("debezium_json_schemaless", "debezium_unwrapped")
"""Formats that may be without a schema, so that nothing in them tells how Debezium writes values."""

_WITH_SCHEMA_TOPIC = ("debezium_json", "debezium_avro", "debezium_json_schema", "debezium_json_schemaless")
"""Formats whose producer may write changes of schemas to a topic of their own."""

_BY_TOMBSTONES = ("json_upsert", "avro_upsert")
"""Formats whose deletes are messages without a value, and nothing else."""

_WITH_BINARY = ("debezium_json", "debezium_avro", "debezium_json_schema")
"""Formats with a schema, which has text where bytes are written as text."""


def _start(text: str) -> str:
    if text == "changes_only":
        return "latest"
    if text in ("earliest", "latest"):
        return text
    if moment_us(text) is not None:
        return text
    if moment_us(f"{text}Z") is not None:  # reads as an offset of a topic, too
        raise ValueError(f"expected a moment with its zone: {text}Z or {text}+01:00")
    try:
        return str(parse_position(text, KAFKA))
    except PositionError as error:
        raise ValueError(
            f"expected earliest, latest, a moment with its zone such as 2026-11-01T00:00:00Z, or offsets: {error.expected}"
        ) from None


def _texts(value: Any) -> Any:
    """Numbers and booleans as librdkafka writes them."""
    if not isinstance(value, dict):
        return value
    return {
        key: str(each).lower() if isinstance(each, bool) else str(each) if isinstance(each, int | float) else each
        for key, each in value.items()
    }


def _client(settings: dict[str, SecretStr]) -> dict[str, SecretStr]:
    ours = [f"{name}: {_OURS[name]}" for name in settings if name in _OURS]
    if ours:
        raise ValueError(f"settings that are not yours to make: {'; '.join(ours)}")
    return settings


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"no time zone has that name: {name}") from None
    return name


def _placeholder(text: str) -> str:
    if text.startswith("hex:") and not re.fullmatch(r"hex:([0-9a-fA-F]{2})+", text):
        raise ValueError(f"no octets behind hex: {text}")
    return text


def _pattern(text: str) -> str:
    check_pattern(text)
    return text


def _addresses(text: str) -> str:
    if any(not is_webhook(each.strip()) or "@" in each for each in text.split(",")):
        raise ValueError(
            "expected http:// or https:// with a host, several comma separated; user and password have keys of their own"
        )
    return text


def _user(text: str) -> str:
    if ":" in text:
        raise ValueError("basic authentication has no users with a colon")
    return text


def _patterns(normalize: bool | list[str]) -> tuple[str, ...]:  # noqa: FBT001 as it is written
    return ("*.*",) if isinstance(normalize, bool) else tuple(normalize)


class RegistryDocument(Model):
    """A schema registry with the interface of Confluent's."""

    url: Annotated[str, AfterValidator(_addresses)] = Field(
        description="Its address, or several, comma separated, which are asked in turn. Apicurio has this interface under `/apis/ccompat/v7`."
    )
    user: Annotated[str, AfterValidator(_user)] = Field(default="", description="For basic authentication.")
    password: SecretStr = Field(default=SecretStr(""), description="Best a reference: `${env:NAME}`.")
    token: SecretStr = Field(
        default=SecretStr(""), description="For bearer authentication, in the place of user and password."
    )
    ca: ExistingPath = Field(
        default=None, description="PEM file of the authorities to verify its certificate with; by default the system's."
    )

    @model_validator(mode="after")
    def _one_way_in(self) -> RegistryDocument:
        if self.user and self.token.get_secret_value():
            raise ValueError("user and token are two ways in: give one of them")
        return self

    def plain(self) -> RegistrySettings:
        """The plain value."""
        ca = None if self.ca is None else str(self.ca)
        return RegistrySettings(
            url=self.url,
            user=self.user,
            password=self.password.get_secret_value(),
            token=self.token.get_secret_value(),
            ca=ca,
        )


class DebeziumDocument(Model):
    """How a connector of Debezium's is set, as far as messages do not tell."""

    decimals: Literal["precise", "double", "string"] = Field(
        default="precise", description="Its `decimal.handling.mode`."
    )
    binary: Literal["bytes", "base64", "base64-url-safe", "hex"] = Field(
        default="bytes", description="Its `binary.handling.mode`."
    )
    temporal: Literal[
        "adaptive_time_microseconds", "adaptive", "connect", "isostring", "microseconds", "nanoseconds"
    ] = Field(default="adaptive_time_microseconds", description="Its `time.precision.mode`.")
    replica_identity: Literal["default", "full"] = Field(
        default="default",
        description="PostgreSQL's `REPLICA IDENTITY`. `full`: all tables have it, so former rows are whole. "
        "`default`: a delete is by its key alone, and an update has no former row, as what else stands in it may be filled in.",
    )
    unavailable_value: Annotated[str, Field(min_length=1), AfterValidator(_placeholder)] = Field(
        default=DEFAULT_MODES.unavailable,
        description="Its `unavailable.value.placeholder`, of PostgreSQL and Oracle: a text, or `hex:` and octets.",
    )
    nulls_as_defaults: Literal["refuse", "accept"] = Field(
        default="refuse",
        description="Where its converter writes a column's default in the place of NULL (`replace.null.with.default`): `refuse` ends the run at "
        "a nullable column with its default, and `accept` takes it for the default.",
    )

    def plain(self) -> DebeziumModes:
        """The plain value."""
        return DebeziumModes(
            decimals=self.decimals,
            binary=self.binary,
            temporal=self.temporal,
            full_identity=self.replica_identity == "full",
            unavailable=self.unavailable_value,
            accepts_defaults=self.nulls_as_defaults == "accept",
        )


class KafkaDocument(Model):
    """Topics of change events that another program writes."""

    type: Literal["kafka"]
    brokers: str = Field(min_length=1, description="Addresses of brokers to begin with: `HOST:PORT`, comma separated.")
    topics: list[Annotated[str, Field(min_length=1)]] = Field(
        min_length=1, description="Names and globs. A topic that a glob takes in later is read from its beginning."
    )
    format: Literal[
        "debezium_json",
        "debezium_avro",
        "debezium_json_schema",
        "debezium_json_schemaless",
        "debezium_unwrapped",
        "maxwell",
        "canal_json",
        "ticdc_canal_json",
        "ticdc_simple",
        "ticdc_simple_avro",
        "ticdc_open_protocol",
        "ticdc_avro",
        "ticdc_debezium",
        "ogg_json",
        "dms_json",
        "json_upsert",
        "avro_upsert",
    ] = Field(
        default="debezium_json",
        description="How messages are written. `debezium_json`: by Debezium, with their schema inline (`schemas.enable=true`). "
        "`debezium_avro`, `debezium_json_schema`: by Debezium, with their schema in a registry. `debezium_unwrapped`: what its transform leaves. "
        "`canal_json`: Canal's flat messages. `json_upsert`, `avro_upsert`: rows under their keys.",
    )
    registry: RegistryDocument | None = Field(
        default=None,
        description="The schema registry of the messages, which formats with Avro and `debezium_json_schema` need.",
    )
    debezium: DebeziumDocument = Field(
        default=DebeziumDocument(),
        description="How the connector is set, as far as messages do not tell: all of it without a schema (`debezium_json_schemaless`, `debezium_unwrapped`), else `binary`, `replica_identity`, `unavailable_value` and `nulls_as_defaults`.",
    )
    schema_file: ExistingPath = Field(
        default=None,
        alias="schema",
        description="An SQL file of CREATE TABLE statements, for tables whose types the messages do not tell.",
    )
    message_schema: ExistingPath = Field(
        default=None,
        description="The file `pkg/sink/codec/simple/message.json` of the TiCDC release that writes, which `ticdc_simple_avro` needs.",
    )
    schema_topic: str = Field(
        default="",
        description="The topic of Debezium's schema changes, which has its connector's `topic.prefix` as name: statements come from there, so that a "
        "column that is renamed keeps its values.",
    )
    time_zone: Annotated[str, AfterValidator(_zone)] = Field(
        default="UTC",
        description="The time zone of TIMESTAMPs that messages have without one, such as `Europe/Berlin`: that in which the producer runs.",
    )
    client: Annotated[dict[str, SecretStr], BeforeValidator(_texts), AfterValidator(_client)] = Field(
        default={},
        description="Settings of librdkafka by its names, for TLS and SASL among others. Secrets are best references: `${env:NAME}`.",
    )
    tables: Annotated[list[Annotated[str, AfterValidator(_pattern)]], Field(min_length=1)] = Field(
        default=["*.*"], description="Patterns of captured tables: globs on `DATABASE.TABLE` as the source names them."
    )
    start: Annotated[str, Field(min_length=1), AfterValidator(_start)] = Field(
        default="earliest",
        description="Where the first run begins: `earliest`, `latest`, a moment (`2026-11-01T00:00:00Z`: the first messages dated then or later), or `TOPIC:PARTITION:OFFSET,...`. Partitions that are not named begin at their first message.",
    )
    group: str = Field(
        default="",
        description="A consumer group whose offsets at the brokers tell how far the run is, for monitors alone. Nobody joins it, and nothing is read from it.",
    )
    normalize: bool | Annotated[list[Annotated[str, AfterValidator(_pattern)]], Field(min_length=1)] = Field(
        default=False,
        description="Tables whose changes may lack the former row, or come again: `true` for all, or patterns as in `tables`. "
        "Former rows come from a state that the run keeps. Only of a new connector.",
    )
    state: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="Where that state is kept, a directory or URL; by default `historian_state` in the first Delta lake.",
    )
    tombstones: Literal["delete", "ignore", "refuse"] = Field(
        default="delete",
        description="What a message without a value says, in `debezium_unwrapped`, `json_upsert` and `avro_upsert`. `delete` (default): the row under "
        "its key is gone, of the table that the topic names. Of `debezium_unwrapped` alone: `ignore`: nothing, as deletes have rows with `__deleted`; `refuse`: it ends the run.",
    )
    unreadable: Literal["fail", "dead_letter"] = Field(
        default="fail",
        description="Messages that cannot be read. `fail` (default): the run ends with an error that names the first one. `dead_letter`: they are counted, and stand in `historian_dead_letters` with their bytes.",
    )

    @field_validator("tombstones")
    @classmethod
    def _tombstones(cls, tombstones: str, info: ValidationInfo) -> str:
        form = info.data.get("format")
        if form not in (*_BY_TOMBSTONES, "debezium_unwrapped", None):
            raise ValueError(f"format {form} tells deletes otherwise: leave tombstones out")
        if tombstones != "delete" and form in _BY_TOMBSTONES:
            raise ValueError(f"format {form} has no other deletes than messages without a value: they would be lost")
        return tombstones

    @model_validator(mode="after")
    def _registry(self) -> KafkaDocument:
        if (self.format == "ticdc_simple_avro") != (self.message_schema is not None):
            wanted = "message_schema" if self.message_schema is None else "no message_schema"
            raise ValueError(f"format {self.format} needs {wanted}")
        told = DebeziumDocument()
        if self.format in _WITH_BINARY:
            told = DebeziumDocument(
                binary=self.debezium.binary,
                replica_identity=self.debezium.replica_identity,
                unavailable_value=self.debezium.unavailable_value,
                nulls_as_defaults=self.debezium.nulls_as_defaults,
            )
        if self.debezium != told and self.format not in _BY_MODES:
            raise ValueError(f"format {self.format} tells how values are written: leave source.debezium out")
        if self.schema_topic and self.format not in _WITH_SCHEMA_TOPIC:
            raise ValueError(f"schema_topic is of {', '.join(_WITH_SCHEMA_TOPIC)}")
        if self.format not in _MAYBE_BY_REGISTRY and (self.format in _BY_REGISTRY) != (self.registry is not None):
            wanted = "registry" if self.registry is None else "no registry"
            raise ValueError(f"format {self.format} needs {wanted}")
        return self

    @model_validator(mode="after")
    def _state(self) -> KafkaDocument:
        if self.state is not None and not self.normalize:
            raise ValueError("state is of no use without normalize")
        return self

    def plain(self, name: str) -> settings.SourceConfig:  # noqa: ARG002 as the other sources'
        """The plain value."""
        return settings.KafkaSource(
            brokers=self.brokers,
            topics=tuple(self.topics),
            format=self.format,
            client={key: value.get_secret_value() for key, value in self.client.items()},
            tables=TableFilter(tuple(self.tables)),
            start=self.start,
            schema=self.schema_file,
            time_zone=self.time_zone,
            registry=None if self.registry is None else self.registry.plain(),
            unreadable=self.unreadable,
            modes=self.debezium.plain(),
            message_schema=self.message_schema,
            schema_topic=self.schema_topic,
            group=self.group,
            normalize=TableFilter(_patterns(self.normalize)) if self.normalize else None,
            state=self.state,
            tombstones=self.tombstones,
        )
