"""Messages on their way, kept in the store until they were taken: what was noted is told, whatever ends the process."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectors.notifications.messages import Message, Told

if TYPE_CHECKING:
    from historian.store import Store

__all__ = ["Outbox"]

_MOST = 1000
"""For one channel. Those that are older are given up, and counted."""


@dataclass(slots=True)
class _Channel:
    """What a channel has not taken yet; ``error``: what keeps it, "": nothing; ``since_us``: since when."""

    pending: list[dict[str, Any]]
    error: str = ""
    since_us: int = 0
    given_up: int = 0


class Outbox:
    """The messages of one connector, by channel. From any thread."""

    def __init__(self, store: Store, channels: Iterable[str]) -> None:
        self._store = store
        self._lock = threading.Lock()
        held = json.loads(store.notifications() or "{}")
        known = held.get("channels", {})
        told = held.get("told", {})
        self.told = Told(entry=told.get("entry", -1), open={k: (v[0], v[1]) for k, v in told.get("open", {}).items()})
        self._channels = {name: _Channel(**known[name]) if name in known else _Channel([]) for name in channels}

    def add(self, found: Mapping[str, Collection[Message]], told: Told) -> None:
        """Takes messages for channels, and notes what has been told with them, in one transaction of the store."""
        if told == self.told and not any(found.values()):
            return
        with self._lock:
            for name, some in found.items():
                channel = self._channels[name]
                channel.pending += [message.fields() for message in some]
                over = max(0, len(channel.pending) - _MOST)
                channel.given_up += over
                del channel.pending[:over]
            self.told = told
            self._save()

    def first(self, name: str) -> Message | None:
        """The oldest message that the channel has not taken; None: it has taken all."""
        with self._lock:
            pending = self._channels[name].pending
            return Message(**pending[0]) if pending else None

    def taken(self, name: str, key: str) -> None:
        """Notes that the channel has taken the message of that key."""
        with self._lock:
            channel = self._channels[name]
            channel.pending = [each for each in channel.pending if each["key"] != key]
            channel.error, channel.since_us = "", 0
            self._save()

    def failed(self, name: str, error: str, now_us: int) -> None:
        """Notes what keeps the channel from taking messages."""
        with self._lock:
            channel = self._channels[name]
            if channel.error != error:
                channel.error, channel.since_us = error, channel.since_us or now_us
                self._save()

    def _save(self) -> None:
        channels = {
            name: {"pending": c.pending, "error": c.error, "since_us": c.since_us, "given_up": c.given_up}
            for name, c in self._channels.items()
        }
        told = {"entry": self.told.entry, "open": self.told.open}
        self._store.note_notifications(json.dumps({"told": told, "channels": channels}))
