"""``historian backfill``: tables are copied again; copies are paused, go on, end, or get other limits."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.heal import held_tracker
from connectors.cli.terminal.arguments import Config, configured
from connectors.cli.terminal.outcome import ending, say
from connectors.cli.terminal.recorded_history import open_recorded, table_named
from connectors.config import ServerSource, limits_in_force, limits_of_texts, limits_text
from historian.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connectors.config import PipelineConfig
    from historian.names import TableName

__all__ = ["backfill"]

_LEAVE_OUT = "leave out --where: all rows are compared then"


@ending
def backfill(
    config: Config,
    *,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", metavar="TABLE", help="A table, as database.table; may be given again."),
    ] = None,
    where: Annotated[
        str,
        typer.Option("--where", metavar="SQL", help="Of one table, only the rows for which this holds at the source."),
    ] = "",
    cancel: Annotated[
        bool, typer.Option("--cancel", help="End the tables' copies where they are; the tables stop.")
    ] = False,
    pause: Annotated[bool, typer.Option("--pause", help="Let the copies of all tables rest.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Let them go on.")] = False,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME=VALUE",
            help="Copy with another limit than source.backfill has, such as rows_per_second=5000; may be given again.",
        ),
    ] = None,
) -> None:
    """Copy tables again: the next run compares their targets with all rows that the source holds now, and writes what differs.

    The connector must not run meanwhile, as with `verify --repair`. That one prints the differences first, mends only tables that have some, and starts Spark.
    This one starts none, and lets a table go on whose copy was cancelled.

    --where takes a condition in the source's SQL, such as `region = 7 AND changed > '2026-01-01'`, with times in UTC. The rows for which it holds
    at the source now are compared. Rows that only the targets have are not found so.

    With --cancel, --pause, --resume or --limit nothing is copied again: they may be given while the connector runs, take effect with its next plan, and
    last until the next word. Changes are followed all the same.

    --limit takes connections, rows_per_second, bytes_per_second, pause_above.threads_running, pause_above.history_list_length and
    pause_above.replica_lag_seconds. NAME=off lifts a limit; NAME= leaves it to the configuration again.
    """
    if sum((cancel, pause, resume, bool(limit))) > 1 or (table is None) != (pause or resume or bool(limit)):
        raise typer.BadParameter(
            "give --table TABLE, alone or with --cancel; or --pause; or --resume; or --limit NAME=VALUE"
        )
    if where and (cancel or len(table or ()) != 1):
        raise typer.BadParameter("--where takes one --table, and copies it again")
    wanted = [table_named(name) for name in table or ()]
    if cancel:
        _cancel(config, wanted)
    elif where:
        _copy_rows(config, wanted[0], where)
    elif wanted:
        _copy(config, wanted)
    elif limit:
        _limit(config, limit)
    else:
        with closing(open_recorded(configured(config))) as store:
            store.pause_copies(paused=pause)
        say("copies rest from the next plan on" if pause else "copies go on with the next plan")


def _copy(config: Path, wanted: Sequence[TableName]) -> None:
    from connectors.recovery.copying_again import repeatable
    from connectors.recovery.repairing import repair
    from connectors.sink_kinds import repair_limits
    from connectors.tracking.sources import server_address

    with held_tracker(config) as (settings, tracker):
        source = _server(settings)
        limits = repair_limits(source, settings.sinks)
        table_ids = {repeatable(tracker.store, source.tables, name): name for name in wanted}
        for table_id, name in table_ids.items():
            reason = "copied again by historian backfill"
            plan = repair(tracker, server_address(source), table_id, reason, limits=limits)
            if plan is None:
                raise _behind(name)
            (planned,) = plan.tables
            copy = planned.copy
            rows, does = (
                (0, "gives") if copy is None else (copy.rows, "gives" if copy.is_done else "reads the rest and gives")
            )
            say(f"{name}: {rows} rows read at {plan.end}; the next run {does} its targets what differs")


def _copy_rows(config: Path, name: TableName, condition: str) -> None:
    from connectors.recovery.copying_again import repeatable
    from connectors.recovery.repairing_rows import repair_rows
    from connectors.sink_kinds import tells_rows
    from connectors.tracking.sources import server_address

    with held_tracker(config) as (settings, tracker):
        source = _server(settings)
        table_id = repeatable(tracker.store, source.tables, name)
        if table_id in tracker.store.quarantines():
            raise SourceError(
                "the table has stopped, and goes on with all of its rows alone", where=str(name), next_step=_LEAVE_OUT
            )
        if not tells_rows(settings.sinks, name):
            raise ConfigError(
                "the sinks do not tell the table's rows by the source's values",
                problems=(
                    f"expected one Delta sink without columns, where, mask, key or into for {name} @ $.sinks; {_LEAVE_OUT}",
                ),
            )
        found = repair_rows(tracker, server_address(source), table_id, f"copied again where {condition}", condition)
        if found is None:
            raise _behind(name)
        rows, plans = found
        does = f"the next run gives its targets what differs, in {plans} plans" if plans else "nothing is compared"
        say(f"{name}: the condition holds for {rows} rows; {does}")


def _limit(config: Path, texts: Sequence[str]) -> None:
    settings = configured(config)
    source, said = _server(settings), limits_of_texts(texts)
    with closing(open_recorded(settings)) as store:
        limits = {name: value for name, value in said.items() if not isinstance(value, str)}
        store.limit_copies(limits, as_configured=set(said) - set(limits))
        in_force = limits_in_force(source.backfill, store.copy_orders().limits)
    say(f"copies go on with these limits: {limits_text(in_force)}")


def _server(settings: PipelineConfig) -> ServerSource:
    if not isinstance(settings.source, ServerSource):
        raise ConfigError("binlog files and topics hold no tables to copy", problems=("expected a server @ $.source",))
    return settings.source


def _behind(name: TableName) -> SourceError:
    return SourceError(
        "a statement is on the table behind what the connector has read",
        where=str(name),
        next_step="`historian run --once`, then this again",
    )


def _cancel(config: Path, wanted: Sequence[TableName]) -> None:
    from connectors.recovery.copying_again import table_id_of

    settings = configured(config)
    with closing(open_recorded(settings)) as store:
        for table_id, name in {table_id_of(store, settings.source.tables, name): name for name in wanted}.items():
            if table_id in store.quarantines() or not store.cancel_copy(table_id):
                raise SourceError(
                    "no copy of the table is under way",
                    where=str(name),
                    next_step="`historian status` lists those that are",
                )
            say(f"{name}: its copy ends with the next plan, and the table stops")
