"""Whether a log has what foreign keys changed, where the server was another one, or had other settings, when it was written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from connectors.backfill.foreign_keys import logged
from connectors.backfill.foreign_keys.logged import LoggedCascades
from connectors.config import CopyLimits
from connectors.readers.base import LogMark, Reader
from historian.names import TableName
from historian.plans.plans import LogRange, PreparedRows
from historian.positions import PreparedXa
from replicas.copying_oracle import CopyingOracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from databases.servers import Server


class _Log:
    """A reader of a log whose files are of 8.4, of 9.7, and of 9.7 behind a restart."""

    flavor = "mysql"

    def __init__(self) -> None:
        marks = [("b.1", "8.4.6", 100), ("b.2", "9.7.0", 200), ("b.3", "9.7.0", 300), ("b.4", "9.7.0", 301)]
        self.marks = {file: LogMark(server="a", version=v, file=file, made_s=made) for file, v, made in marks}
        self.asked: list[str] = []

    def mark(self, file: str) -> LogMark | None:
        self.asked.append(file)
        return self.marks.get(file)


def _range(file: str, *, server: str = "a", prepared: str = "") -> LogRange:
    xa = PreparedXa(xid="x", gtid="", file=prepared, offset=4, server=server)
    rows = (PreparedRows(xa=xa, tables=()),) if prepared else ()
    return LogRange(file=file, start=4, end=90, server=server, prepared=rows)


@pytest.mark.parametrize(
    "ranges, expected",
    [
        ([_range("b.3"), _range("b.4")], True),
        ([_range("b.3", server="")], True),
        ([_range("b.1"), _range("b.3")], False),  # upgraded meanwhile
        ([_range("b.2"), _range("b.3")], False),  # started anew meanwhile: the setting may have been another one
        ([_range("b.3", prepared="b.1")], False),
        ([_range("b.3", prepared="b.4")], True),
        ([_range("b.3", server="other")], False),
        ([_range("b.9")], False),
    ],
)
@pytest.mark.parametrize("is_native", [False, True])
def test_all_files_of_a_plan_count_as_they_were_written(
    ranges: list[LogRange], expected: bool, is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logged, "_server_run", lambda *_: logged._ServerRun("a", 300, is_native))
    found = LoggedCascades(cast("Any", None)).are_in(cast("Reader", _Log()), ranges)

    assert (expected and not is_native) == found


def test_a_file_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged, "_server_run", lambda *_: logged._ServerRun("a", 300, False))
    log, cascades = _Log(), LoggedCascades(cast("Any", None))
    for _ in range(3):
        assert cascades.are_in(cast("Reader", log), [_range("b.3")])
        assert not cascades.are_in(cast("Reader", log), [_range("b.1")])
    assert ["b.3", "b.1"] == log.asked


def test_cascades_from_before_a_restart_with_another_setting_are_not_missed(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = fresh_server("mysql9", "innodb_native_foreign_keys=ON")
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.p (id INT PRIMARY KEY)")
    server.sql(
        "CREATE TABLE c.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE CASCADE)"
    )
    server.sql("INSERT INTO c.p VALUES (1), (2), (3)")
    server.sql("INSERT INTO c.child VALUES (11, 1), (12, 1), (21, 2), (31, 3)")
    oracle = CopyingOracle(server, tmp_path, CopyLimits(), "c")
    oracle.run()

    server.sql("DELETE FROM c.p WHERE id = 1")
    server.restart("innodb_native_foreign_keys=OFF")
    server.sql("DELETE FROM c.p WHERE id = 2")
    oracle.run()

    assert {} == oracle.differences("c")
    assert [31] == [row["id"] for row in oracle.mirror.rows(TableName("c", "child")).to_pylist()]
    assert 1 == oracle.repaired
    server.sql("DELETE FROM c.p WHERE id = 3")
    oracle.run()
    assert {} == oracle.differences("c")
    assert 1 == oracle.repaired, "the log has what this server does"
