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
        self._is_changed = False
        held = json.loads(store.notifications() or "{}")
        known = held.get("channels", {})
        told = held.get("told", {})
        self.told = Told(
            entry=told.get("entry", -1),
            open={k: (v[0], v[1]) for k, v in told.get("open", {}).items()},
            run=told.get("run", ""),
        )
        self._channels = {name: _Channel(**known[name]) if name in known else _Channel([]) for name in channels}

    def add(self, found: Mapping[str, Collection[Message]], told: Told) -> None:
        """Takes messages for channels, and what has been told with them. :meth:`save` keeps them."""
        with self._lock:
            for name, some in found.items():
                channel = self._channels[name]
                channel.pending += [message.fields() for message in some]
                while len(channel.pending) > _MOST:
                    least = next((m for m in channel.pending if m["severity"] == "info"), channel.pending[0])
                    channel.pending.remove(least)
                    channel.given_up += 1
                self._is_changed = self._is_changed or bool(some)
            self._is_changed = self._is_changed or told != self.told
            self.told = told

    def save(self) -> None:
        """Keeps in the store what is new since it was kept; behind an error the next call does it.

        Raises:
            StoreError: it cannot be kept now.
        """
        with self._lock:
            if self._is_changed:
                self._store.note_notifications(self._text())
                self._is_changed = False

    def first(self, name: str) -> Message | None:
        """The oldest message that the channel has not taken; None: it has taken all."""
        with self._lock:
            pending = self._channels[name].pending
            return Message(**pending[0]) if pending else None

    def taken(self, name: str, key: str, *, is_refused: bool = False) -> None:
        """Notes that the channel has taken the message of that key, or that it will never take it."""
        with self._lock:
            channel = self._channels[name]
            channel.pending = [each for each in channel.pending if each["key"] != key]
            channel.given_up += is_refused
            channel.error, channel.since_us = "", 0
            self._is_changed = True

    def failed(self, name: str, error: str, now_us: int) -> None:
        """Notes what keeps the channel from taking messages."""
        with self._lock:
            channel = self._channels[name]
            if channel.error != error:
                channel.error, channel.since_us = error, channel.since_us or now_us
                self._is_changed = True

    def _text(self) -> str:
        channels = {
            name: {"pending": c.pending, "error": c.error, "since_us": c.since_us, "given_up": c.given_up}
            for name, c in self._channels.items()
        }
        told = {"entry": self.told.entry, "open": self.told.open, "run": self.told.run}
        return json.dumps({"told": told, "channels": channels})
