"""Replays the recorded shop into Delta tables and shows what came of it, then copies a table of a live server; `make demo` runs it.

Ends with exit code 1 where a replicated value is not the one that a server held.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE), str(HERE.parent.parent / "tests" / "support")]

import pyarrow as pa
import pyarrow.compute as pc
from comparison import FinalTable, Verdict, compare, final_tables
from first_copy import show_first_copy
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from connectors.config import load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.run import run
from connectors.readers.binlog.transport.files import list_files
from connectors.spark.jvm import delta_jars
from historian.changelog.folding import BAG_COUNT, fold_bag
from historian.changelog.operations import Op
from historian.history.history import History, Version
from historian.store import Store
from historian.values.texts import initial_value
from sinks.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.config import PipelineConfig

SHOWN_ROWS = 3
AROUND = 2
COLOURS = {Op.APPEND: "green", Op.RETRACT: "red", Op.CORRECT_FROM: "yellow", Op.CORRECT_TO: "cyan"}
SYSTEM = ("offset", "op", "system_time", "event_time", "schema_version")


class Lake:
    """The tables that the replay made."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark = spark
        self._path = path
        self._read: dict[str, pa.Table] = {}
        self.locations = sorted(self.table("historian_tables").to_pylist(), key=lambda location: location["table_id"])

    def table(self, directory: str) -> pa.Table:
        """A Delta table, whole, as Spark reads it."""
        if directory not in self._read:
            self._read[directory] = self._spark.read.format("delta").load(str(self._path / directory)).toArrow()
        return self._read[directory]

    def changelog(self, location: dict[str, Any]) -> pa.Table:
        """A table's changelog in order."""
        return self.table(location["changelog"]).sort_by("offset")

    def rows(self, location: dict[str, Any], history: History) -> pa.Table:
        """A table's final rows: its mirror, or without a key its changelog folded."""
        if location["mirror"]:
            return self.table(location["mirror"])
        changelog, names = self.changelog(location), []
        versions = [version for version in history.versions_of(location["table_id"]) if version.snapshot is not None]
        for column in versions[-1].snapshot.columns:
            # Rows from before a column was added read the default it was added with.
            added = next(v.number for v in versions if v.snapshot.column_by_id(column.id) is not None)
            values, at = changelog.column(column.name), changelog.column_names.index(column.name)
            older = pc.less(changelog.column("schema_version"), added)
            initial = pa.scalar(initial_value(column), values.type)
            changelog = changelog.set_column(at, column.name, pc.if_else(older, initial, values))
            names.append(column.name)
        bag = fold_bag(changelog, names)
        index = [row for row, count in enumerate(bag.column(BAG_COUNT).to_pylist()) for _ in range(count)]
        return bag.drop_columns([BAG_COUNT]).take(pa.array(index, pa.int64()))


def main() -> int:
    """Runs the demo; returns the exit code."""
    console = Console(highlight=False, width=max(Console().width, 110))
    begin = time.perf_counter()
    config = load_config(HERE / "demo.yaml")
    path = Path(config.sinks[0].path)
    shutil.rmtree(path, ignore_errors=True)
    console.rule("[bold]pyspark-historian: a recorded MySQL binlog, replayed into Delta")
    spark = replay(console, config)
    try:
        lake = Lake(spark, path)
        history = Store.open(config.history.store).history()
        show_tables(console, lake)
        show_versions(console, lake, history)
        show_edges(console, lake, history)
        show_rows(console, lake, history)
        equal = show_verdicts(console, lake, history)
        equal = show_first_copy(console, spark) and equal
    finally:
        spark.stop()
    console.print(f"\n{time.perf_counter() - begin:.0f} s; the tables are in {path}")
    return 0 if equal else 1


def replay(console: Console, config: PipelineConfig) -> SparkSession:
    """Runs the pipeline over the recording, with a progress bar over the bytes of its log."""
    sizes = {file.name: file.path.stat().st_size for file in list_files(config.source.paths())}  # type: ignore[union-attr]
    names = sorted(sizes)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        console=console,
    )
    with bar:
        task = bar.add_task("starting Spark", total=sum(sizes.values()))
        spark = spark_session(jars=delta_jars(), name="demo")
        bar.update(task, description=f"replaying {len(sizes)} binlog files, {sum(sizes.values()) / 1e6:.1f} MB")

        def report(plan: Any, _stopped: object) -> None:
            before = sum(sizes[name] for name in names if name < plan.end.file)
            bar.update(task, completed=before + plan.end.offset)

        run(config, once=True, observer=on_written(report), spark=spark)
        bar.update(task, completed=sum(sizes.values()))
    return spark


def show_tables(console: Console, lake: Lake) -> None:
    """The tables that the log held."""
    shown = Table("table", "changelog", "rows", "mirror", "rows", title="Tables found")
    for location in lake.locations:
        mirror = location["mirror"]
        note = " (dropped)" if location["dropped"] else ""
        shown.add_row(
            location["name"] + note,
            location["changelog"],
            f"{lake.table(location['changelog']).num_rows:,}",
            mirror or "none: no key",
            f"{lake.table(mirror).num_rows:,}" if mirror else "",
        )
    console.print(shown)


def versions_of(lake: Lake, history: History) -> Iterator[tuple[dict[str, Any], Version]]:
    """Each captured table's versions, oldest first."""
    for location in lake.locations:
        for version in history.versions_of(location["table_id"]):
            yield location, version


def show_versions(console: Console, lake: Lake, history: History) -> None:
    """Each schema version with its position and DDL."""
    shown = Table("table", "version", "position", "made by", title="Schema versions", show_lines=False)
    for _, version in versions_of(lake, history):
        shown.add_row(str(version.name), str(version.number), position(version), one_line(version.entry.statement))
    console.print(shown)


def show_edges(console: Console, lake: Lake, history: History) -> None:
    """The last changelog rows before each DDL and the first behind it."""
    console.rule("Changelog rows around each DDL")
    for location in lake.locations:
        changelog = lake.changelog(location)
        numbers = changelog.column("schema_version").to_pylist()
        for version in history.versions_of(location["table_id"])[1:]:
            console.print(
                f"[bold]{version.name}[/] [magenta]{one_line(version.entry.statement)}[/] at {position(version)}"
            )
            edge = next((at for at, number in enumerate(numbers) if number >= version.number), len(numbers))
            for at in range(max(0, edge - AROUND), min(len(numbers), edge + AROUND)):
                show_row(console, changelog.slice(at, 1).to_pylist()[0])


def show_row(console: Console, row: dict[str, Any]) -> None:
    """One changelog row on a line; columns without a value are left out."""
    op = Op(row["op"])
    data = "  ".join(
        f"{name}={short(value)}" for name, value in row.items() if name not in SYSTEM and value is not None
    )
    line = f"  {row['offset']:>6} {op.sign} v{row['schema_version']:<3} {data}"
    console.print(line, style=COLOURS[op], no_wrap=True, overflow="ellipsis", markup=False)


def show_rows(console: Console, lake: Lake, history: History) -> None:
    """The first rows of each table at the end."""
    for location in lake.locations:
        if location["dropped"]:
            continue
        rows = lake.rows(location, history)
        title = f"{location['name']}: {rows.num_rows:,} rows in the end" + (
            "" if location["mirror"] else " (changelog folded)"
        )
        shown = Table(*rows.column_names, title=title)
        for row in rows.slice(0, SHOWN_ROWS).to_pylist():
            shown.add_row(*(short(value) for value in row.values()))
        console.print(shown)


def show_verdicts(console: Console, lake: Lake, history: History) -> bool:
    """Compares each table with what the server held; whether all are equal."""
    console.rule("Compared with what the server held at the end of the recording")
    by_name = {location["name"]: location for location in lake.locations if not location["dropped"]}
    finals = final_tables(HERE)
    verdicts = [compare_table(lake, history, by_name.get(f"shop.{final.name}"), final) for final in finals]
    for verdict in verdicts:
        console.print(str(verdict), style="green" if verdict.equal else "bold red", markup=False)
    missing = sorted(set(by_name) - {f"shop.{final.name}" for final in finals})
    for name in missing:
        console.print(f"{name}: the server has no such table", style="bold red")
    equal = not missing and all(verdict.equal for verdict in verdicts)
    rows, values = sum(v.rows for v in verdicts), sum(v.values for v in verdicts)
    summary = f"{len(verdicts)} tables, {rows:,} rows, {values:,} values: "
    console.print(summary + ("all equal" if equal else "NOT EQUAL"), style="bold green" if equal else "bold red")
    return equal


def compare_table(lake: Lake, history: History, location: dict[str, Any] | None, final: FinalTable) -> Verdict:
    """One table's verdict; one that was not replicated differs in every row."""
    if location is None or location["stopped"]:
        reason = "was not replicated" if location is None else f"stopped: {location['stopped']}"
        return Verdict(
            table=final.name,
            rows=final.rows.num_rows,
            values=0,
            different_rows=final.rows.num_rows or 1,
            differences=(reason,),
        )
    return compare(lake.rows(location, history), final)


def position(version: Version) -> str:
    """A version's position, short: a GTID's number with the end of its source."""
    place = version.entry.place
    if place is None:
        return "start"
    source, _, number = place.gtid.rpartition(":")
    return f"…{source[-4:]}:{number}" if source else f"{place.file}:{place.offset}"


def one_line(statement: str) -> str:
    """A statement on one line, cut to what fits."""
    text = " ".join(statement.split())
    return text if len(text) <= 100 else text[:99] + "…"


def short(value: Any) -> str:
    """A value, cut to what fits into a cell."""
    text = "NULL" if value is None else value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= 24 else text[:23] + "…"


if __name__ == "__main__":
    sys.exit(main())
