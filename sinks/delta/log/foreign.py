"""Commits of others in a target's log, and the version that stood before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from historian.errors import SinkError
from historian.names import quoted
from sinks.delta.log.target import MAINTENANCE, Target, is_of, session_settings, told_as_ours

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sinks.delta.log.kernel import Kernel

__all__ = ["CannotPutBack", "ForeignCommit", "ForeignCommits", "foreign_commits", "put_back"]

_ANEW = "`historian replay --table TABLE --from earliest` builds fresh targets"


class CannotPutBack(SinkError):
    """A target that someone else changed does not get back to what it was; it stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignCommit:
    """A commit by someone else that may change rows or columns: its ``version``, ``operation``, and who it is ``by``."""

    version: int
    operation: str
    by: str

    def __str__(self) -> str:
        return f"{self.operation} at version {self.version}, by {self.by}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignCommits:
    """What others did to a target behind the connector's last commit.

    Attributes:
        directory: of the target.
        commits: in order; there is one at least.
        base: the version before them; None where the log of the connector's last commit is gone.
    """

    directory: str
    commits: tuple[ForeignCommit, ...]
    base: int | None


def foreign_commits(kernel: Kernel, connector: str, target: Target) -> ForeignCommits | None:
    """What others did to *target*; None where they changed neither rows nor columns, or no table of the connector's is there."""
    view = kernel.view(target.path)
    if view is None or not target.is_in(view):
        return None
    found: list[ForeignCommit] = []
    first = view.version
    info: Mapping[str, Any] | None = None
    for version in range(view.version, -1, -1):
        info = kernel.commit_info(target.path, version)
        if info is None or is_of(connector, info):
            break
        if info.get("operation") not in MAINTENANCE:
            found.append(_commit(version, info))
            first = version
    if not found:
        return None
    is_known = info is not None and is_of(connector, info)
    return ForeignCommits(
        directory=target.directory, commits=tuple(reversed(found)), base=first - 1 if is_known else None
    )


def put_back(spark: SparkSession, kernel: Kernel, connector: str, target: Target, foreign: ForeignCommits) -> None:
    """Puts *target* back as it was before *foreign*, schema and properties too, by one commit of *connector*.

    What it holds of plans stays: that is told by transaction identifiers, which no RESTORE takes back. Safe to try again.

    Raises:
        CannotPutBack: files or log of that version are gone, or Delta refuses it.
    """
    base = None if foreign.base is None else kernel.view_at(target.path, foreign.base)
    newest = kernel.view(target.path)
    if base is None or newest is None:
        raise _refused(target, foreign, "a log that begins later")
    held = [view.transaction(target.application) for view in (base, newest)]
    if held[0] != held[1]:
        raise _refused(target, foreign, f"step {held[0]} of plans there, and step {held[1]} now")
    try:
        with session_settings(spark, told_as_ours(connector, "puts back what it was")):
            spark.sql(f"RESTORE TABLE delta.{quoted(target.path)} TO VERSION AS OF {foreign.base}")
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise _refused(target, foreign, lines[0]) from error
    target.refresh()


def _commit(version: int, info: Mapping[str, Any]) -> ForeignCommit:
    by, told = str(info.get("engineInfo") or "an unknown engine"), info.get("userMetadata")
    operation = str(info.get("operation") or "a commit without an operation")
    return ForeignCommit(version=version, operation=operation, by=f"{by} ({told})" if told else by)


def _refused(target: Target, foreign: ForeignCommits, found: str) -> CannotPutBack:
    return CannotPutBack(
        "a target that someone else changed cannot be put back",
        where=f"{target.path} before version {foreign.commits[0].version}",
        expected="the files that it had with the connector's last commit, and its log",
        found=found,
        next_step=_ANEW,
    )
