"""Ways of a message out: a webhook, a command, the log, a server of lineage."""

from __future__ import annotations

import hashlib
import http.client
import json
import logging
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from connectors.notifications.templates import TEMPLATES
from historian.errors import HistorianError
from historian.secret import mark_of

if TYPE_CHECKING:
    from connectors.config.settings import ChannelConfig, OpenLineageConfig
    from connectors.notifications.messages import Message

__all__ = ["LINEAGE", "Channel", "ChannelFailed", "MessageRefused", "channel_name", "lineage_channel", "notify_channel"]

_TIMEOUT_S = 10.0
_COMMAND_TIMEOUT_S = 60.0
_REFUSALS = frozenset((400, 404, 405, 410, 411, 413, 415, 422))
_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_log = logging.getLogger(__name__)


LINEAGE = "lineage"
"""The event of messages whose details are an event of OpenLineage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One that is told.

    Attributes:
        name: without secrets; the same in each run, and another one for each that is configured otherwise.
        events: that it takes.
        send: gives it a message; raises :class:`ChannelFailed` where it was not taken.
    """

    name: str
    events: Collection[str]
    send: Callable[[Message], None]


class ChannelFailed(HistorianError):
    """A message was not taken; another try may succeed."""

    retryable = True


class MessageRefused(ChannelFailed):
    """It was not taken for what it is, and another try will not help."""

    retryable = False


@lru_cache(maxsize=64)
def channel_name(config: ChannelConfig) -> str:
    """What the channel is called, without its secrets; the same in each run, and another one for each that is configured otherwise."""
    if config.webhook:
        name = f"{config.template} webhook at {urlsplit(config.webhook).hostname}"
    else:
        name = f"command {Path(config.command[0]).name}" if config.command else "log"
    known = json.dumps([name, config.events])
    secrets = json.dumps([config.webhook, config.routing_key, config.command])
    return f"{name} ({hashlib.sha256(known.encode()).hexdigest()[:4]}{mark_of(secrets, known.encode())})"


def notify_channel(config: ChannelConfig) -> Channel:
    """The channel of `notify.to`."""
    return Channel(name=channel_name(config), events=config.events, send=partial(_send, config))


def lineage_channel(config: OpenLineageConfig) -> Channel:
    """The channel to a server of OpenLineage."""
    name = f"openlineage at {urlsplit(config.url).hostname}"  # there is one
    headers = {"Authorization": f"Bearer {config.api_key}"} if config.api_key else {}

    def post(message: Message) -> None:
        _post(name, config.url, message.details, headers)

    return Channel(name=name, events=(LINEAGE,), send=post)


def _send(config: ChannelConfig, message: Message) -> None:
    if config.webhook:
        body = TEMPLATES[config.template](message, config.routing_key)
        _post(channel_name(config), config.webhook, body, {"Idempotency-Key": message.key})
    elif config.command:
        _call(config, message)
    else:
        _log.log(_LEVELS[message.severity], "%s", message.text, extra={"table": message.table} if message.table else {})


def _post(name: str, url: str, body: Mapping[str, Any], more: Mapping[str, str]) -> None:
    headers = {"Content-Type": "application/json", "User-Agent": "pyspark-historian", **more}
    request = urllib.request.Request(url, data=json.dumps(body).encode(), headers=headers, method="POST")  # noqa: S310 checked with the configuration
    try:
        with _OPENER.open(request, timeout=_TIMEOUT_S) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        error.close()  # its text has the address, which can be a secret
        kind = MessageRefused if error.code in _REFUSALS else ChannelFailed
        raise _failed(name, f"HTTP status {error.code}", kind) from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        found = getattr(error, "reason", None) or error
        told = f": {found}" if isinstance(found, OSError) else ""
        raise _failed(name, f"{type(found).__name__}{told}") from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A message goes where the configuration says, or nowhere."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """None: the answer counts as an error."""


_OPENER = urllib.request.build_opener(_NoRedirects())


def _call(config: ChannelConfig, message: Message) -> None:
    body = json.dumps(TEMPLATES["json"](message, ""))
    try:
        done = subprocess.run(  # noqa: S603 the user's own program
            config.command, input=body.encode(), capture_output=True, timeout=_COMMAND_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:  # its text has the arguments, which can be secrets
        raise _failed(channel_name(config), f"no end within {_COMMAND_TIMEOUT_S:g} s") from None
    except (OSError, ValueError) as error:
        raise _failed(channel_name(config), getattr(error, "strerror", None) or type(error).__name__) from None
    if done.returncode:
        raise _failed(
            channel_name(config), f"ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()[-200:]}"
        )


def _failed(name: str, found: str, kind: type[ChannelFailed] = ChannelFailed) -> ChannelFailed:
    return kind(
        "a message was not taken",
        where=name,
        found=found,
        next_step="it is sent again by itself; look at who takes it if this goes on",
    )
