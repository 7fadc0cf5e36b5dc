"""``historian changelog convert``: each form made of a changelog, and a changelog made of each form, by value."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from connectors.cli import app
from connectors.cli.changelogs.convert import CHANGELOG, FORMS
from connectors.cli.terminal.outcome import ExitCode
from historian.changelog.operations import Op
from historian.changelog.validation import Profile
from models.changelogs import START_MS, changelog_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A, R, C, D = Op.APPEND, Op.RETRACT, Op.CORRECT_FROM, Op.CORRECT_TO
ROWS = [(A, "a", 1, b"x", None), (C, "a", 1, b"x", None), (D, "a", 1, b"y", None), (A, "b", 1, b"z", 2.5)]
ROWS.append((R, "b", 1, b"z", 2.5))
TIMES_MS = (0, 10, 10, 20, 30)
"""Of the changes: a row before and after one has its time."""

# Of each row its offset, what it says, and the value of v, before and after where the form has both.
WRITTEN: dict[str, list[tuple[Any, ...]]] = {
    "retract": [(0, 0, b"x"), (1, 1, b"x"), (2, 0, b"y"), (3, 0, b"z"), (4, 1, b"z")],
    "upsert": [(0, 0, b"x"), (2, 0, b"y"), (3, 0, b"z"), (4, 1, b"z")],
    "events": [
        (0, "create", None, b"x"),
        (2, "update", b"x", b"y"),
        (3, "create", None, b"z"),
        (4, "delete", b"z", None),
    ],
    "row-kinds": [(0, "+I", b"x"), (1, "-U", b"x"), (2, "+U", b"y"), (3, "+I", b"z"), (4, "-D", b"z")],
    "append": [(0, b"x"), (1, b"z")],
    "odf": [(0, 0, b"x"), (1, 2, b"x"), (2, 3, b"y"), (3, 0, b"z"), (4, 1, b"z")],
}
CAN_COME_BACK = [name for name, form in FORMS.items() if form.back]


def _run(path: Path, *words: str | Path) -> Result:
    return CliRunner().invoke(app, ["changelog", "convert", str(path), *map(str, words)])


def _table(rows: list[Any]) -> pa.Table:
    """A changelog as Spark has it; each change has one time."""
    made = changelog_of(rows, Profile.BINLOG)
    times = pa.array([(START_MS + ms) * 1000 for ms in TIMES_MS[: len(rows)]], pa.timestamp("us", tz="UTC"))
    made = made.set_column(made.schema.get_field_index("event_time"), "event_time", times)
    return made.set_column(1, "op", made.column("op").cast(pa.int32()))


def _written(table: pa.Table, path: Path) -> Path:
    path.mkdir()
    pq.write_table(table, path / "0.parquet")
    return path


def _rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(path).sort_by("offset").to_pylist()
    return found


def _short(form: str, row: dict[str, Any]) -> tuple[Any, ...]:
    if form == "events":
        return row["offset"], row["event"], *(row[at] and row[at]["v"] for at in ("before", "after"))
    says = {"row-kinds": "row_kind", "append": ""}.get(form, "op")
    return (row["offset"], *([row[says]] if says else []), row["v"])


def test_every_form_is_a_line_of_the_table_and_of_this_test() -> None:
    from pyspark_historian import conversions

    names = {name for form in FORMS.values() for name in (form.made, form.back) if name}

    assert set(FORMS) == set(WRITTEN)
    assert {name for name in conversions.__all__ if name.startswith(("to_", "from_"))} == names
    assert all(inspect.isfunction(getattr(conversions, name)) for name in names)


@pytest.mark.parametrize("form", WRITTEN)
def test_a_changelog_becomes_a_form_and_comes_back(spark: SparkSession, form: str, tmp_path: Path) -> None:
    table = _table([row for row in ROWS if form != "append" or row[0] is A])
    path = _written(table, tmp_path / "changes")

    there = _run(path, "--to", form, "--key", "k,l", "--out", tmp_path / "form")

    assert 0 == there.exit_code, there.output
    found = _rows(tmp_path / "form")
    assert WRITTEN[form] == [_short(form, row) for row in found]
    system = {"system_time", "event_time"} | ({"schema_version"} if form != "odf" else set())
    assert system <= set(found[0])
    if form == "odf":
        at = [(row["event_time"].timestamp() * 1000) - START_MS for row in found]
        assert (["schema_version"], [0, 0, 10, 20, 20]) == (sorted(set(table.column_names) - set(found[0])), at)
    back = _run(tmp_path / "form", "--from", form, "--key", "k,l", "--out", tmp_path / "back")
    if form in CAN_COME_BACK:
        assert 0 == back.exit_code, back.output
        assert table.column_names == pq.read_schema(next((tmp_path / "back").glob("*.parquet"))).names
        assert table.to_pylist() == _rows(tmp_path / "back")
    else:
        assert ExitCode.USAGE == back.exit_code
        assert "no way back from odf" in back.stderr


def test_one_form_becomes_another(spark: SparkSession, tmp_path: Path) -> None:
    kinds = _table(ROWS)
    kinds = kinds.set_column(1, "row_kind", pa.array(["+I", "-U", "+U", "+I", "-D"]))

    made = _run(
        _written(kinds, tmp_path / "kinds"), "--from", "row-kinds", "--to", "upsert", "--out", tmp_path / "upsert"
    )

    assert 0 == made.exit_code, made.output
    assert WRITTEN["upsert"] == [_short("upsert", row) for row in _rows(tmp_path / "upsert")]


def test_the_rows_before_fill_in_what_an_upsert_stream_took_over(spark: SparkSession, tmp_path: Path) -> None:
    before = _written(_table(ROWS[:1]).select(["event_time", "k", "l", "v", "w"]), tmp_path / "state")
    upserts = _table([ROWS[2], (R, "a", 1, None, None)])
    path = _written(upserts.set_column(1, "op", pa.array([0, 1], pa.int32())), tmp_path / "upserts")

    back = _run(
        path, "--from", "upsert", "--key", "k,l", "--state", before, "--first-offset", "7", "--out", tmp_path / "back"
    )
    strict = _run(tmp_path / "back", "--to", "odf", "--key", "k,l", "--state", before, "--out", tmp_path / "odf")

    assert (0, 0) == (back.exit_code, strict.exit_code), back.output + strict.output
    assert [(7, 2, b"x"), (8, 3, b"y"), (9, 1, b"y")] == [_short("upsert", row) for row in _rows(tmp_path / "back")]
    assert [(7, 2, b"x"), (8, 3, b"y"), (9, 1, b"y")] == [_short("odf", row) for row in _rows(tmp_path / "odf")]


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["--from", "odf"], ExitCode.USAGE, "there is no way back from odf"),
        ([], ExitCode.USAGE, f"PATH has the form {CHANGELOG} already"),
        (["--from", "upsert", "--to", "upsert"], ExitCode.USAGE, "PATH has the form upsert already"),
        (["--to", "avro"], ExitCode.USAGE, "is not one of"),
        (["--from", "retract"], ExitCode.USAGE, "--from retract needs --key"),
        (["--from", "events", "--to", "odf"], ExitCode.USAGE, "--to odf needs --key"),
        (["--to", "events", "--first-offset", "0"], ExitCode.USAGE, "--to events takes no --first-offset"),
        (["--to", "append", "--state", "x"], ExitCode.USAGE, "--to append takes no --state"),
        (["--from", "retract", "--key", "nope"], ExitCode.SOURCE, "nope"),
        (["--from", "events"], ExitCode.SOURCE, "event, before, after"),
        (["--from", "row-kinds"], ExitCode.SOURCE, "row_kind"),
        (["--from", "append"], ExitCode.SOURCE, "rows of an append stream have no column op"),
        (["--from", "retract", "--key", "k,l"], ExitCode.SOURCE, "a retract stream has +A and -R; found 2"),
    ],
)
def test_what_cannot_be_converted_is_said(
    spark: SparkSession, tmp_path: Path, words: list[str], code: ExitCode, said: str
) -> None:
    refused = _run(_written(_table(ROWS), tmp_path / "changes"), *words, "--out", tmp_path / "out")

    text = " ".join(refused.stderr.replace("│", " ").split())
    assert (code, True) == (refused.exit_code, said in text), refused.output
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_rows_without_offsets_have_no_order_for_another_form(spark: SparkSession, tmp_path: Path) -> None:
    path = _written(_table(ROWS).drop(["offset", "op"]), tmp_path / "stream")

    made = _run(path, "--from", "append", "--out", tmp_path / "changes")
    refused = _run(path, "--from", "append", "--to", "events", "--out", tmp_path / "events")

    assert 0 == made.exit_code, made.output
    assert ["op", "system_time"] == pq.read_schema(next((tmp_path / "changes").glob("*.parquet"))).names[:2]
    assert (ExitCode.SOURCE, True) == (refused.exit_code, "expected  offset" in refused.stderr), refused.stderr
