"""What copying rows needs of a server, where the connector does so."""

from __future__ import annotations

from collections.abc import Iterator

from connectors.check.result import CheckResult, failed
from connectors.check.server import ServerView
from connectors.config import ServerSource

__all__ = ["copy_checks"]


def copy_checks(source: ServerSource, server: ServerView) -> Iterator[CheckResult]:
    """Whether rows can be read as of a position, and brought back to it by the log."""
    mode = server.variable("gtid_mode") or "OFF"
    if source.flavor == "mysql" and mode != "ON":
        expected = "gtid_mode=ON: without GTIDs the server does not tell which transactions a SELECT sees"
        yield failed(
            "first copy",
            f"gtid_mode={mode}",
            expected,
            "switch GTIDs on, or say source.start: earliest or changes_only",
        )
    image = server.variable("binlog_row_image")
    if image is not None and image != "FULL":
        expected = "binlog_row_image=FULL: a row that changes while it is copied is brought back by its whole image before the change"
        yield failed("first copy", f"binlog_row_image={image}", expected, server.set_global("binlog_row_image", "FULL"))
