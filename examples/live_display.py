"""The picture of `historian run` in the documents: ``make pictures`` writes docs/images/live-display.svg."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group

from connectors.cli.live.rendering import rendered
from connectors.monitoring.picture import CopyPicture, RunPicture, SchemaChange, TablePicture, TableState
from historian.schema.diff import Difference

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["PICTURE", "lines", "svg"]

FILE = Path(__file__).parents[1] / "docs" / "images" / "live-display.svg"
WIDTH, HEIGHT = 110, 26
NOW_US = 1_796_000_000_000_000
PICTURE = RunPicture(
    taken_us=NOW_US,
    connector="shop",
    source="mysql db.internal:3306",
    sinks=("delta",),
    stage="runs",
    plan=1873,
    position="binlog.000142:73114208, 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5714203",
    lag_s=2.1,
    lag_bytes=1_310_000,
    log_bytes_per_s=2_450_000,
    copied_rows_per_s=41_800,
    copied_bytes_per_s=7_980_000,
    rows_per_s=53_400,
    rows=48_211_507,
    tables=(
        TablePicture(
            name="shop.coupons",
            state=TableState.STOPPED,
            rows=1_204,
            reason="rows changed without row events by UPDATE coupons SET used = 1 in a session with binlog_format=STATEMENT",
        ),
        TablePicture(
            name="shop.events",
            state=TableState.COPYING,
            rows=31_402_118,
            copy=CopyPicture(
                rows=31_400_000,
                estimate=140_000_000,
                rows_per_s=33_500,
                left_s=3242,
                size_bytes=6_380_000_000,
                estimated_bytes=28_450_000_000,
                bytes_per_s=6_800_000,
            ),
        ),
        TablePicture(
            name="shop.payments",
            state=TableState.REPAIRING,
            copy=CopyPicture(
                rows=2_200_000,
                estimate=2_600_000,
                rows_per_s=8_300,
                left_s=48,
                size_bytes=312_000_000,
                estimated_bytes=369_000_000,
                bytes_per_s=1_180_000,
            ),
        ),
        TablePicture(name="shop.baskets", state=TableState.WAITING, copy=CopyPicture(rows=0, estimate=880_000)),
        TablePicture(
            name="shop.clicks", state=TableState.DEFERRED, rows=9_310_660, rows_per_s=7_420, due_us=NOW_US + 192_000_000
        ),
        TablePicture(name="shop.orders", rows=4_118_023, rows_per_s=2_210),
        TablePicture(name="shop.order_lines", rows=3_379_502, rows_per_s=1_960),
        *(TablePicture(name=f"shop.table_{number:02}", rows=number) for number in range(14)),
    ),
    changes=(
        SchemaChange(
            number=1,
            time_us=NOW_US - 61_000_000,
            tables=("shop.orders",),
            statement="ALTER TABLE orders ADD COLUMN channel VARCHAR(16), RENAME COLUMN sum TO total",
            changes=(
                Difference(change="renamed", column="total", before="sum", after="total"),
                Difference(change="added", column="channel", after="varchar(16)"),
            ),
        ),
        SchemaChange(
            number=1,
            time_us=NOW_US - 3_600_000_000,
            tables=("shop.clicks",),
            statement="CREATE TABLE clicks (id BIGINT PRIMARY KEY, at DATETIME(3), url TEXT)",
            changes=(Difference(change="created", after="shop.clicks"),),
        ),
    ),
    warnings=("shop.events needs about 0:54:02 more to be copied; the log from here on is kept for 1:00:00",),
)


def lines() -> list[Text]:
    """What a terminal of the documents' size shows."""
    return rendered(PICTURE, WIDTH, HEIGHT)


def svg() -> str:
    """The same as a drawing, in the fonts of whoever looks at it."""
    console = Console(file=io.StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="truecolor")
    console.print(Group(*lines()))
    drawn = console.export_svg(title="historian run shop.yaml", unique_id="live-display")
    # By default fonts are fetched from a server.
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


if __name__ == "__main__":
    FILE.write_text(svg(), encoding="utf-8")
