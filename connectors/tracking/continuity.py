"""Whether the log is still the one that was read: resets, other servers and upgrades are noticed, and named.

GTIDs and file names begin anew after a reset, so positions of the old log can lie inside the new one, and mean other
transactions there. When a file was begun tells them apart.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from connectors.readers.base import LogMark
from historian import codec
from historian.errors import LogReplaced
from historian.positions import FilePosition, LogPosition

if TYPE_CHECKING:
    from connectors.readers.base import Reader
    from historian.store import Store

__all__ = ["Continuity"]

_log = logging.getLogger(__name__)


class Continuity:
    """Compares the log with what was noted of it when it was read last; each new file and server is noted."""

    def __init__(self, store: Store, reader: Reader) -> None:
        self._store = store
        self._reader = reader
        self._is_checked = False
        self._held: LogMark | None = None

    def check(self) -> None:
        """Looks once, before the log is read on.

        Raises:
            LogReplaced: the log was reset, or the file that was read last is another one.
        """
        if self._is_checked:
            return
        body = self._store.log()
        held = self._held = None if body is None else codec.load(LogMark, body)
        if held is not None:
            found = self._reader.mark(held.file)
            if held.topics:
                _check_topics(held, found)
            elif found is not None and found.server == held.server:
                if found.made_s != held.made_s:
                    raise _replaced(held, f"one of that name, begun {_time(found.made_s)}")
            else:
                self._check_files(held)
        self._is_checked = True

    def note(self, end: LogPosition) -> None:
        """Notes the file in which what was read ends, and says where server or version are others than before.

        Topics have no file that tells one from another: each time they are asked whether they are those that were read.

        Raises:
            LogReplaced: a topic is another one.
        """
        held = self._held
        if held is not None and not held.topics and (held.file, held.server) == (end.file, end.server):
            return
        found = self._reader.mark(end.file)
        if found is None:
            return
        if held is not None and held.topics:
            _check_topics(held, found)
            found = replace(found, topics={**held.topics, **found.topics})
            if found == held:
                return
        if held is not None and found.server != held.server:
            _log.warning("the log is read from server %s now, up to %s from %s", found.server, held.file, held.server)
        if held is not None and found.version != held.version:
            _log.warning("the server is of version %s from %s on, before %s", found.version, found.file, held.version)
        self._store.remember_log(codec.dump(LogMark, found))
        self._held = found

    def _check_files(self, held: LogMark) -> None:
        """A file that is gone was purged, unless the log's numbers began anew."""
        end = self._reader.end()
        if end.server == held.server and FilePosition(end.file, 0).number < FilePosition(held.file, 0).number:
            raise _replaced(held, f"a log that ends with {end.file}")


def _check_topics(held: LogMark, found: LogMark | None) -> None:
    ids = {} if found is None else found.topics
    for topic, made in held.topics.items():
        if ids.get(topic, made) != made:
            raise LogReplaced(
                "the topic was made anew after it was read: its offsets stand for other messages now",
                where=topic,
                expected=f"the topic of id {made}",
                found=f"one of id {ids[topic]}",
                next_step="start another connector with a name, a store and a lake of its own",
            )


def _replaced(held: LogMark, found: str) -> LogReplaced:
    return LogReplaced(
        "the log was reset after it was read: its positions stand for other transactions now",
        where=f"{held.file} of server {held.server or 'unknown'}",
        expected=f"the file begun {_time(held.made_s)}",
        found=found,
        next_step="start another connector with a name, a store and a lake of its own; or restore the old log",
    )


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
