"""What became of the wish that a run reads its configuration again, as the run notes it in the store."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from historian import codec
from historian.store import Owner

if TYPE_CHECKING:
    from connectors.config import PipelineConfig

__all__ = ["Outcome", "Reload"]

Outcome = Literal["listens", "accepted", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """A note.

    Attributes:
        at_us: when, UTC microseconds.
        outcome: "listens": the process began to listen to SIGHUP; what became of a wish else.
        path: of the file that is read.
        owner: the process.
        problems: of what was refused.
    """

    at_us: int
    outcome: str
    path: str
    owner: Owner
    problems: tuple[str, ...] = ()

    @classmethod
    def now(cls, outcome: Outcome, config: PipelineConfig, owner: Owner, problems: tuple[str, ...] = ()) -> Reload:
        """The note of this moment."""
        return cls(
            at_us=time.time_ns() // 1000,
            outcome=outcome,
            path=str(config.path),
            owner=owner,
            problems=problems,
        )

    @classmethod
    def parse(cls, text: str) -> Reload | None:
        """What :meth:`text` gave; None for "" alone."""
        return codec.load(cls, text) if text else None

    def text(self) -> str:
        """As a store keeps it."""
        return codec.dump(Reload, self)
