"""Tables where there is no terminal: lines that people and grep can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.cli.terminal.tables import print_table

if TYPE_CHECKING:
    import pytest

LONG = "CREATE TABLE shop.orders (" + ", ".join(f"column_{number} INT" for number in range(30)) + ")"


def test_a_table_that_is_narrow_stays_one(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("version", "statement"), [(1, "CREATE"), (12, None)])

    assert ["version  statement", "1        CREATE", "12"] == [
        line.replace("│", " ").replace("┃", " ").rstrip()
        for line in capsys.readouterr().out.replace(" │ ", "  ").replace(" ┃ ", "  ").splitlines()
        if "━" not in line
    ]


def test_wide_cells_stand_below_their_row_in_lines_that_are_not_long(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(1, "uuid:" + "1-2:" * 40, "2024-01-01", f"{LONG}\nCOMMENT '\x1b[2J'"), (2, "uuid:9", "2024-01-02", None)]
    print_table(("version", "position", "time", "columns"), rows)

    lines = capsys.readouterr().out.splitlines()
    assert ["version  time", "1        2024-01-01", "  position:", f"    {rows[0][1]}"] == lines[:4]
    cell = lines[4:-2]
    assert f"columns: {LONG} COMMENT '\\x1b[2J'" == " ".join(line.strip() for line in cell)
    assert cell[0].startswith("  columns: CREATE TABLE")
    assert all(line.startswith("    ") for line in cell[1:])
    assert 120 >= max(map(len, cell)) > 100
    assert ["2        2024-01-02", "  position: uuid:9"] == lines[-2:]


def test_a_statement_is_not_broken_inside_its_literals(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{LONG} COMMENT '{'two words ' * 30}'"
    print_table(("version", "statement"), [(1, text)])

    assert ["version", "1", f"  statement: {text}"] == capsys.readouterr().out.splitlines()
