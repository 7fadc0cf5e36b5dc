"""What a tracker knows of a copier: who gives plans the rows that they copy from the source, and which connectors have one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from connectors.config import ServerSource
from connectors.tracking.first_schema import begins_with_copies
from historian.names import TableName
from historian.plans.plans import LogRange, Plan, PlannedTable
from historian.schema.snapshots import ForeignKey

if TYPE_CHECKING:
    from connectors.config import SourceConfig
    from historian.store import Store

__all__ = ["NO_CASCADES", "CascadingKey", "Copier", "CopyingPlan", "ParentLog", "copies_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadingKey:
    """A foreign key with an action.

    Attributes:
        child: id of its table.
        parents: ids of the tables that it may reference; ``names``: all that those ever had.
        referenced: all names, in lower case, that the columns of those may have which it references.
    """

    child: int
    key: ForeignKey
    parents: frozenset[int]
    names: frozenset[TableName]
    referenced: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentLog:
    """What a plan's log may hold of rows by whose changes a foreign key changes others.

    Attributes:
        keys: of captured tables, or of tables between those and others.
        tables: the parents that have rows there; ``ranges``: where those are.
        unread: tables that changed there in a way that cannot be read.
    """

    keys: tuple[CascadingKey, ...] = ()
    tables: tuple[PlannedTable, ...] = ()
    ranges: tuple[LogRange, ...] = ()
    unread: frozenset[TableName] = frozenset()


NO_CASCADES = ParentLog()


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyingPlan:
    """A plan with what it copies.

    Attributes:
        plan: with how far its tables are copied. It is not stored.
        copied: its rows, chunk by chunk, to be stored with it. Can be gone through again.
        is_news: whether a copy begins, comes further or ends with it.
        close: frees the rows.
    """

    plan: Plan
    copied: Iterable[bytes]
    is_news: bool
    close: Callable[[], None]


class Copier(Protocol):
    """Gives plans the rows that they copy."""

    @property
    def waits(self) -> bool:
        """Whether, as of the last plan, rows are left that can be copied."""

    @property
    def is_free(self) -> bool:
        """Whether they may be copied now, as the limits say.

        Raises:
            ConnectionLost: the server that rows are read from does not answer.
        """

    @property
    def goes_first(self) -> bool:
        """Whether rows wait that a plan without any log can have alone, and the last plan had log."""

    def look_again(self) -> None:
        """Tells that the store has a copy which did not come by :meth:`with_copies`."""

    def with_copies(self, plan: Plan, begun: Collection[int], parents: ParentLog = NO_CASCADES) -> CopyingPlan:
        """*plan*, behind all that is stored, with what it copies; the copies of the tables *begun* begin with it.

        Tables whose rows a foreign key changed, as *parents* tell, are repaired with it.

        Raises:
            SourceError: rows cannot be read as of a position.
            ConnectionLost: the server does not answer.
        """


def copies_rows(source: SourceConfig, store: Store | None) -> bool:
    """Whether runs of a connector copy rows: it began with that, or its configuration names such a start.

    One that has begun goes on as it did, whatever the start is where none is named.

    Args:
        source: as it is configured.
        store: of the connector; None: it has not begun.
    """
    if not isinstance(source, ServerSource):
        return False
    is_wanted = begins_with_copies(source.start)
    if store is None or not store.last_number():
        return is_wanted
    return (is_wanted and source.names_start) or begins_with_copies(store.start()) or bool(store.copies())
