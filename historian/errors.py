"""The error tree of the project.

::

    HistorianError
    ├── ConfigError            a configuration that cannot be used; lists every problem
    ├── PositionError          a position that cannot be parsed or compared
    ├── PositionExpired        before the first version: do not retry
    ├── PositionAhead          beyond what the tracker has resolved: retry
    ├── PositionUnknown        inside a known gap of the history
    ├── UnknownTable           no such table at that position
    ├── EditConflict           an edit that does not fit the schema it is applied to
    ├── StoreError             a history store that cannot be used or contradicts itself
    │   ├── HistoryMoved       another run recorded meanwhile: start again from what the store holds
    │   ├── StoreNotLetIn      the store's database refuses the user or its password
    │   └── StoreUnreachable   the store's database does not answer: retry
    ├── PlanOutdated           rows of a schema version that the plan does not hold: plan anew
    ├── LeaseHeld              another run of the same connector is alive: retry when it has ended
    ├── SourceError            the log or the server cannot be read as asked
    │   ├── SourceNotLetIn     who is read refuses the user or its password
    │   ├── LogPurged          the log before a position is gone
    │   ├── LogReplaced        another log stands where the one that was read stood
    │   ├── LogCutOtherwise    a second look at a plan's log met other chunks: retry
    │   ├── LogCorrupt         bytes that are no valid log
    │   └── UnsupportedEvent   an event that this release does not read
    ├── TableStopped           a captured table that cannot go on; other tables do
    ├── ValueUnrepresentable   a value that the target type cannot hold
    ├── RowCorrupt             bytes that are no valid encoded row
    └── SinkError              a target that cannot be written
        ├── EditRefused        an edit at which the configuration ends the run
        ├── ChainBroken        a target that misses a plan or was written by someone else
        └── SinkUnreachable    the storage of a target does not answer: retry
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, ClassVar

__all__ = [
    "ChainBroken",
    "ConfigError",
    "EditConflict",
    "EditRefused",
    "HistorianError",
    "HistoryMoved",
    "LeaseHeld",
    "LogCorrupt",
    "LogCutOtherwise",
    "LogPurged",
    "LogReplaced",
    "PlanOutdated",
    "PositionAhead",
    "PositionError",
    "PositionExpired",
    "PositionUnknown",
    "RowCorrupt",
    "SinkError",
    "SinkUnreachable",
    "SourceError",
    "SourceNotLetIn",
    "StoreError",
    "StoreNotLetIn",
    "StoreUnreachable",
    "TableStopped",
    "UnknownTable",
    "UnsupportedEvent",
    "ValueUnrepresentable",
    "error_in",
]

_RAISED = re.compile(r"\b((?:historian|connectors|sinks)(?:\.\w+)*)\.(\w+): ")
"""How a traceback names an error of ours, before its message."""
_BEHIND = re.compile(r"\n\s*\n|\n\s*(?:at \S|SQLSTATE|JVM stacktrace|Traceback|During handling)")
"""What ends the lines of a message."""


class HistorianError(Exception):
    """Something went wrong: what, where, expected against found, and what to do next.

    Args:
        what: one clause in plain words, without a full stop.
        where: table, position, file or setting that it is about.
        expected: what would have been right.
        found: what was there instead.
        next_step: what the reader can do about it; None: what helps with most errors of the class, "": nothing is said.
    """

    retryable: ClassVar[bool] = False
    usual_next_step: ClassVar[str] = ""

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        expected: object = None,
        found: object = None,
        next_step: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.found = found
        self.next_step = self.usual_next_step if next_step is None else next_step

    def __str__(self) -> str:
        parts = [self.what if self.where is None else f"{self.what} ({self.where})"]
        if self.expected is not None:
            parts.append(f"expected {self.expected}")
        if self.found is not None:
            parts.append(f"found {self.found}")
        text = "; ".join(parts)
        return f"{text}. Next: {self.next_step}" if self.next_step else text

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(cls: type[HistorianError], args: tuple[Any, ...], state: dict[str, Any]) -> HistorianError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class ConfigError(HistorianError):
    """A configuration cannot be used; ``problems`` lists each as ``reason @ $.path (got value)``."""

    def __init__(self, what: str, *, problems: tuple[str, ...] = (), where: str | None = None) -> None:
        super().__init__(what, where=where)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"  - {problem}" for problem in self.problems)])


class PositionError(HistorianError):
    """A position cannot be parsed, or two of different kinds were compared."""


class PositionExpired(HistorianError):
    """The position lies before the first version of the table."""


class PositionAhead(HistorianError):
    """The tracker has not resolved this position yet."""

    retryable = True


class PositionUnknown(HistorianError):
    """The position lies inside a known gap of the history."""


class UnknownTable(HistorianError):
    """The table does not exist at that position."""


class EditConflict(HistorianError):
    """An edit does not fit the schema it is applied to."""


class StoreError(HistorianError):
    """A history store cannot be used, or its content contradicts what is recorded into it."""


class HistoryMoved(StoreError):
    """Another writer recorded into the history since this one read it."""

    retryable = True


class StoreNotLetIn(StoreError):
    """The database of the history store refuses the user or its password."""


class StoreUnreachable(StoreError):
    """The store's database does not answer, or the connection to it broke."""

    retryable = True
    usual_next_step = "see that the store's database runs; `historian run` tries again by itself"


class PlanOutdated(HistorianError):
    """A reader meets rows of a schema version that its plan does not hold."""

    retryable = True


class LeaseHeld(HistorianError):
    """Another run of the same connector holds the lease."""

    retryable = True


class SourceError(HistorianError):
    """The log or the server cannot be read as asked."""


class SourceNotLetIn(SourceError):
    """A server, brokers or a registry refuse the user or its password, which can be others without a change of the configuration."""


class LogPurged(SourceError):
    """The log before the position that is needed has been purged."""


class LogReplaced(SourceError):
    """The log was reset, or its files are others than those that were read: positions of the old one mean nothing here."""


class LogCutOtherwise(SourceError):
    """A second look at a plan's log met other chunks than the first: another server's, or less of it."""

    retryable = True
    usual_next_step = "`historian run` tries again by itself"


class LogCorrupt(SourceError):
    """Bytes are no valid log: cut off, or with a wrong checksum."""

    usual_next_step = "read the log from another copy; where that says the same, report this error with the event"


class UnsupportedEvent(SourceError):
    """The log holds an event that this release does not read."""

    usual_next_step = "use a later release, or report this error with the event"


class TableStopped(HistorianError):
    """A captured table cannot go on; other tables do."""


class ValueUnrepresentable(HistorianError):
    """The target type cannot hold a value.

    Attributes:
        reason: of :data:`historian.values.policies.REASONS`; "" where there is no policy for it.
    """

    reason: str = ""

    def because(self, reason: str) -> ValueUnrepresentable:
        """This error, with its reason."""
        self.reason = reason
        return self


class RowCorrupt(HistorianError):
    """Bytes are no valid encoded row: cut off, of an unknown form, or with a wrong checksum."""


class SinkError(HistorianError):
    """A target cannot be written."""


class EditRefused(SinkError):
    """A table's evolution says that a run ends at an edit; nothing of it was written."""


class SinkUnreachable(SinkError):
    """The storage of a target does not answer, or asks to be left alone for a while."""

    retryable = True
    usual_next_step = "see that the storage answers; `historian run` tries again by itself"


class ChainBroken(SinkError):
    """A target misses a plan, or holds a commit that is not ours."""


def error_in(text: str) -> HistorianError | None:
    r"""The last error of ours that *text* tells of, as a traceback does; None: it tells of none.

    It is of the class that was raised, wherever in our packages that stands, and prints as it was told. Spark hands on the text alone of what
    another process raised. Where a later line of an error's own message begins with another one of ours, that one is told: text does not say
    whether it is quoted or followed.

    >>> found = error_in("Job aborted ... historian.errors.UnknownTable: no such table (a.b)\n\tat org.apache ...")
    >>> type(found).__name__, str(found)
    ('UnknownTable', 'no such table (a.b)')
    """
    found: tuple[type[HistorianError], int] | None = None
    for named in _RAISED.finditer(text):
        kind = _class_of_ours(*named.groups())
        # What stands further on in a line is told by the message there.
        if kind is not None and (found is None or "\n" in text[found[1] : named.start()]):
            found = kind, named.end()
    if found is None:
        return None
    kind, begin = found
    message, *_ = _BEHIND.split(text[begin:], 1)
    error = kind.__new__(kind)
    HistorianError.__init__(error, message.strip(), next_step="")
    if isinstance(error, ConfigError):
        error.problems = ()  # they stand in the message
    return error


def _class_of_ours(module: str, name: str) -> type[HistorianError] | None:
    try:
        kind = getattr(import_module(module), name, None)
    except ImportError:
        return None
    return kind if isinstance(kind, type) and issubclass(kind, HistorianError) else None
