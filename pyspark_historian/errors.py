"""Errors of the ``historian`` format as one error of ours, instead of Spark's with Java around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from historian.errors import HistorianError, error_in

__all__ = ["readable_errors", "reason_of"]


def reason_of(error: BaseException | None) -> HistorianError | None:
    r"""The error of ours in what Spark raised, or in ``query.exception()``; None where there is none in it.

    It is of the class that was raised, and prints as that one did.

    >>> found = reason_of(Exception("Job aborted ... historian.errors.UnknownTable: no such table (a.b)\n\tat org.apache ..."))
    >>> type(found).__name__, str(found)
    ('UnknownTable', 'no such table (a.b)')
    """
    if error is None or isinstance(error, HistorianError):
        return error
    return error_in(str(error))


@contextmanager
def readable_errors() -> Iterator[None]:
    """What Spark raises inside because of an error of the source is raised as that error; anything else stays as it is.

    ``with readable_errors(): rows.show()``. Spark's own error is the ``__context__`` of what is raised.
    """
    try:
        yield
    except HistorianError:
        raise
    except Exception as error:
        reason = reason_of(error)
        if reason is None:
            raise
        raise reason from None
