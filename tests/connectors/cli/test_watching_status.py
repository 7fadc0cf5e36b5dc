"""``historian status --watch`` on a terminal: each look shows what was recorded since, with the store open all along."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from command_line import HISTORIAN
from historian.store import Store
from models.timelines import A, capture, create, position
from monitoring.screens import on_a_screen

BINLOG = Path(__file__).parents[3] / "examples" / "shop" / "binlog"


def test_each_look_shows_what_was_recorded_since(tmp_path: Path) -> None:
    path, store_url = tmp_path / "c.yaml", f"sqlite:///{tmp_path}/store.db"
    path.write_text(
        f"name: c\nsource: {{type: binlog-files, flavor: mysql, directory: {BINLOG}}}\nhistory: {{store: '{store_url}'}}\n"
    )
    with on_a_screen([*HISTORIAN, "status", str(path), "--watch"], columns=100) as screen:
        screen.wait(lambda text: "the connector has not run yet" in text)
        with closing(Store.open(store_url)) as store:
            store.connector("c")
            screen.wait(lambda text: "0 entries" in text)
            store.record([capture(create(1, "t", "a"))], position(f"{A}:1"))
            screen.wait(lambda text: "1 entries" in text)
        screen.type(b"\x03")
        assert 0 == screen.end(10), screen.text()
