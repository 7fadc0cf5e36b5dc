"""``historian changelog merge``: a batch of a table that arrives some other way, as rows of its changelog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connectors.cli.changelogs.files import format_of, names_of, read, write
from connectors.cli.terminal.outcome import ending
from connectors.cli.terminal.sessions import session
from historian.changelog.merging.strategies import Append, ChangelogStream, Ledger, Snapshot, Strategy, UpsertStream
from historian.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["STRATEGIES", "merge"]

_CHANGELOG_COLUMNS = ("offset", "op", "event_time")

STRATEGIES: Mapping[str, tuple[Callable[..., Strategy], tuple[str, ...]]] = {
    "snapshot": (Snapshot, ("key", "compare_columns")),
    "upsert": (UpsertStream, ("key", "order")),
    "changelog": (ChangelogStream, ("key", "order")),
    "ledger": (Ledger, ("key",)),
    "append": (Append, ()),
}
"""The strategies by their names on the command line: how each is made, and which options it takes."""

_OPTIONS = {"key": "--key", "compare_columns": "--compare", "order": "--order"}
_NEEDED = ("key", "order")


@ending
def merge(
    strategy: Annotated[
        str, typer.Argument(metavar="|".join(STRATEGIES).upper(), help="How to read the batch.", show_default=False)
    ],
    *,
    new: Annotated[
        str, typer.Option("--new", metavar="BATCH", help="The batch: a Delta table, or a directory of Parquet files.")
    ],
    into: Annotated[
        str, typer.Option("--into", metavar="CHANGELOG", help="The changelog so far; by default there is none.")
    ] = "",
    key: Annotated[str, typer.Option("--key", metavar="COLUMNS", help="The key's columns, with commas between.")] = "",
    compare: Annotated[
        str,
        typer.Option(
            "--compare", metavar="COLUMNS", help="What decides whether a row differs, by default all: snapshot."
        ),
    ] = "",
    order: Annotated[
        str, typer.Option("--order", metavar="COLUMN", help="Which record comes later, no data: upsert, changelog.")
    ] = "",
    source_time: Annotated[
        datetime | None,
        typer.Option("--source-time", metavar="TIME", help="Event time, in UTC, of rows without one; by default now."),
    ] = None,
    out: Annotated[
        str, typer.Option("--out", metavar="OUT", help="Where to write, as Delta or Parquet like CHANGELOG, or BATCH.")
    ],
) -> None:
    """Write the rows by which a changelog becomes what a batch says, in strict ODF; appended to it they make the next one.

    Strategies: snapshot (the whole table), upsert, changelog, ledger (records that never change), append.
    """
    options = {"key": names_of(key), "compare_columns": names_of(compare), "order": order.strip()}
    chosen, given = _chosen(strategy.lower(), {name: value for name, value in options.items() if value})
    if source_time is not None:
        given["source_time"] = source_time.replace(tzinfo=timezone.utc)
    with session("changelog", [new, out, *([into] if into else [])], None) as spark:
        batch = read(spark, new)
        if into:
            given |= _so_far(read(spark, into, (*_CHANGELOG_COLUMNS, *options["key"])), chosen)
        from pyspark_historian.merging import merge as merged

        kind = "delta" if format_of(into or new) == "delta" else "odf"
        write(new, out, lambda: merged(chosen, batch, **given), kind=kind)


def _chosen(name: str, options: Mapping[str, Any]) -> tuple[Strategy, dict[str, Any]]:
    """The strategy of that name, and what is left of its *options*."""
    if name not in STRATEGIES:
        raise typer.BadParameter(f"{name} is not one of {', '.join(STRATEGIES)}")
    made, takes = STRATEGIES[name]
    for option in options:
        if option not in takes:
            raise typer.BadParameter(f"{name} takes no {_OPTIONS[option]}")
    for option in takes:
        if option in _NEEDED and option not in options:
            raise typer.BadParameter(f"{name} needs {_OPTIONS[option]}")
    own = {option: value for option, value in options.items() if option != "order"}
    return made(**own), {option: value for option, value in options.items() if option == "order"}


def _so_far(rows: DataFrame, strategy: Strategy) -> dict[str, Any]:
    """The state that a changelog leads to, and the offset behind its rows."""
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    from historian.changelog.state import state_columns
    from pyspark_historian.columns import at
    from pyspark_historian.state import project_changelog

    if "schema_version" in rows.columns:
        raise SourceError(
            "a changelog of a log does not say by itself what its rows read in columns that were added later",
            expected="a strict one, which merges made, or `historian changelog convert --to odf`",
            found="schema_version",
        )
    last = rows.agg(F.max("offset").alias("last")).collect()[0]["last"]
    # What is only appended needs no state, but its columns.
    appended = isinstance(strategy, Append)
    state = (
        rows.select(*map(at, state_columns(rows.columns)))
        if appended
        else project_changelog(rows, getattr(strategy, "key", ()))
    )
    return {"former": state, "first_offset": 0 if last is None else last + 1}
