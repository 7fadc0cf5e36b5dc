"""The reference pages that are written from the code are up to date, and leave nothing out."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from connectors.cli.manual import manual_page
from connectors.cli.reference import command_line_page
from connectors.config.json_schema import json_schema
from connectors.config.reference import configuration_page

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    "page, text",
    [
        ("config.schema.json", json_schema),
        ("reference/configuration.md", configuration_page),
        ("reference/cli.md", command_line_page),
        ("reference/historian.1", manual_page),
    ],
)
def test_a_page_is_what_make_reference_writes(page: str, text: object) -> None:
    assert callable(text)
    assert text() == (DOCS / page).read_text(encoding="utf-8")


def test_the_manual_page_is_roff_with_each_command() -> None:
    page = manual_page()

    requests = {line.split()[0] for line in page.splitlines() if line.startswith(".")}
    assert {".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".BR", ".RI"} == requests
    # What stands in roff as an escape is one of these; a bare one would swallow text.
    assert {"\\-", "\\&", "\\e", "\\f"} >= set(re.findall(r"\\.", page))
    commands = re.findall(r"^## `historian (.+)`$", command_line_page(), re.MULTILINE)
    headings = re.findall(r"^\.SS historian (.+)$", page.replace("\\-", "-"), re.MULTILINE)
    assert len(commands) == len(headings) > 20
    assert all(heading.startswith(command) for command, heading in zip(commands, headings, strict=True))


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff on this machine")
def test_groff_takes_the_manual_page_without_a_word() -> None:
    shown = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww"], input=manual_page(), capture_output=True, text=True, check=True
    )

    assert "" == shown.stderr
    assert "--log-format" in re.sub(r".\x08", "", shown.stdout)


def test_every_key_has_a_meaning() -> None:
    schema = json.loads(json_schema())
    models = {"Document": schema, **schema["$defs"]}

    missing = [
        f"{name}.{key}"
        for name, model in models.items()
        for key, value in model["properties"].items()
        if key != "type" and not value.get("description")
    ]

    assert [] == missing
