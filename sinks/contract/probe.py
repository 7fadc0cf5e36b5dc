"""Whether a lake in S3 can be worked with, asked without Spark: an object is put there, listed, read and removed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

import pyarrow.fs as pafs

from historian.errors import SinkError
from sinks.contract.storage import hurried

__all__ = ["probe"]

_TEXT = b"historian check"


def probe(path: str) -> None:
    """Does with an object of its own below *path*, which is in S3, what a run does with its files.

    The object has a name that Spark takes for no data and that nobody else has. It is gone behind a failure too, where it can be removed.

    Raises:
        SinkError: a step failed; it is named. Not retried here beyond a second try of each request.
    """
    with _step("reaching it", path):
        system, place = hurried(path)
    name = f"{place}/.historian-check-{uuid4().hex}"
    with _step("writing an object", path), system.open_output_stream(name) as stream:
        stream.write(_TEXT)
    try:
        with _step("listing", path):
            listed = [found.path for found in system.get_file_info(pafs.FileSelector(place))]
        if name not in listed:
            raise _failure("listing", path, "an object that was just written is not listed")
        with _step("reading an object", path), system.open_input_stream(name) as stream:
            held = stream.read()
        if held != _TEXT:
            raise _failure(
                "reading an object", path, f"{len(held)} other bytes than the {len(_TEXT)} that were written"
            )
    except SinkError:
        with suppress(OSError, ValueError):
            system.delete_file(name)
        raise
    with _step("removing an object", path):
        system.delete_file(name)


@contextmanager
def _step(what: str, path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise _failure(what, path, str(error)) from error


def _failure(what: str, path: str, found: str) -> SinkError:
    return SinkError(f"{what} failed", where=path, found=" ".join(found.split()))
