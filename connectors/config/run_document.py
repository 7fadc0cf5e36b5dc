"""The document's part on how a run goes."""

from __future__ import annotations

import math
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, model_validator

from connectors.config import settings, values
from connectors.config.model import Bytes, Model, parsed, schema_types
from connectors.config.webhooks import is_webhook

__all__ = ["HttpDocument", "OpenLineageDocument", "RunDocument", "SparkDocument"]


def _trigger(text: str | int) -> float | str:
    if text == values.ONCE:
        return values.ONCE
    trigger_s = values.parse_duration_s(str(text))
    if not trigger_s:
        raise ValueError("expected a duration above zero, or once")
    return trigger_s


_Trigger = Annotated[Any, parsed(_trigger), schema_types("string")]
_Limit = Annotated[Any, parsed(values.parse_duration_s), schema_types("string")]
_Retry = Annotated[Any, parsed(values.parse_retry_s), schema_types("string")]


class HttpDocument(Model):
    """The endpoint with a run's metrics, health and status."""

    listen: Annotated[Any, parsed(values.parse_address), schema_types("string", "integer")] = Field(
        description="Where it listens, as `127.0.0.1:9464`. `0.0.0.0:9464`: on all of the machine's addresses."
    )
    token: SecretStr = Field(
        default=SecretStr(""),
        description="What `/metrics` and `/status` want as `Authorization: Bearer`. By default nothing.",
    )
    max_tables: int = Field(
        default=1000, ge=0, description="How many tables have series of their own. Others are counted together."
    )
    max_lag: _Limit | None = Field(
        default=None,
        description="A run that is further behind is not ready, such as `5 minutes`. By default lag does not matter.",
    )
    max_silence: _Limit = Field(
        default=900.0,
        description="A run that nothing is heard of for longer is not healthy: no plan, no look at the log.",
    )

    @model_validator(mode="after")
    def _guards(self) -> HttpDocument:
        if "token" in self.model_fields_set and not self.token.get_secret_value():
            raise ValueError("expected a token that is not empty, or none")
        return self

    def plain(self) -> settings.HttpConfig:
        """The plain value."""
        host, port = self.listen
        return settings.HttpConfig(
            host=host,
            port=port,
            token=self.token.get_secret_value(),
            max_tables=self.max_tables,
            max_lag_s=math.inf if self.max_lag is None else self.max_lag,
            max_silence_s=self.max_silence,
        )


def _setting(value: object) -> str:
    """A setting's value as Spark has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise ValueError("expected a text, a number, true or false")


_Setting = Annotated[str, BeforeValidator(_setting), schema_types("string", "number", "boolean")]


class SparkDocument(Model):
    """The Spark session that a run makes."""

    master: str | None = Field(
        default=None,
        min_length=1,
        description="Where Spark runs, such as `spark://host:7077` or `local[4]`. By default where `spark-submit` or "
        "`spark-defaults.conf` says, else `local[*]`. Under `spark-submit` its own master holds.",
    )
    conf: dict[Annotated[str, Field(pattern=r"^spark\.")], _Setting] = Field(
        default={},
        description="Settings of Spark, such as `spark.executor.memory: 4g`. They win over ours and over "
        "`spark-defaults.conf`; what `spark-submit` was given wins over them.",
    )

    @model_validator(mode="after")
    def _says_master_once(self) -> SparkDocument:
        if "spark.master" in self.conf:
            raise ValueError("expected the master in master, not in conf")
        return self

    def plain(self) -> settings.SparkConfig:
        """The plain value."""
        return settings.SparkConfig(master=self.master, conf=tuple(sorted(self.conf.items())))


class OpenLineageDocument(Model):
    """Where events of OpenLineage go."""

    url: SecretStr = Field(
        description="A server of lineage, such as `http://marquez:5000`. Without a path events go to `/api/v1/lineage` there."
    )
    api_key: SecretStr = Field(
        default=SecretStr(""), description="Sent as `Authorization: Bearer`. By default nothing is."
    )
    namespace: str = Field(
        default="historian", min_length=1, description="Of the job. Its name is that of the connector."
    )
    source: str = Field(
        default="",
        description="Namespace of the captured tables, as others who tell of them call it. By default `mysql://HOST:PORT`.",
    )

    @model_validator(mode="after")
    def _has_address(self) -> OpenLineageDocument:
        if not is_webhook(self.url.get_secret_value()):
            raise ValueError("expected a url of http:// or https://, without blanks, and with a port that is a number")
        return self

    def plain(self) -> settings.OpenLineageConfig:
        """The plain value."""
        url = self.url.get_secret_value()
        address = urlsplit(url)
        if address.path in ("", "/") and not address.query:
            url = f"{url.rstrip('/')}/api/v1/lineage"
        return settings.OpenLineageConfig(
            url=url, api_key=self.api_key.get_secret_value(), namespace=self.namespace, source=self.source
        )


def _located(value: object) -> object:
    return {"url": value} if isinstance(value, str) else value


def _listening(value: object) -> object:
    return {"listen": value} if isinstance(value, (str, int)) and not isinstance(value, bool) else value


class RunDocument(Model):
    """How a run goes."""

    trigger: _Trigger = Field(
        default=2.0,
        description="Time from the start of one plan to the next, such as `2 seconds`. `once`: end at the present end of the log.",
    )
    max_batch_bytes: Bytes = Field(
        default=256_000_000, description="The most log in one plan, such as `256 MB`. A transaction is never cut."
    )
    batch_bytes: Bytes | None = Field(
        default=None,
        description="The log for which a plan is made before the trigger's time. By default `max_batch_bytes`.",
    )
    retry: _Retry | None = Field(
        default=None,
        description="How long a run tries again where what failed may pass, such as a server's restart: `forever`, `never` or a "
        "time such as `10 minutes`. By default `forever`, and `never` for runs with `--once` or `--until`.",
    )
    http: Annotated[HttpDocument | None, BeforeValidator(_listening)] = Field(
        default=None,
        description="Where the run's metrics and health are served, such as `127.0.0.1:9464`, or a mapping. By default nowhere.",
    )
    spark: SparkDocument = Field(default=SparkDocument(), description="The Spark session that the run makes.")
    openlineage: Annotated[OpenLineageDocument | None, BeforeValidator(_located)] = Field(
        default=None,
        description="Where events of OpenLineage go: a URL, or a mapping. By default nowhere.",
    )
    checkpoint: str | None = Field(default=None, description="Of earlier releases. Accepted and not used.")

    @model_validator(mode="after")
    def _fits(self) -> RunDocument:
        if self.batch_bytes is not None and self.batch_bytes > self.max_batch_bytes:
            raise ValueError("expected a batch_bytes of max_batch_bytes at most")
        return self

    def plain(self) -> settings.RunConfig:
        """The plain value."""
        once = self.trigger == values.ONCE
        return settings.RunConfig(
            once=once,
            trigger_s=0.0 if once else cast("float", self.trigger),
            max_batch_bytes=self.max_batch_bytes,
            batch_bytes=self.batch_bytes or self.max_batch_bytes,
            retry_s=self.retry,
            http=None if self.http is None else self.http.plain(),
            spark=self.spark.plain(),
            openlineage=None if self.openlineage is None else self.openlineage.plain(),
        )
