"""Every line of the tables of docs/reference/ddl.md is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from historian.ddl import StatementContext, resolve
from historian.schema.applying import apply_all
from models.ddl_text import MARIADB, MYSQL, after

DOCS = (Path(__file__).parents[3] / "docs" / "reference" / "ddl.md").read_text(encoding="utf-8")
LINES = re.findall(r"^\| `(.*)` \| (both|mysql|mariadb) \| (.*) \|$", DOCS, re.MULTILINE)
(BEFORE,) = re.findall(r"```sql\n(.*?)\n```", DOCS, re.DOTALL)
CASES = [
    pytest.param(sql, context, expected, id=f"{context.flavor}: {sql}")
    for sql, flavors, expected in LINES
    for context in (MYSQL, MARIADB)
    if flavors in ("both", context.flavor)
]
STOPPING = {"rows": "rows", "row statement": "dml", "stops": "not_understood"}


def test_no_line_of_the_tables_is_left_out() -> None:
    rows = [line for line in DOCS.splitlines() if line.startswith("|") and not line.startswith(("| statement", "|---"))]
    assert len(rows) == len(LINES)


@pytest.mark.parametrize("sql,context,expected", CASES)
def test_a_documented_statement_does_what_is_written(sql: str, context: StatementContext, expected: str) -> None:
    catalog = after(*BEFORE.split(";\n"), context=context)

    found = resolve(sql, context, catalog)

    kinds = ", ".join(edit.kind for edit in found.edits)
    if expected in STOPPING:
        assert (found.kind, bool(found.reason)) == (STOPPING[expected], True)
    elif expected == "no table":
        assert (found.kind, kinds) == ("irrelevant", "")
    else:
        assert (found.kind, kinds) == ("ddl", "" if expected == "nothing" else expected), found.reason
    apply_all(found.edits, catalog)
