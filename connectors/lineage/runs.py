"""What is told of a run, from one look at it to the next: its begin, tables and targets that are new or changed, its end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any
from uuid import uuid4

from connectors.config.settings import OpenLineageConfig, PipelineConfig
from connectors.lineage.datasets import Link
from connectors.lineage.events import event

__all__ = ["LineageRun"]

_MOST_LINKS = 100
"""In one event; of more several events tell."""


class LineageRun:
    """One run of a connector, as servers of lineage have it; for one thread."""

    def __init__(self, config: PipelineConfig, settings: OpenLineageConfig, *, is_stream: bool) -> None:
        self.id = str(uuid4())
        self._job = (settings.namespace, config.name)
        self._is_stream = is_stream
        self._told: dict[object, Link] = {}
        self._has_begun = False
        self._number = 0

    def look(self, links: Sequence[Link], time_us: int, left: str) -> list[tuple[str, dict[str, Any]]]:
        """Events by their keys: of the begin, and of what is new or changed among *links*.

        Args:
            left: id of a run of the connector whose end nobody has told, since its process was killed; "": there is none.
        """
        found = []
        new = [link for link in links if self._told.get(_name(link)) != link]
        self._told = {_name(link): link for link in links}
        if not self._has_begun:
            self._has_begun = True
            if left:
                found.append((f"{left}:ABORT", self._event("ABORT", time_us, run=left)))
            found.append(self._numbered("START", time_us, new[:_MOST_LINKS]))
            new = new[_MOST_LINKS:]
        parts = iter(new)
        while part := list(islice(parts, _MOST_LINKS)):
            found.append(self._numbered("RUNNING", time_us, part))
        return found

    def ended(self, time_us: int, reason: str) -> list[tuple[str, dict[str, Any]]]:
        """The event of the end, with an error or without one; with all links, unless they are many."""
        if not self._has_begun:
            return []
        links = list(self._told.values())
        some = links if len(links) <= _MOST_LINKS else []
        return [self._numbered("FAIL" if reason else "COMPLETE", time_us, some, reason)]

    def _numbered(self, kind: str, time_us: int, links: Sequence[Link], reason: str = "") -> tuple[str, dict[str, Any]]:
        self._number += 1
        return f"{self.id}:{self._number}", self._event(kind, time_us, links=links, reason=reason)

    def _event(
        self, kind: str, time_us: int, *, run: str = "", links: Sequence[Link] = (), reason: str = ""
    ) -> dict[str, Any]:
        return event(
            kind,
            run=run or self.id,
            job=self._job,
            is_stream=self._is_stream,
            time_us=time_us,
            links=links,
            reason=reason,
        )


def _name(link: Link) -> object:
    if link.target is not None:
        return link.target.namespace, link.target.name
    return tuple((each.namespace, each.name) for each in link.sources)
