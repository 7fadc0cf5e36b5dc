"""``historian status``: where a connector stands."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connectors.cli.terminal.arguments import Config, Json, configured
from connectors.cli.terminal.outcome import ExitCode, ending
from connectors.cli.terminal.sizes import bytes_text, copied_text, counted, span_text
from connectors.cli.terminal.tables import table, terminal
from connectors.monitoring.looking import HeldStore, Looks
from connectors.monitoring.retention import KeptLog
from connectors.monitoring.state import connector_state, or_reason, told_targets
from connectors.monitoring.targets import MOST_LISTED, ListedTargets
from connectors.page.phrases import lag_text, place_form
from historian.errors import HistorianError, StoreError
from historian.names import TableName

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from connectors.config import PipelineConfig
    from sinks.contract.base import TargetStatus

__all__ = ["status"]

_COLUMNS = ("table", "target", "kind", "plan", "made", "behind", "writer", "stopped")
_LAG_COLUMNS = ("partition", "messages", "seconds")
_FEW_COLUMNS = ("table", "kind", "plan", "behind", "stopped")
_COPY_COLUMNS = ("table", "copied", "rows", "of about", "rows/s", "size", "size/s", "seconds left", "begun")
_FEW_COPY_COLUMNS = ("table", "copied", "rows", "of about", "rows/s", "size", "seconds left")
_WIDE = 140
_WATCH_S = 2.0


@ending
def status(
    config: Config,
    *,
    as_json: Json = False,
    targets: Annotated[
        bool | None,
        typer.Option(
            help="Ask the sinks where each target stands; this starts Spark. By default what the run noted is told."
        ),
    ] = None,
    lists_all: Annotated[
        bool,
        typer.Option(
            "--all",
            help=f"List targets that are up to date and copies that are done too where there are more than {MOST_LISTED}.",
        ),
    ] = False,
    lists_chunks: Annotated[
        bool,
        typer.Option(
            "--chunks", help="List the chunks of copies too: those that are read now, and the last ones that were."
        ),
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every two seconds, until ended.")] = False,
) -> None:
    """Show where a connector stands: its position and lag, its targets, and tables that stopped.

    Targets are told as the run noted them in the store, at most some seconds ago. --targets asks the sinks, and so finds what others did to them.
    Where the store is lost, the lake says what it holds. Ends with 1 where a table is stopped that the configuration takes in.
    """
    settings = configured(config)
    if watch and as_json:
        raise typer.BadParameter("--watch shows a table, and no JSON")
    if watch:
        _watch(settings, targets=targets, lists_all=lists_all, lists_chunks=lists_chunks)
        return
    found = _state(settings, targets=targets, lists_all=lists_all)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        terminal().print(_shown(found, terminal(), lists_all=lists_all, lists_chunks=lists_chunks))
    rows = [*found["stopped"], *(found["targets"] if isinstance(found["targets"], list) else ())]
    if any(row.get("stopped", row.get("reason")) and _is_captured(settings, row["table"]) for row in rows):
        raise typer.Exit(ExitCode.FAILED)


def _watch(settings: PipelineConfig, *, targets: bool | None, lists_all: bool, lists_chunks: bool) -> None:
    from rich.live import Live

    console = terminal()
    held, kept_s = HeldStore(settings), KeptLog.of(settings)
    looks = Looks(settings, held, kept_s)
    with (
        closing(held),
        closing(looks),
        suppress(KeyboardInterrupt),
        Live(console=console, auto_refresh=False, screen=console.is_terminal) as live,
    ):
        while True:
            look = _look(settings, looks, console, targets=targets, lists_all=lists_all, lists_chunks=lists_chunks)
            live.update(look, refresh=True)
            time.sleep(_WATCH_S)


def _look(
    settings: PipelineConfig,
    looks: Looks,
    console: Console,
    *,
    targets: bool | None,
    lists_all: bool,
    lists_chunks: bool,
) -> RenderableType:
    """One of many looks, which starts no Spark that nobody asked for; a store that does not answer may answer the next one."""
    try:
        seen = looks.state(lists_all=lists_all)
        found = _with_targets(settings, seen, targets=targets, lists_all=lists_all, watches=True)
        return _shown(found, console, lists_all=lists_all, lists_chunks=lists_chunks)
    except HistorianError as error:
        return str(error)


def _state(settings: PipelineConfig, *, targets: bool | None, lists_all: bool) -> dict[str, Any]:
    """All that is shown once."""
    from connectors.tracking.recorded import recorded_store

    store = recorded_store(settings)
    with nullcontext() if store is None else closing(store):
        found = connector_state(settings, store, lists_all=lists_all)
    return _with_targets(settings, found, targets=targets, lists_all=lists_all, watches=False)


def _with_targets(
    settings: PipelineConfig, found: dict[str, Any], *, targets: bool | None, lists_all: bool, watches: bool
) -> dict[str, Any]:
    """*found* with its targets; *targets*: whether sinks are asked, None: only where nothing is noted and nobody *watches*."""
    noted = found["targets"]
    found["targets_noted"] = noted is not None and targets is None
    if targets is False:
        found["targets"] = found["target_counts"] = None
    elif settings.sinks and (targets or (noted is None and not watches)):
        asked = or_reason(lambda: ListedTargets.of(_targets(settings), lists_all=lists_all))
        found |= (
            {"targets": asked, "target_counts": None}
            if isinstance(asked, dict)
            else told_targets(settings, asked, found["lag"])
        )
    if found["connector"] is None and not found["target_counts"]:
        raise StoreError("the connector has not run yet", where=settings.name, next_step="`historian run` starts it")
    return found


def _is_captured(config: PipelineConfig, table: str) -> bool:
    database, _, name = table.partition(".")
    return config.source.tables(TableName(database, name))


def _targets(config: PipelineConfig) -> list[TargetStatus]:
    from connectors.pipeline.opening import idle_sinks

    with idle_sinks(config, "status") as sinks:
        return [target for sink in sinks for target in sink.status()]


def _shown(found: dict[str, Any], console: Console, *, lists_all: bool, lists_chunks: bool) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    facts = Table(show_header=False, show_edge=False, pad_edge=False, box=None)
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    for name, text in _facts(found):
        facts.add_row(name, Text(text))
    parts: list[RenderableType] = [facts]
    behind = [row for row in found["lag"].get("partitions", ()) if row["messages"]]
    if behind:
        behind.sort(key=lambda row: (-(row["seconds"] or 0), row["partition"]))
        shown = behind if lists_all else behind[:MOST_LISTED]
        parts += ["", table(_LAG_COLUMNS, ([row[name] for name in _LAG_COLUMNS] for row in shown))]
    listed = found["targets"] if isinstance(found["targets"], list) else []
    if listed:
        headings = _COLUMNS if console.width >= _WIDE else _FEW_COLUMNS
        rows = ({**row, "stopped": row["stopped"] or row["ended"]} for row in listed)
        parts += ["", table(headings, ([row[heading] for heading in headings] for row in rows))]
    open_copies = [row for row in found["copies"] if row["state"] != "done"]
    if open_copies:
        names = _COPY_COLUMNS if console.width >= _WIDE else _FEW_COPY_COLUMNS
        parts += ["", table(names, ([cells[name] for name in names] for cells in map(_copy_cells, open_copies)))]
    if lists_chunks and (chunks := list(_chunks(found, open_copies))):
        parts += ["", table(("plan", "table", "keys up to", "state", "rows", "size"), chunks)]
    for row in found["stopped"]:
        parts.append(Text(f"\nstopped: {row['table']} at {row['position']}\n  {row['reason']}", style="red"))
    for warning in found["warnings"]:
        parts.append(Text(f"\nwarning: {warning}", style="yellow"))
    for row in found["nulled"]:
        parts.append(Text(f"\n{row['table']}.{row['column']}: {row['values']} values stand as NULL", style="yellow"))
    parts += (Text(f"\n{line}", style="yellow") for line in _met_in_topics(found))
    for row in found["nulled_defaults"]:
        what = f"default {row['default']} stands as NULL in all rows from before {row['statement']}"
        parts.append(Text(f"\n{row['table']}.{row['column']}: {what}", style="yellow"))
    if found["target_counts"]:
        parts += ["", Text(_summary(found))]
    return Group(*parts)


def _met_in_topics(found: dict[str, Any]) -> Iterator[str]:
    """What came again or out of order, in words."""
    for row in found["normalized"]:
        met = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in row.items() if what != "table")
        yield f"{row['table']}: normalisation met {met}"
    if found["messages"]:
        met = ", ".join(f"{count} {what}" for what, count in found["messages"].items())
        yield f"messages of the topics: {met}"


def _copy_cells(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "table": row["table"],
        "copied": row["state"],
        "rows": row["rows"],
        "of about": row["estimate"],
        "rows/s": row["rows_per_s"],
        "size": copied_text(row["bytes"], row["estimated_bytes"]),
        "size/s": bytes_text(row["bytes_per_s"]) if row["bytes_per_s"] else None,
        "seconds left": row["left_s"],
        "begun": row["begun"],
    }


def _chunks(found: dict[str, Any], copies: list[dict[str, Any]]) -> Iterator[list[Any]]:
    """The chunks that are read now, and those that the last plan gave that read some of each table."""
    reading = found["copies_reading"]
    for each in () if reading is None else reading["chunks"]:
        yield [
            reading["plan"],
            each["table"],
            _key(each["upto"]),
            each["state"],
            each["rows"],
            bytes_text(each["bytes"]),
        ]
    for row in copies:
        for each in row["chunks"]:
            yield [row["read"], row["table"], _key(each["upto"]), "copied", each["rows"], bytes_text(each["bytes"])]


def _key(values: Sequence[int | str] | None) -> str:
    return "the last" if values is None else ", ".join(map(str, values))


def _summary(found: dict[str, Any]) -> str:
    """How many targets stand where."""
    counts = ", ".join(f"{count} {name}" for name, count in found["target_counts"].items())
    how = "as the run noted; --targets asks the lake" if found["targets_noted"] else "as the lake says"
    copied = sum(row["state"] != "done" for row in found["copies"])
    being = f"; {counted(copied, 'table')} being copied" if copied else ""
    return f"{counted(sum(found['target_counts'].values()), 'target')}: {counts}{being} ({how})"


def _facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    plan, lag = found["last_plan"], found["lag"]
    facts = [
        ("connector", f"{found['name']} ({found['connector'] or 'its store is not there'})"),
        ("tracked to", "nothing yet" if found["tracked"] is None else place_form(found["tracked"])),
        (
            "last plan",
            "none yet" if plan is None else f"{plan['number']}, made {plan['made']}, to {place_form(plan['end'])}",
        ),
        ("behind", lag_text(lag) or "unknown: the log has moved on to another file"),
        ("timeline", f"{found['schema_versions']} entries"),
    ]
    if isinstance(found["log_kept_s"], int):
        kept, left = (span_text(found[name]) for name in ("log_kept_s", "log_left_s"))
        facts.append(("log", f"kept by the source for {kept}; what is behind the last plan for {left} more"))
    facts += [("notify", f"{each['channel']}: {_undelivered(each)}") for each in found["notifications"]]
    if found["retry"]:
        facts.append(("run", found["retry"]))
    if found["copies_paused"]:
        facts.append(("copies", "paused; `historian backfill CONFIG --resume` lets them go on"))
    if found["copies_wait"]:
        facts.append(("copies", f"wait: {found['copies_wait']}"))
    if found["copies_reading"]:
        facts.append(("copies", _reading(found["copies_reading"])))
    limits = found["copy_limits"] or {}
    if any(row["state"] != "done" for row in found["copies"]) or not all(
        each["is_configured"] for each in limits.values()
    ):
        facts.append(
            (
                "limits",
                ", ".join(
                    _limit(name, **each) for name, each in limits.items() if each["value"] or not each["is_configured"]
                ),
            )
        )
    if isinstance(found["targets"], dict):
        facts.append(("targets", found["targets"]["unknown"]))
    return facts


def _reading(reading: dict[str, Any]) -> str:
    chunks = reading["chunks"]
    rows, size = (sum(each[what] for each in chunks) for what in ("rows", "bytes"))
    read = sum(each["state"] == "read" for each in chunks)
    return (
        f"{rows} rows ({bytes_text(size)}) read for plan {reading['plan']} so far, {read} of {len(chunks)} chunks whole"
    )


def _limit(name: str, value: int | None, *, is_configured: bool) -> str:
    said = "" if is_configured else " (by `historian backfill --limit`)"
    return f"{name} {'off' if value is None else value}{said}"


def _undelivered(channel: dict[str, Any]) -> str:
    said = []
    if channel["waiting"]:
        since = f" since {channel['since']}: {channel['error']}" if channel["error"] else ""
        said.append(f"{channel['waiting']} messages wait{since}")
    if channel["given_up"]:
        said.append(f"{channel['given_up']} messages were given up")
    return "; ".join(said)
