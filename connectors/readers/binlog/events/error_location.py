"""Errors that come of an event name it, and say where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from historian.errors import HistorianError, LogCorrupt, PositionError

__all__ = ["error_location"]


@contextmanager
def error_location(event: Callable[[], tuple[str, str]]) -> Iterator[None]:
    """Has errors raised inside say which event they come of.

    Args:
        event: gives its name and where it stands; asked when there is an error.

    Raises:
        LogCorrupt: in the place of a PositionError, since the position is the log's own.
    """
    try:
        yield
    except PositionError as error:
        name, where = event()
        raise LogCorrupt(f"a {name} event cannot be read", where=where, found=str(error)) from error
    except HistorianError as error:
        if error.where is None:
            name, where = event()
            error.where = where if name in error.what else f"{name} at {where}"
        raise
