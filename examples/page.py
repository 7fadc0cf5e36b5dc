"""The picture of the page in the documents: ``make pictures`` writes docs/images/page.png with a headless Chromium."""

from __future__ import annotations

import re
import sys
import tempfile
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from browser.chromium import browsed
from connectors.config import load_config
from connectors.monitoring.copies import time_text
from connectors.monitoring.state import connector_state, told_targets
from connectors.monitoring.targets import ListedTargets
from connectors.page.page import Page
from connectors.tracking.schema_file import applied, fresh_server
from historian.history.timeline import TimelineEntry
from historian.plans.plans import Plan
from historian.positions import LogPosition
from historian.positions.places import Place
from historian.schema.edits import Edit
from historian.store import Store
from sinks.contract.base import TargetStatus

__all__ = ["draw", "shop_page"]

FILE = ROOT / "docs" / "images" / "page.png"
WIDTH, HEIGHT = 1280, 1000
SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
FIRST_US = 1_790_000_000_000_000
HOUR_US = 3_600_000_000
CONFIG = """
name: shop
source: {{type: mysql, host: 127.0.0.1, port: 1, user: cdc, tables: ["shop.*"]}}
history: {{store: "sqlite:///{directory}/store.db"}}
sinks: [{{type: delta, path: /data/lake}}]
"""
STATEMENTS = """
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT NOT NULL, sum INT, note VARCHAR(80));
CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(80), mail VARCHAR(120));
CREATE TABLE order_lines (id BIGINT PRIMARY KEY, order_id BIGINT, article INT, pieces INT);
ALTER TABLE orders ADD COLUMN created DATETIME(3) AFTER customer;
ALTER TABLE orders RENAME COLUMN sum TO total;
ALTER TABLE customers ADD COLUMN phone VARCHAR(20);
ALTER TABLE orders MODIFY COLUMN total DECIMAL(12,2), ADD COLUMN currency CHAR(3) NOT NULL DEFAULT 'EUR';
ALTER TABLE orders DROP COLUMN note;
CREATE TABLE coupons (id INT PRIMARY KEY, code VARCHAR(20), used TINYINT);
ALTER TABLE order_lines MODIFY COLUMN pieces BIGINT;
ALTER TABLE orders ADD COLUMN note TEXT, ADD COLUMN channel VARCHAR(16);
ALTER TABLE orders RENAME COLUMN channel TO came_by, ADD COLUMN shipped DATETIME(3);
ALTER TABLE customers DROP COLUMN phone;
DROP TABLE coupons;
ALTER TABLE orders /* release 41 */ MODIFY COLUMN customer BIGINT NOT NULL, RENAME COLUMN shipped TO shipped_at;
"""


def shop_page(directory: Path) -> str:
    """The page of a shop, whose history is made up of statements."""
    path = directory / "shop.yaml"
    path.write_text(CONFIG.format(directory=directory), encoding="utf-8")
    config = load_config(path)
    catalog, context = fresh_server("mysql", database="shop")
    with closing(Store.open(config.history.store)) as store:
        number = 0
        for step in applied(STATEMENTS, catalog=catalog, context=context, where="shop"):
            number += 1
            store.record([_entry(number, step.statement.sql, step.resolution.edits)], _at(number))
        plans = [_plan(1, 13), _plan(2, number)]
        for plan in plans:
            store.append_plan(plan)
        targets = [
            TargetStatus(
                table=f"shop.{table}",
                target=f"shop_{table}{'_changes' if kind == 'changelog' else ''}",
                kind=kind,
                plan=plan.number,
                position=str(plan.end),
                made_us=plan.system_time_us,
                writer="native",
                stopped="its rows changed without row events" if table == "customers" else None,
                ended="its table was dropped" if table == "coupons" else None,
            )
            for table in ("orders", "customers", "order_lines", "coupons")
            for kind, plan in (("changelog", plans[1]), ("mirror", plans[table != "orders"]))
        ]
        end = {"gtids": plans[1].end.gtids, "at": str(plans[1].end.at)}
        lag = {"log_end": end, "transactions": 0}
        # Nobody asks a server where the log ends.
        state = connector_state(config, None) | {
            "lag": lag,
            "tracked": end,
            "last_plan": {"number": 2, "made": time_text(plans[1].system_time_us), "end": end},
            **told_targets(config, ListedTargets.of(targets, lists_all=True), lag),
            "log_kept_s": None,
            "log_left_s": None,
            "warnings": [],
        }
        made = Page(config).html(store, state)
    # The same picture whenever it is drawn.
    return re.sub(r'"made":"[^"]*","tracked"', f'"made":"{time_text(FIRST_US + 480 * HOUR_US)}","tracked"', made)


def _plan(number: int, version: int) -> Plan:
    return Plan(
        number=number,
        previous=number - 1,
        connector="shop",
        start=_at(1 if number == 1 else 13),
        end=_at(version),
        ranges=(),
        tables=(),
        version=version,
        system_time_us=FIRST_US + version * 31 * HOUR_US + 2_000_000,
        revision="",
    )


def _entry(number: int, sql: str, edits: tuple[Edit, ...]) -> TimelineEntry:
    return TimelineEntry(
        number=number,
        place=Place(gtid=f"{SERVER}:{number}", file="binlog.000142", offset=4711 * number, ordinal=1),
        position=_at(number - 1),
        edits=edits,
        statement=sql,
        database="shop",
        event_time_us=FIRST_US + number * 31 * HOUR_US,
        server=SERVER,
    )


def _at(number: int) -> LogPosition:
    gtids = f"{SERVER}:1-{number}" if number else ""
    return LogPosition(flavor="mysql", gtids=gtids, file="binlog.000142", offset=4711 * number + 4, server=SERVER)


def draw(file: Path) -> None:
    """Writes the picture."""
    with tempfile.TemporaryDirectory() as directory, browsed() as tab:
        page = Path(directory, "index.html")
        page.write_text(shop_page(Path(directory)), encoding="utf-8")
        tab.show(WIDTH, HEIGHT)
        tab.open(f"{page.as_uri()}#table=shop.orders&version=11")
        tab.until("document.querySelector('#detail pre')")
        tab.screenshot(file)


if __name__ == "__main__":
    draw(FILE)
