"""The document's part on who is told of what."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, model_validator

from connectors.config import settings, values
from connectors.config.model import Model, parsed, schema_types
from connectors.config.webhooks import is_webhook

__all__ = ["ChannelDocument", "NotifyDocument"]

_Event = Literal["table_stopped", "schema_change", "lag", "retention", "repair", "dead_letters", "retry", "run_ended"]
_Limit = Annotated[Any, parsed(values.parse_duration_s), schema_types("string")]


class ChannelDocument(Model):
    """One that is told: a webhook, a command, or the log."""

    webhook: SecretStr | None = Field(default=None, description="The address that messages are posted to as JSON.")
    template: Literal["json", "slack", "pagerduty"] = Field(
        default="json", description="The form of what is posted: `json`, `slack`, or `pagerduty` (Events API v2)."
    )
    routing_key: SecretStr = Field(default=SecretStr(""), description="Of PagerDuty's integration.")
    command: list[str] = Field(
        default=[],
        description="A program and its arguments, which gets the JSON of a message as its input. No shell runs.",
    )
    log: bool = Field(default=False, description="Messages are records of the run's own log.")
    events: list[_Event] | None = Field(
        default=None, min_length=1, description="What it is told. By default everything."
    )

    @model_validator(mode="after")
    def _is_one(self) -> ChannelDocument:
        if sum((self.webhook is not None, bool(self.command), self.log)) != 1:
            raise ValueError("expected one of webhook, command and log")
        if self.webhook is not None and not is_webhook(self.webhook.get_secret_value()):
            raise ValueError(
                "expected a webhook of http:// or https://, without blanks, and with a port that is a number"
            )
        if self.webhook is None and self.template != "json":
            raise ValueError("expected a template only of a webhook")
        if (self.template == "pagerduty") != bool(self.routing_key.get_secret_value()):
            raise ValueError("expected a routing_key with the template pagerduty, and with no other")
        return self

    def plain(self) -> settings.ChannelConfig:
        """The plain value."""
        return settings.ChannelConfig(
            webhook="" if self.webhook is None else self.webhook.get_secret_value(),
            template=self.template,
            routing_key=self.routing_key.get_secret_value(),
            command=tuple(self.command),
            events=settings.NOTIFY_EVENTS if self.events is None else tuple(self.events),
        )


class NotifyDocument(Model):
    """Who is told of what happens to a run."""

    to: list[ChannelDocument] = Field(min_length=1, description="Who is told.")
    max_lag: _Limit | None = Field(
        default=None, description="A run that is further behind is told, such as `5 minutes`. By default none is."
    )

    @model_validator(mode="after")
    def _are_different(self) -> NotifyDocument:
        if len({channel.plain() for channel in self.to}) < len(self.to):
            raise ValueError("expected channels that differ")
        return self

    def plain(self) -> settings.NotifyConfig:
        """The plain value."""
        return settings.NotifyConfig(
            channels=tuple(channel.plain() for channel in self.to),
            max_lag_s=math.inf if self.max_lag is None else self.max_lag,
        )
