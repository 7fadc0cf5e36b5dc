"""What is said when the log goes on elsewhere, and what is refused."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from connectors.config import load_config
from connectors.readers.base import LogMark, Reader
from connectors.tracking.continuity import Continuity
from connectors.tracking.sources import make_tracker
from historian.errors import LogReplaced
from historian.positions import LogPosition
from historian.store import Store


@dataclass
class _Log:
    """A reader of a log with these files."""

    marks: dict[str, LogMark] = field(default_factory=dict)

    def mark(self, file: str) -> LogMark | None:
        return self.marks.get(file)

    def end(self) -> LogPosition:
        return _end(list(self.marks.values())[-1])


def _mark(number: int, *, server: str = "a", version: str = "8.0.45", made_s: int = 100) -> LogMark:
    return LogMark(server=server, version=version, file=f"binlog.{number:06}", made_s=made_s + number)


def _log(*marks: LogMark) -> Reader:
    return cast("Reader", _Log({mark.file: mark for mark in marks}))


def _end(mark: LogMark) -> LogPosition:
    return LogPosition(flavor="mysql", gtids="", file=mark.file, offset=4, server=mark.server)


@pytest.fixture
def store() -> Store:
    """A store that has seen the log up to its third file."""
    store = Store.open("sqlite://")
    Continuity(store, _log(_mark(3))).note(_end(_mark(3)))
    return store


def test_a_log_that_goes_on_or_was_purged_is_the_same(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    for marks in ((_mark(2), _mark(3), _mark(4)), (_mark(7), _mark(8))):
        Continuity(store, _log(*marks)).check()
    assert caplog.text == ""


@pytest.mark.parametrize("marks", [(_mark(1), _mark(2)), (_mark(3, made_s=500),), (_mark(3, made_s=500), _mark(4))])
def test_a_log_that_was_reset_is_refused(store: Store, marks: tuple[LogMark, ...]) -> None:
    with pytest.raises(LogReplaced, match="the log was reset after it was read"):
        Continuity(store, _log(*marks)).check()


def test_another_server_and_another_version_are_named(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    upgraded, other = _mark(4, version="9.7.0"), _mark(1, server="b", version="9.7.0")
    first = Continuity(store, _log(_mark(3), upgraded))
    first.check()
    first.note(_end(upgraded))
    assert "of version 9.7.0 from binlog.000004 on, before 8.0.45" in caplog.text
    second = Continuity(store, _log(other))
    second.check()
    second.note(_end(other))
    assert "read from server b now, up to binlog.000004 from a" in caplog.text


def test_a_stored_plan_of_a_log_that_was_reset_is_not_handed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binlog, file = Path(__file__).parents[3] / "examples" / "shop" / "binlog", tmp_path / "shop.yaml"
    file.write_text(f"name: shop\nsource: {{type: binlog-files, directory: {binlog}, tables: ['shop.*']}}\n")
    with closing(make_tracker(load_config(file))) as tracker:
        plan = tracker.plan_after(0)
    with closing(make_tracker(load_config(file))) as tracker:
        assert plan == tracker.plan_after(0)
    with closing(make_tracker(load_config(file))) as tracker:
        found = tracker.reader.mark

        def begun_later(name: str) -> LogMark | None:
            mark = found(name)
            return mark and replace(mark, made_s=mark.made_s + 1)

        monkeypatch.setattr(tracker.reader, "mark", begun_later)

        with pytest.raises(LogReplaced, match="the log was reset after it was read"):
            tracker.plan_after(0)
