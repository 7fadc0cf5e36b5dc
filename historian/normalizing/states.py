"""What normalisation asks of the place that keeps the last row of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from historian.normalizing.keys import KeyHashes
from historian.schema.snapshots import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KeyedState", "KeyedStates"]


class KeyedState(Protocol):
    """The last row of each key of one table. Rows are cells of :func:`historian.encoding.encode_rows`. Not for several threads at once.

    What is put is seen by those who look here, and is kept once :meth:`KeyedStates.commit` has returned.
    """

    @property
    def key(self) -> str:
        """How the keys that are held were made, see :func:`historian.normalizing.keys.key_form`; "" where none are."""

    @property
    def layout(self) -> str:
        """With which columns all rows were encoded that are held; "" where that is not the same for all."""

    def find(self, keys: KeyHashes) -> pa.Array:
        """The row of each of *keys*, which ascend and are all different; NULL where none is held."""

    def put(self, keys: KeyHashes, rows: pa.Array, *, key: str, layout: str) -> None:
        """Holds *rows* for *keys*, which ascend and are all different; NULL: none from here on.

        Args:
            key: how the keys were made; *layout*: with which columns the rows were encoded.
        """

    def clear(self) -> None:
        """Holds nothing from here on."""

    def rows(self) -> pa.Array:
        """All rows that are held, in any order."""


class KeyedStates(Protocol):
    """The states of a connector's tables, as of the plan before the one that is written."""

    def at(self, plan: int, table_id: int, snapshot: Snapshot | None) -> KeyedState:
        """The state of a table as of what comes before *plan*; *snapshot*: of the table, for people. Retryable.

        Raises:
            ChainBroken: a state is of another connector, or what it held before the plan is not kept any more.
        """

    def is_vacant(self) -> bool:
        """Whether no state was ever kept."""

    def has(self, table_id: int) -> bool:
        """Whether there is a state of a table."""

    def began_with(self, table_id: int) -> tuple[str, ...] | None:
        """The patterns of tables with which a table's state was begun; None: there is no state, or one that does not tell."""

    def forget(self, table_id: int) -> None:
        """What was put of a table and is not kept is not wanted."""

    def commit(self, plan: int) -> None:
        """Keeps what was put for *plan*, once all sinks hold that. A state that holds the plan is left as it is. Retryable."""
