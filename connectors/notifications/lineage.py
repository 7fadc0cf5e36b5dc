"""Lineage of a run as messages on their way: what is new at each look, and the end."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from connectors.lineage.datasets import Links
from connectors.lineage.events import require_library
from connectors.lineage.runs import LineageRun
from connectors.notifications.channels import LINEAGE
from connectors.notifications.messages import Message, Told
from historian.errors import HistorianError

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from connectors.config.settings import OpenLineageConfig
    from connectors.monitoring.picture import RunPicture
    from connectors.monitoring.stored import StoredTables

__all__ = ["LineageTeller"]

_log = logging.getLogger(__name__)


class LineageTeller:
    """Of one run; for one thread.

    Args:
        is_stream: whether the run goes on until it is ended.

    Raises:
        ConfigError: the package that makes events is missing.
    """

    def __init__(self, config: PipelineConfig, settings: OpenLineageConfig, *, is_stream: bool) -> None:
        require_library()
        self._links = Links(config)
        self._run = LineageRun(config, settings, is_stream=is_stream)
        self._seen: object = None

    def tell(
        self, told: Told, tables: StoredTables, picture: RunPicture, version: int | None
    ) -> tuple[list[Message], Told]:
        """What is new, and what has been told then.

        Args:
            tables: as of a look just taken.
            version: of the history at the end of the run's last plan; None: it has written none yet.
        """
        number = tables.last_number if version is None else version
        try:
            targets = tables.noted_targets()
            seen = (number, version is None, [(each.path, each.table, each.ended) for each in targets])
            if seen == self._seen:
                return [], told
            links = self._links.look(tables.history.catalog_at(number), targets)
            found = self._run.look(links, picture.taken_us, told.run if told.run != self._run.id else "")
        except Exception as error:  # noqa: BLE001 what is wrong with lineage keeps no message from people
            told_of = error if isinstance(error, HistorianError) else f"{type(error).__name__}: {error}"
            _log.warning("lineage cannot be told for now: %s", told_of)
            return [], told
        self._seen = None if self._links.unread else seen
        return _messages(picture, found), replace(told, run=self._run.id)

    def end(self, told: Told, picture: RunPicture, reason: str) -> tuple[list[Message], Told]:
        """What is told at the end of the run, and what has been told then; *reason*: the error that ended it, "": none."""
        found = self._run.ended(picture.taken_us, reason)
        return _messages(picture, found), replace(told, run="") if found else told


def _messages(picture: RunPicture, found: Iterable[tuple[str, dict[str, Any]]]) -> list[Message]:
    return [
        Message(
            key=f"{picture.connector}:{LINEAGE}:{key}",
            incident=f"{picture.connector}:{LINEAGE}:{key}",
            event=LINEAGE,
            connector=picture.connector,
            severity="info",
            text="",
            time_us=picture.taken_us,
            details=event,
        )
        for key, event in found
    ]
