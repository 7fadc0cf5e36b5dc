"""Our error behind a failed Spark job: Spark hands on only the text of what another process raised."""

from __future__ import annotations

import re

from historian import errors
from historian.errors import HistorianError, SinkError

__all__ = ["error_behind"]

_RAISED = re.compile(
    r"historian\.errors\.(\w+): (.*?)(?=\n\s*(?:at \S|JVM stacktrace|Traceback|During handling)|\n\n|\Z)", re.DOTALL
)


def error_behind(failure: BaseException) -> HistorianError:
    r"""The last error of ours in the failure's text, of its own class; else a :class:`SinkError` around the text.

    >>> error_behind(ValueError("x\nhistorian.errors.LogPurged: the log is gone (binlog.000001)"))
    LogPurged('the log is gone (binlog.000001)')
    """
    text = str(failure)
    found = _RAISED.findall(text)
    if found:
        name, message = found[-1]
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, HistorianError):
            return kind(message.strip())
    return SinkError("a plan could not be written", found=text.strip())
