"""What the command line writes to standard error: lines for people, or a JSON object a record for machines.

A record has ``time`` (ISO 8601, UTC), ``level``, ``logger`` and ``event``; ``connector``, ``plan`` and ``table`` where there is one.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, TextIO

from connectors.cli.terminal.aside import aside
from connectors.cli.terminal.plain_text import as_lines

__all__ = ["LogFormat", "LogLevel", "bind", "configure_logs", "log", "writes_lines"]

_PACKAGES = ("connectors", "historian", "sinks", "pyspark_historian")
_COMMANDS = logging.getLogger("historian.cli")
_COMMANDS.setLevel(logging.CRITICAL)
_bound: dict[str, object] = {}


class LogFormat(str, Enum):
    """The forms that records have."""

    TEXT = "text"
    JSON = "json"


class LogLevel(str, Enum):
    """How grave a record is at least that is shown."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def configure_logs(form: LogFormat, level: LogLevel) -> Callable[[], None]:
    """Sends the records of our packages from *level* on, and warnings of others, to standard error in *form*.

    What commands tell is shown as text at any level.

    Returns:
        What takes that back, where the process goes on behind its command.
    """
    _bound.clear()
    handler = _StandardError()
    handler.setFormatter(_json_formatter() if form is LogFormat.JSON else _Lines("%(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    for package in _PACKAGES:
        logging.getLogger(package).setLevel(level.value.upper())
    _COMMANDS.setLevel(logging.INFO if form is LogFormat.JSON else logging.CRITICAL)

    def undo() -> None:
        root.removeHandler(handler)
        for package in _PACKAGES:
            logging.getLogger(package).setLevel(logging.NOTSET)
        _COMMANDS.setLevel(logging.CRITICAL)
        _bound.clear()

    return undo


class _Lines(logging.Formatter):
    """Records as lines that no text of a source can forge."""

    def format(self, record: logging.LogRecord) -> str:
        return as_lines(super().format(record))


if TYPE_CHECKING:
    _Handler = logging.StreamHandler[TextIO]
else:
    _Handler = logging.StreamHandler


class _StandardError(_Handler):
    """Writes to what standard error is by then."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        with aside():
            super().emit(record)


def bind(**fields: object) -> None:
    """Gives records from now on these fields; None takes one away."""
    _bound.update(fields)


def log(level: int, text: str, **fields: object) -> bool:
    """Writes what a command tells as a record; false where records are lines for people, which the command prints itself."""
    if not _COMMANDS.isEnabledFor(level):
        return False
    _COMMANDS.log(level, text, extra=fields)
    return True


def writes_lines() -> bool:
    """Whether standard error has lines for people, not JSON objects."""
    return not _COMMANDS.isEnabledFor(logging.INFO)


def _json_formatter() -> logging.Formatter:
    import structlog

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
            _with_bound,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.format_exc_info,
        ],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()],
    )


def _with_bound(_logger: object, _name: str, record: Any) -> Any:
    # Other handlers' formatters leave their own texts on a record.
    own = {name: value for name, value in record.items() if name not in ("message", "asctime")}
    return {**{name: value for name, value in _bound.items() if value is not None}, **own}
