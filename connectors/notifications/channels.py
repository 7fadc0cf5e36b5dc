"""Ways of a message out: a webhook, a command, the log."""

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
import urllib.error
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from connectors.notifications.templates import TEMPLATES
from historian.errors import HistorianError

if TYPE_CHECKING:
    from connectors.config.settings import ChannelConfig
    from connectors.notifications.messages import Message

__all__ = ["ChannelFailed", "channel_name", "send"]

_TIMEOUT_S = 10.0
_COMMAND_TIMEOUT_S = 60.0
_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_log = logging.getLogger(__name__)


class ChannelFailed(HistorianError):
    """A message was not taken; another try may succeed."""

    retryable = True


def channel_name(config: ChannelConfig) -> str:
    """What the channel is called, without its secrets; the same in each run."""
    if config.webhook:
        mark = hashlib.sha256(config.webhook.encode()).hexdigest()[:8]
        return f"{config.template} webhook at {urlsplit(config.webhook).hostname} ({mark})"
    return f"command {config.command[0]}" if config.command else "log"


def send(config: ChannelConfig, message: Message) -> None:
    """Gives *message* to a channel.

    Raises:
        ChannelFailed: it was not taken.
    """
    if config.webhook:
        _post(config, message)
    elif config.command:
        _call(config, message)
    else:
        _log.log(_LEVELS[message.severity], "%s", message.text, extra={"table": message.table} if message.table else {})


def _post(config: ChannelConfig, message: Message) -> None:
    body = json.dumps(TEMPLATES[config.template](message, config.routing_key)).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "pyspark-historian", "Idempotency-Key": message.key}
    request = urllib.request.Request(config.webhook, data=body, headers=headers, method="POST")  # noqa: S310 checked with the configuration
    try:
        with _OPENER.open(request, timeout=_TIMEOUT_S) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        raise _failed(config, f"HTTP status {error.code}") from None  # its text has the address, which can be secret
    except (OSError, ValueError) as error:
        found = getattr(error, "reason", None) or error
        raise _failed(config, f"{type(found).__name__}: {found}".replace(config.webhook, "…")) from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A message goes where the configuration says, or nowhere."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """None: the answer counts as an error."""


_OPENER = urllib.request.build_opener(_NoRedirects())


def _call(config: ChannelConfig, message: Message) -> None:
    body = json.dumps(TEMPLATES["json"](message, ""))
    try:
        done = subprocess.run(  # noqa: S603 the user's own program
            config.command, input=body, text=True, capture_output=True, timeout=_COMMAND_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(config, f"{type(error).__name__}: {error}") from error
    if done.returncode:
        raise _failed(config, f"ended with {done.returncode}: {done.stderr.strip()[-200:]}")


def _failed(config: ChannelConfig, found: str) -> ChannelFailed:
    return ChannelFailed(
        "a message was not taken",
        where=channel_name(config),
        found=found,
        next_step="it is sent again by itself; look at who takes it if this goes on",
    )
