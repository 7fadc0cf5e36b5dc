"""What a Parquet sink holds: one JSON file a plan, put in place when all of the plan's rows are there.

A file is written under a name that readers skip, and moved; where a store has no move that is atomic, a plan counts
once its JSON file can be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow.fs as pafs

from historian import codec
from historian.errors import SinkError
from historian.history.timeline import TimelineEntry
from historian.plans.plans import Plan
from sinks.contract.base import TargetStatus
from sinks.contract.locations import TableLocation, ended
from sinks.contract.storage import located, reading, writing

__all__ = ["HeldPlan", "Ledger", "Log"]

_DIRECTORY = "_historian"


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """How far a table's changelog goes.

    Attributes:
        next_offset: of the next row.
        live_from: offset of the first row behind the last TRUNCATE or DROP; rows before it amount to nothing.
    """

    next_offset: int = 0
    live_from: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPlan:
    """A plan that the sink holds, and how its tables stand with it.

    Attributes:
        plan: itself.
        changes: schema changes that it is the first to need.
        locations: of every table so far.
        logs: directory to how far its changelog goes.
    """

    plan: Plan
    changes: tuple[TimelineEntry, ...]
    locations: tuple[TableLocation, ...]
    logs: Mapping[str, Log] = field(default_factory=dict)

    @property
    def stopped(self) -> dict[str, str]:
        """Table to why it was stopped."""
        return {location.name: location.stopped for location in self.locations if location.stopped}

    def status(self) -> tuple[TargetStatus, ...]:
        """Of each changelog."""
        over = ended({location.table_id: location for location in self.locations})
        return tuple(
            TargetStatus(
                table=location.name,
                target=location.changelog,
                kind="changelog",
                plan=self.plan.number,
                position=str(self.plan.end),
                made_us=self.plan.system_time_us,
                stopped=location.why_stopped,
                ended=over.get(location.changelog),
            )
            for location in self.locations
        )


class Ledger:
    """The JSON files of a sink at *path*."""

    def __init__(self, path: str) -> None:
        self._system, root = located(path)
        self._directory = f"{root}/{_DIRECTORY}"
        self.where = f"{path}/{_DIRECTORY}"

    def numbers(self) -> list[int]:
        """The numbers of the plans held, in order."""
        selector = pafs.FileSelector(self._directory, allow_not_found=True)
        names = [info.base_name for info in self._system.get_file_info(selector)]
        return sorted(int(name.removesuffix(".json")) for name in names if name.endswith(".json") and name[0] != "_")

    def read(self, number: int) -> HeldPlan:
        """The plan of that number. Raises :class:`SinkError` where its file is damaged."""
        with reading(self.where), self._system.open_input_file(self._path(number)) as file:
            text = file.read()
        try:
            return codec.load(HeldPlan, text)
        except ValueError as error:
            raise SinkError(
                "a plan's file is damaged",
                where=f"{self.where}/{number:012d}.json",
                found=str(error),
                next_step="restore the file as it was, or write to another directory, from the start",
            ) from error

    def append(self, held: HeldPlan) -> None:
        """Puts the file of a plan in place."""
        final = self._path(held.plan.number)
        draft = self._path(held.plan.number, "_")
        with writing(self.where):
            self._system.create_dir(self._directory, recursive=True)
            with self._system.open_output_stream(draft) as file:
                file.write(codec.dump(HeldPlan, held).encode())
            self._system.move(draft, final)

    def _path(self, number: int, mark: str = "") -> str:
        return f"{self._directory}/{mark}{number:012d}.json"
