"""What runs note in a store for those who look at it, and for the next run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from historian.store.engine import Transactions
from historian.store.facts import fact, set_fact
from historian.store.message_counts import held_counts

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Notes"]


class Notes:
    """Texts that a run keeps in its store. Whoever writes one says what stands in it; each replaces the one before."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def note_retry(self, text: str) -> None:
        """Keeps what a run's last attempt failed with, while the run waits to try again; "": it does not wait."""
        self._note("retry", text)

    def retry(self) -> str:
        """What :meth:`note_retry` keeps."""
        return self._noted("retry")

    def note_copies_wait(self, text: str) -> None:
        """Keeps why a run copies no rows for now; "": it does."""
        self._note("copies_wait", text)

    def copies_wait(self) -> str:
        """What :meth:`note_copies_wait` keeps."""
        return self._noted("copies_wait")

    def note_copies_reading(self, text: str) -> None:
        """Keeps what SELECTs have given so far of the rows that the next plan copies; "": none is under way."""
        self._note("copies_reading", text)

    def copies_reading(self) -> str:
        """What :meth:`note_copies_reading` keeps, of a run that may have ended meanwhile."""
        return self._noted("copies_reading")

    def note_targets(self, text: str, apart: str = "") -> None:
        """Keeps where the targets stand, as a run has told it, and *apart* what of it is more than that a target is up to date."""

        def work(connection: Connection) -> None:
            set_fact(connection, "targets", text)
            set_fact(connection, "targets_apart", apart)

        self._transactions.write(work)

    def targets(self) -> str:
        """What :meth:`note_targets` keeps; "": no run has told."""
        return self._noted("targets")

    def targets_apart(self) -> str:
        """What :meth:`note_targets` keeps apart, so that nobody need read the rest; "": nothing."""
        return self._noted("targets_apart")

    def note_notifications(self, text: str) -> None:
        """Keeps what was told of the runs of the connector, and what is on its way."""
        self._note("notifications", text)

    def notifications(self) -> str:
        """What :meth:`note_notifications` keeps; "": nothing."""
        return self._noted("notifications")

    def message_counts(self) -> dict[str, int]:
        """Of topics: how many messages were ``repeated``, ``doubtful`` or ``late``, as plans were stored; those kinds alone that there were."""
        return self._transactions.read(held_counts)

    def note_start(self, text: str) -> None:
        """Keeps where the connector begins, as its configuration says it; before its first entry is recorded."""
        self._note("start", text)

    def start(self) -> str:
        """What :meth:`note_start` keeps; "": not known."""
        return self._noted("start")

    def note_normalization(self, text: str) -> None:
        """Keeps what normalisation has met so far, by table."""
        self._note("normalization", text)

    def normalization(self) -> str:
        """What :meth:`note_normalization` keeps; "": nothing."""
        return self._noted("normalization")

    def note_configuration(self, text: str) -> None:
        """Keeps the configuration that the last run holds its targets with; no secret is in it."""
        self._note("configuration", text)

    def configuration(self) -> str:
        """What :meth:`note_configuration` keeps; "": no run has noted it."""
        return self._noted("configuration")

    def note_reload(self, text: str) -> None:
        """Keeps what became of the last wish that a run reads its configuration again."""
        self._note("reload", text)

    def reload(self) -> str:
        """What :meth:`note_reload` keeps; "": there was none."""
        return self._noted("reload")

    def _note(self, name: str, text: str) -> None:
        self._transactions.write(lambda connection: set_fact(connection, name, text))

    def _noted(self, name: str) -> str:
        return self._transactions.read(lambda connection: fact(connection, name)) or ""
