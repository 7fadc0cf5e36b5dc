"""How a message is put for who takes it.

Sources: https://api.slack.com/messaging/webhooks, https://developer.pagerduty.com/docs/send-alert-event (Events API v2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from connectors.notifications.effects import effect_text
from connectors.notifications.messages import Message

__all__ = ["TEMPLATES"]

_SUMMARY_CHARACTERS = 1024
_SLACK_CHARACTERS = 3000
_MARKS = {"info": ":information_source:", "warning": ":warning:", "error": ":rotating_light:"}


def _plain(message: Message, _key: str) -> dict[str, Any]:
    return {**message.fields(), "time": _time(message)}


def _slack(message: Message, _key: str) -> dict[str, Any]:
    # Slack reads these three as its own markup, wherever they stand.
    lines = [message.text, *(f"\u2022 {text}" for text in _effects(message))]
    text = "\n".join(lines).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    mark = ":white_check_mark:" if message.is_over else _MARKS[message.severity]
    return {"text": f"{mark} *{message.connector}* {text}"[:_SLACK_CHARACTERS]}


def _pagerduty(message: Message, key: str) -> dict[str, Any]:
    return {
        "routing_key": key,
        "event_action": "resolve" if message.is_over else "trigger",
        "dedup_key": message.incident,
        "payload": {
            "summary": "; ".join((f"{message.connector}: {message.text}", *_effects(message)))[:_SUMMARY_CHARACTERS],
            "source": message.connector,
            "severity": message.severity,
            "timestamp": _time(message),
            "component": message.table or None,
            "class": message.event,
            "custom_details": dict(message.details),
        },
    }


def _effects(message: Message) -> list[str]:
    """What targets do with what is told, a line each."""
    return [effect_text(each) for each in message.details.get("targets", ())]


def _time(message: Message) -> str:
    return datetime.fromtimestamp(message.time_us / 1e6, timezone.utc).isoformat(timespec="milliseconds")


TEMPLATES: Mapping[str, Callable[[Message, str], dict[str, Any]]] = {
    "json": _plain,
    "slack": _slack,
    "pagerduty": _pagerduty,
}
"""Template to what makes the body of a request, of a message and the routing key."""
