"""What a look tells where the source's log is not what it was."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connectors.config import load_config
from connectors.monitoring.state import connector_state
from databases.stores import a_plan
from historian.positions import LogPosition
from historian.store import Store
from models.timelines import A, position


class _Log:
    """The little of a reader that a look needs: a log that ends at *end*."""

    def __init__(self, end: LogPosition) -> None:
        self._end = end

    def near_end(self) -> LogPosition:
        return self._end

    def partition_lags(self, _start: LogPosition) -> tuple[()]:
        return ()


@pytest.mark.parametrize(
    "end, is_told",
    [
        # What is being committed is not executed yet.
        (position(f"{A}:1-8", 9000), False),
        (position(f"{A}:1-9", 20_000), False),
        (position(f"{A}:1-2", 400), True),
        (position(f"{A}:1-2", 400, server="another"), False),
        (position(f"{A}:1-2", 400, file="binlog.000002"), False),
        (position(f"{A}:1-2", 400, file="mysql-bin.000001"), False),
    ],
)
def test_a_log_that_ends_before_what_was_read_of_it_is_a_warning(
    tmp_path: Path, end: LogPosition, *, is_told: bool
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        f"name: c\nsource: {{type: binlog-files, directory: .}}\nhistory: {{store: 'sqlite:///{tmp_path}/s.db'}}\n"
    )
    config = load_config(path)
    with closing(Store.open(config.history.store)) as store:
        store.append_plan(a_plan())
        log: Any = _Log(end)
        found = connector_state(config, store, reader=log)

    assert is_told == any(text.startswith("the log ends before what was read") for text in found["warnings"])
    assert {"log_end", "transactions"} == found["lag"].keys()


def test_a_plan_that_was_made_and_not_written_is_not_reached(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        f"name: c\nsource: {{type: binlog-files, directory: .}}\nhistory: {{store: 'sqlite:///{tmp_path}/s.db'}}\n"
    )
    config = load_config(path)
    with closing(Store.open(config.history.store)) as store:
        for number, end in ((1, 3), (2, 6), (3, 9)):
            store.append_plan(a_plan(number, end=end))
        store.note_progress("", 1)
        log: Any = _Log(position(f"{A}:1-9", 9000))
        found = connector_state(config, store, reader=log)

    assert (found["last_plan"]["number"], found["last_plan"]["end"]["gtids"]) == (1, f"{A}:1-3")
    assert found["lag"]["transactions"] == 6
