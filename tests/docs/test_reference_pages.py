"""The reference pages that are written from the code are up to date, and leave nothing out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
    ],
)
def test_a_page_is_what_make_reference_writes(page: str, text: object) -> None:
    assert callable(text)
    assert text() == (DOCS / page).read_text(encoding="utf-8")


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
