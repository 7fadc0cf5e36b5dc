"""A picture of a run on terminals of several widths and heights: what is shown, in which order, and that no text of the source breaks out."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import product

import pytest
from rich.cells import cell_len
from rich.console import Console, Group

from connectors.cli.live.rendering import rendered
from connectors.cli.terminal.plain_text import as_lines, one_line, without_controls
from connectors.monitoring.picture import CopyPicture, RunPicture, SchemaChange, TablePicture, TableState
from historian.schema.diff import Difference

NOW_US = 1_796_000_000_000_000  # 2026-11-30 00:53:20 UTC
COPYING = CopyPicture(
    rows=450_000,
    estimate=1_000_000,
    rows_per_s=20_000,
    left_s=28,
    size_bytes=90_000_000,
    estimated_bytes=200_000_000,
    bytes_per_s=4_000_000,
)
TABLES = (
    TablePicture(name="shop.quiet"),
    TablePicture(name="shop.users", rows=12_345, rows_per_s=120.4),
    TablePicture(name="shop.log", state=TableState.DEFERRED, rows=7, due_us=NOW_US + 192_000_000),
    TablePicture(name="shop.items", state=TableState.COPYING, copy=COPYING),
    TablePicture(name="shop.next", state=TableState.WAITING, copy=CopyPicture(rows=0, estimate=5_000)),
    TablePicture(name="shop.orders", state=TableState.STOPPED, reason="a statement is not understood"),
    TablePicture(
        name="shop.mended", state=TableState.REPAIRING, copy=CopyPicture(rows=90, rows_per_s=3, size_bytes=900)
    ),
)
CHANGES = (
    SchemaChange(
        number=1,
        time_us=NOW_US - 60_000_000,
        tables=("shop.users",),
        statement="ALTER TABLE users\n  ADD COLUMN note TEXT",
        changes=(Difference(change="added", column="note", after="text"),),
    ),
    SchemaChange(
        number=1, time_us=NOW_US - 3 * 86_400_000_000, tables=("shop.a", "shop.b"), statement="TRUNCATE a", changes=()
    ),
)
PICTURE = RunPicture(
    taken_us=NOW_US,
    connector="shop",
    source="mysql db.internal:3306",
    sinks=("delta",),
    stage="runs",
    plan=12,
    position="binlog.000003:157, 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-57",
    lag_s=2.4,
    lag_bytes=1_200_000,
    log_bytes_per_s=2_500.0,
    copied_rows_per_s=20_000.0,
    copied_bytes_per_s=4_000_000.0,
    rows_per_s=21_000.5,
    rows=1_234_567,
    tables=TABLES,
    changes=CHANGES,
)


def _lines(picture: RunPicture, width: int = 80, height: int = 40, **options: bool) -> list[str]:
    return [line.plain for line in rendered(picture, width, height, **options)]


def test_all_that_a_run_is_about_on_80_columns() -> None:
    assert [
        "shop  runs  mysql db.internal:3306 to delta",
        "position plan 12, binlog.000003:157, 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-57",
        "lag      0:00:02, 1.2 MB of log wait",
        "in       2.5 KB/s of log, 20,000 rows/s, 4.0 MB/s of tables",
        "out      21,000 rows/s, 1,234,567 rows so far",
        "",
        "shop.orders  stopped    0 rows",
        "  a statement is not understood",
        "shop.items   copying     45% █████████░░░░░░░░░░░░░  20,000 rows/s, 0:00:28 left",
        "shop.mended  repairing  90 rows, 3 rows/s, 900 B",
        "shop.next    waiting      0% ░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0 of about 5,000 rows",
        "shop.log     deferred   mirror follows in 0:03:12, 7 rows",
        "shop.users   streaming  12,345 rows, 120/s",
        "shop.quiet   streaming  0 rows",
        "",
        "last schema changes",
        "00:52:20Z shop.users: added note text  ALTER TABLE users ADD COLUMN note TEXT",
        "2026-11-27 00:53:20Z shop.a, shop.b: no column changed  TRUNCATE a",
    ] == _lines(PICTURE)


def _line_of(table: str, width: int) -> str:
    return next(line for line in _lines(PICTURE, width) if line.startswith(table))


def test_a_narrow_terminal_has_less_of_a_copy_and_a_wide_one_all() -> None:
    assert "shop.items   copying     45% ███████░░░░░░░░░░  0:00:28 left" == _line_of("shop.items", 60)
    wide = "█████████████░░░░░░░░░░░░░░░░░  450,000 of about 1,000,000 rows, 20,000 rows/s, 90.0 MB of about 200.0 MB, 4.0 MB/s, 0:00:28 left"
    assert f"shop.items   copying     45% {wide}" == _line_of("shop.items", 200)


@pytest.mark.parametrize("width", [1, 20, 60, 80, 200])
def test_no_line_is_wider_and_no_picture_higher_than_the_terminal(width: int) -> None:
    picture = replace(PICTURE, notes=("a note " * 30,), warnings=("a warning " * 30,))

    for height, ascii_only in product((1, 5, 9, 12, 23, 60), (False, True)):
        lines = _lines(picture, width, height, ascii_only=ascii_only)

        assert 0 < len(lines) <= height
        assert max(map(cell_len, lines)) <= width
        assert not ascii_only or "".join(lines).isascii()
    assert [] == _lines(picture, width, -1)


def test_of_many_tables_those_are_shown_that_need_a_person_and_then_those_with_most_rows() -> None:
    many = tuple(TablePicture(name=f"shop.t{i:03}", rows=i) for i in range(500))
    lines = _lines(replace(PICTURE, tables=(*many, *TABLES)), height=23)

    assert 23 == len(lines)
    named = [line.split()[0] for line in lines[6:-5] if line.startswith("shop")]
    assert ["shop.orders", "shop.items", "shop.mended", "shop.next", "shop.log", "shop.users", "shop.t499"] == named[:7]
    assert "… and 496 more streaming" == lines[-5]
    low = _lines(replace(PICTURE, tables=(*many, *TABLES), changes=()), height=9)
    assert ["", "shop.orders  stopped    0 rows", "  a statement is not understood"] == low[5:8]
    assert "… and 4 more not streaming, 502 more streaming" == low[8]


def test_warnings_about_the_logs_retention_are_shown_whole_on_narrow_terminals() -> None:
    warning = "shop.items needs about 9:00:00 more to be copied; the log from here on is kept for 4:00:00"

    lines = _lines(replace(PICTURE, warnings=(warning,)), 60)

    assert [
        "warning  shop.items needs about 9:00:00 more to be copied;",
        "         the log from here on is kept for 4:00:00",
    ] == lines[5:7]


EVIL = "a\x1b[2J\x1b]0;owned\x07\r\n\x9b31m[bold red]b[/bold red]\u202e\u2028:smile:\ud800\tc"


def test_texts_of_the_source_cannot_break_out() -> None:
    evil = replace(
        PICTURE,
        connector=EVIL,
        source=EVIL,
        position=EVIL,
        tables=(TablePicture(name=EVIL, state=TableState.STOPPED, reason=EVIL),),
        changes=(
            SchemaChange(
                number=1,
                time_us=NOW_US,
                tables=(EVIL,),
                statement=EVIL,
                changes=(Difference(change="added", column=EVIL, after=EVIL),),
            ),
        ),
        notes=(EVIL,),
        warnings=(EVIL,),
    )
    out = io.StringIO()
    console = Console(file=out, width=400, height=50, force_terminal=True, color_system=None, markup=False, emoji=False)

    console.print(Group(*rendered(evil, 400, 50)))

    text = out.getvalue()
    assert {"\n"} == {each for each in text if not each.isprintable()}
    assert text.count("[bold red]b[/bold red]") == text.count(":smile:") == 10
    text.encode()


def test_what_a_terminal_obeys_becomes_visible() -> None:
    assert r"a\x1b[2J\x1b]0;owned\x07 \x9b31m[bold red]b[/bold red]\u202e :smile:\ud800 c" == one_line(EVIL)
    assert "plain ä 漢 🙂" == without_controls("plain ä 漢 🙂")
    assert len(one_line("x" * 1_000_000)) == 2000


def test_what_a_statement_did_is_told_and_slow_tables_are_no_zeros() -> None:
    renamed = Difference(change="renamed", column="total", before="sum", after="total")
    change = replace(CHANGES[0], changes=(renamed, Difference(change="dropped", column="c", before="int")))
    slow = TablePicture(name="shop.slow", rows=2, rows_per_s=0.07)

    lines = _lines(replace(PICTURE, tables=(slow,), changes=(change,)))

    assert "shop.slow  streaming  2 rows, 0.1/s" == lines[6]
    assert lines[-1].startswith("00:52:20Z shop.users: renamed sum to total; dropped c int  ALTER TABLE")


def test_a_run_that_has_not_begun_has_a_picture_too() -> None:
    picture = RunPicture(taken_us=NOW_US, connector="shop", source="mysql here", sinks=())

    assert [
        "shop  starts  mysql here to nothing",
        "position ",
        "lag      0:00:00, no log waits",
        "in       0 B/s of log",
        "out      0 rows/s, 0 rows so far",
    ] == _lines(picture)


def test_no_text_begins_a_line_of_its_own() -> None:
    assert as_lines("a\nb\n\rc\n  d\n\ne") == "a\n  b\n  \\rc\n  d\n\n  e"
