"""``historian changelog``: a changelog in a lake or in files, checked, or projected to a state."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.changelogs.convert import convert
from connectors.cli.changelogs.files import Key, Out, Source, names_of, read, recorded, write
from connectors.cli.changelogs.merge import merge
from connectors.cli.terminal.arguments import Json
from connectors.cli.terminal.outcome import ExitCode, ending, say
from connectors.cli.terminal.sessions import session
from connectors.cli.terminal.tables import print_table
from connectors.cli.terminal.work_progress import spark_progress
from historian.changelog.validation.findings import Profile
from historian.errors import PositionError
from historian.positions import KAFKA, LogPosition, parse_position

if TYPE_CHECKING:
    from historian.changelog.validation import Finding

__all__ = ["changelog", "check_changelog", "project"]

changelog = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
changelog.command("convert")(convert)
changelog.command("merge")(merge)


@changelog.callback()
def _changelogs() -> None:
    """Work on a changelog in a lake or in Parquet files: check it, project it to a state, write it in another form, merge a batch."""


@changelog.command("check")
@ending
def check_changelog(
    path: Source,
    *,
    key: Key = "",
    profile: Annotated[
        Profile, typer.Option("--profile", help="binlog, or odf for strict Open Data Fabric.")
    ] = Profile.BINLOG,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Show at most so many findings.")] = 100,
    as_json: Json = False,
) -> None:
    """Check that a changelog keeps its rules: codes, offsets, pairs of -C and +C, and rows taken back as they were.

    Ends with 1 where something is wrong.
    """
    with session("changelog", [path], None) as spark:
        from pyspark_historian.validation import check, findings_of

        names = names_of(key) or recorded(spark, path).key
        with spark_progress(f"checking {path}", spark):
            findings = findings_of(check(read(spark, path), names, profile=profile), limit)
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    if findings:
        raise typer.Exit(ExitCode.FAILED)


@changelog.command("project")
@ending
def project(
    path: Source,
    *,
    key: Key = "",
    until: Annotated[
        str,
        typer.Option(
            "--until",
            metavar="OFFSET|POS",
            help="The last row, or the last transaction, that counts; by default all do.",
        ),
    ] = "",
    out: Out,
) -> None:
    """Write the state that a changelog leads to, at its end, at an offset, or at a position of the source's log.

    Without a key whole rows are counted. For a position the rows have a column _position.
    """
    cut = _until(until)
    with session("changelog", [path, out], None) as spark:
        from pyspark_historian.state import project_changelog

        known = recorded(spark, path)
        names = names_of(key) or known.key
        rows = read(spark, path, ("op", "offset", *names))
        write(path, out, lambda: project_changelog(rows, names, until=cut, added=known.added))


def _until(text: str) -> int | LogPosition | None:
    """An offset, or a position: a changelog does not say of which flavor its source is, but each writes positions differently."""
    text = text.strip()
    if not text:
        return None
    if text.isdecimal():
        return int(text)
    for flavor in ("mysql", "mariadb", KAFKA):
        try:
            return parse_position(text, flavor)
        except PositionError:
            continue
    raise PositionError(
        "neither an offset nor a position",
        where=text,
        expected="4711, GTIDs, FILE:OFFSET, or TOPIC:PARTITION:OFFSET,...",
    )


def _print(findings: tuple[Finding, ...]) -> None:
    if not findings:
        say("nothing is wrong")
        return
    rows = ((each.offset, each.rule.value, each.expected, each.found) for each in findings)
    print_table(("offset", "rule", "expected", "found"), rows)
