"""What a run tells where nobody takes messages for people."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from connectors.config import load_config
from connectors.monitoring.picture import RunPicture, TablePicture, TableState
from connectors.notifications.notifier import _Notifier, _Written
from connectors.notifications.outbox import Outbox
from historian.history.history import History
from historian.store import Store

LINEAGE = "run: {openlineage: {url: 'http://localhost/'}}"
PICTURE = RunPicture(
    taken_us=1,
    connector="c",
    source="here",
    sinks=("delta",),
    stage="runs",
    plan=3,
    tables=(TablePicture(name="s.t", state=TableState.STOPPED, reason="its values"),),
)
TABLES: Any = SimpleNamespace(
    read=lambda: None, last_number=0, changes_behind=lambda _: [], noted_targets=list, history=History()
)


def _waiting(directory: Path, more: str) -> list[str]:
    """Events that wait for channels once a run has looked and ended with an error."""
    path = directory / "c.yaml"
    path.write_text(f"name: c\nsource: {{type: binlog-files, directory: .}}\n{LINEAGE}\n{more}")
    watch: Any = SimpleNamespace(picture=PICTURE, was_open=True)
    notifier = _Notifier(load_config(path), watch, _Written(), is_stream=True)
    notifier.reason = "no lease"
    with closing(Store.open(f"sqlite:///{directory}/store.db")) as store:
        outbox = Outbox(store, notifier._channels)
        notifier._tell(outbox, TABLES, is_last=True)
        return [message.event for name in notifier._channels if (message := outbox.first(name)) is not None]


def test_a_run_that_tells_lineage_alone_counts_nothing_else_as_told(tmp_path: Path) -> None:
    assert ["lineage"] == _waiting(tmp_path, "")
    with closing(Store.open(f"sqlite:///{tmp_path}/store.db")) as store:
        assert {} == Outbox(store, ()).told.open

    assert ["table_stopped", "lineage"] == _waiting(tmp_path, "notify: {to: [{log: true}]}\n")
