"""Questions on keys to a source, over a connection that is opened with the first one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from connectors.backfill.keys.coverage import asking
from connectors.backfill.keys.literals import prepare_session
from connectors.readers.binlog.transport.connection import ServerAddress

if TYPE_CHECKING:
    from pymysql.connections import Connection

__all__ = ["KeyQuestions"]


class KeyQuestions:
    """An :data:`~connectors.backfill.keys.coverage.Ask`, for one thread. Most keys are compared without a question."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._connection: Connection[Any] | None = None

    def __call__(self, question: str) -> Sequence[Sequence[Any]]:
        """Its rows."""
        if self._connection is None:
            self._connection = self._address.connect()
            prepare_session(self._connection)
        return asking(self._connection)(question)

    def close(self) -> None:
        """Closes the connection, if there is one."""
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
            self._connection = None
