"""What tells rows apart is said before the start, table by table."""

from __future__ import annotations

from connectors.check.keys import key_checks
from connectors.config import SinkConfig
from lakes.sink_lab import INT, Lab

TABLES = (("shop.log", (("keyless", "rows"),)), ("shop.k*", (("key", ("a", "b")),)))
LAKE = SinkConfig(type="delta", settings={"path": "lake", "tables": TABLES})


def test_tables_are_checked_against_the_keys_that_sinks_give_them() -> None:
    lab = Lab()
    for name in ("shop.bag", "shop.log", "shop.keyed", "shop.kwrong"):
        lab.create(name, {"a": INT, **({"b": INT} if name != "shop.kwrong" else {})}, key=())
    lab.create("shop.plain", {"id": INT})
    tables = list(lab.catalog.tables.values())

    wrong, without = key_checks(tables, (LAKE, SinkConfig(type="console")))
    assert ("failed", "key of shop.kwrong", "no column b") == (wrong.status, wrong.name, wrong.found)
    assert ("warning", "none on shop.bag") == (without.status, without.found)
    (every,) = key_checks(tables, (SinkConfig(type="console"),))
    assert "none on shop.bag, shop.log, shop.keyed, shop.kwrong" == every.found
