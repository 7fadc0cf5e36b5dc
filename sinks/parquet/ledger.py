"""What a Parquet sink holds: one JSON file a plan, put in place when all of the plan's rows are there.

A file is written under a name that readers skip, and moved. Where a store has no move that is atomic, a plan counts
once its JSON file can be read.
"""

from __future__ import annotations

import pyarrow.fs as pafs

from historian import codec
from historian.errors import SinkError
from sinks.contract.held_plans import HeldPlan
from sinks.contract.storage import located, reading, writing

__all__ = ["Ledger"]

_DIRECTORY = "_historian"


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
