"""``historian changelog convert``: a changelog written in the form of another system, and back."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connectors.cli.changelogs.files import Key, Out, Source, names_of, read, recorded, require, write
from connectors.cli.terminal.outcome import ending
from connectors.cli.terminal.sessions import session
from historian.changelog.operations import SYSTEM_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["FORMS", "Form", "convert"]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a changelog.

    What a function takes beside the rows (key, rows before, first offset) its own parameters say.

    Attributes:
        made: name of the function in :mod:`pyspark_historian.conversions` that makes it of a changelog.
        back: of the one that makes a changelog of it; "" where there is none.
        columns: that rows in this form have, for the way back.
    """

    made: str
    back: str = ""
    columns: tuple[str, ...] = ()


CHANGELOG = "changelog"
_CHANGELOG_COLUMNS = ("offset", "op")
FORMS = {
    "retract": Form("to_retract_stream", "from_retract_stream", _CHANGELOG_COLUMNS),
    "upsert": Form("to_upsert_stream", "from_upsert_stream", _CHANGELOG_COLUMNS),
    "events": Form("to_single_events", "from_single_events", ("event", "before", "after")),
    "row-kinds": Form("to_row_kinds", "from_row_kinds", ("row_kind",)),
    "append": Form("to_append_stream", "from_append_stream", ()),
    "odf": Form("to_odf"),
}
"""The forms by their names on the command line."""

_NAMES = (CHANGELOG, *FORMS)
_METAVAR = "|".join(_NAMES)


@ending
def convert(
    path: Source,
    *,
    source: Annotated[str, typer.Option("--from", metavar=_METAVAR, help="Which form PATH has.")] = CHANGELOG,
    form: Annotated[str, typer.Option("--to", metavar=_METAVAR, help="Which form to write.")] = CHANGELOG,
    key: Key = "",
    state: Annotated[
        str, typer.Option("--state", metavar="STATE", help="The rows before, each key once: from upsert, and to odf.")
    ] = "",
    first_offset: Annotated[
        int | None,
        typer.Option("--first-offset", metavar="N", help="Of the changelog's first row, by default 0: from upsert."),
    ] = None,
    out: Out,
) -> None:
    """Write a changelog in another form, a form as a changelog, or one form as another; see docs/reference/conversions.md.

    retract, upsert and append are streams, events have before and after, row-kinds are Flink's, odf is strict, in Parquet.
    """
    steps = _steps(source, form)
    with session("changelog", [path, out, *([state] if state else [])], None) as spark:
        names = names_of(key) or recorded(spark, path).key
        given: dict[str, Any] = {"key": names, "former": state, "first_offset": first_offset}
        given = {name: value for name, value in given.items() if value not in ((), "", None)}
        _check_given(steps, given)
        if state:
            given["former"] = read(spark, state, names)
        rows = read(spark, path)
        kind = "odf" if form == "odf" else ""
        write(path, out, lambda: _converted(rows, steps, given, path), kind=kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One function on the way, and what its rows must have; *what* names it on the command line."""

    what: str
    function: str
    columns: tuple[str, ...]

    @property
    def takes(self) -> frozenset[str]:
        """What it takes beside the rows."""
        from pyspark_historian import conversions

        return frozenset(inspect.signature(getattr(conversions, self.function)).parameters)


def _steps(source: str, form: str) -> tuple[_Step, ...]:
    """The way from *source* to a changelog, and from there to *form*."""
    for option, name in (("--from", source), ("--to", form)):
        if name not in _NAMES:
            raise typer.BadParameter(f"{option} {name} is not one of {', '.join(_NAMES)}")
    if source == form:
        raise typer.BadParameter(f"PATH has the form {source} already: give --from or --to")
    steps = []
    if source != CHANGELOG:
        back = FORMS[source].back
        if not back:
            ways = ", ".join(name for name, each in FORMS.items() if each.back)
            raise typer.BadParameter(f"there is no way back from {source}; there is one from {ways}")
        steps.append(_Step(what=f"--from {source}", function=back, columns=FORMS[source].columns))
    if form != CHANGELOG:
        steps.append(_Step(what=f"--to {form}", function=FORMS[form].made, columns=_CHANGELOG_COLUMNS))
    return tuple(steps)


def _check_given(steps: tuple[_Step, ...], given: Mapping[str, Any]) -> None:
    """Refuses a key that is missing, and options that no step takes."""
    for step in steps:
        if "key" in step.takes and "key" not in given:
            raise typer.BadParameter(f"{step.what} needs --key")
    for name, option in (("former", "--state"), ("first_offset", "--first-offset")):
        if name in given and not any(name in step.takes for step in steps):
            raise typer.BadParameter(f"{' '.join(step.what for step in steps)} takes no {option}")


def _converted(rows: DataFrame, steps: tuple[_Step, ...], given: Mapping[str, Any], path: str) -> DataFrame:
    from pyspark_historian import conversions

    for step in steps:
        wanted = {name: value for name, value in given.items() if name in step.takes}
        require(rows, (*step.columns, *wanted.get("key", ())), path)
        rows = getattr(conversions, step.function)(rows, **wanted)
    return _in_order(rows) if "op" in rows.columns else rows


def _in_order(rows: DataFrame) -> DataFrame:
    """A changelog with its system columns first."""
    from pyspark_historian.columns import at

    system = [name for name in SYSTEM_COLUMNS if name in rows.columns]
    return rows.select(*map(at, (*system, *(name for name in rows.columns if name not in system))))
