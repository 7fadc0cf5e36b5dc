"""What the documents say can be done as they say it: configurations load, commands and targets exist, links lead somewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from connectors.cli import app
from connectors.config import load_config
from sinks.delta.lake.dead_letters import DEAD_LETTERS, DEAD_LETTERS_SCHEMA
from sinks.delta.lake.state_rows import STATE_SCHEMAS

LAKE_TABLES = {**STATE_SCHEMAS, DEAD_LETTERS: DEAD_LETTERS_SCHEMA}
ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
EXAMPLES = sorted(ROOT.glob("examples/**/*.yaml"))
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in (*DOCUMENTS, *EXAMPLES)}


def _blocks(language: str) -> list[tuple[str, str]]:
    """Document and text of each fenced block of a language."""
    fenced = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return [(name, block) for name, text in TEXTS.items() for kind, block in fenced.findall(text) if kind == language]


BASE = """
name: shop
source: {type: mysql, host: db.internal, user: cdc, password: x}
sinks: [{type: delta, path: lake}]
"""
PARTS = re.compile(r"^(name|source|history|sinks|types|run):", re.MULTILINE)
CONFIGURATIONS = [block for _, block in _blocks("yaml") if PARTS.search(block) and "libraries:" not in block]


def test_there_are_documents_with_configurations_and_commands() -> None:
    assert {"README.md", "docs/reference/cli.md", "docs/reference/configuration.md", "examples/shop.yaml"} <= set(TEXTS)
    assert CONFIGURATIONS
    assert len(set(_commands())) > 5


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_a_configuration_in_a_document_loads(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that shows a part stands for a whole configuration with that part."""
    for name in (
        "SHOP_DB_PASSWORD",
        "STORE_PASSWORD",
        "SALT",
        "HISTORIAN_TOKEN",
        "LINEAGE_KEY",
        "KAFKA_PASSWORD",
        "REGISTRY_PASSWORD",
    ):
        monkeypatch.setenv(name, "s3cret")
    for name in ("start.sql", "registry-ca.pem"):
        (tmp_path / name).write_text("")
    whole = yaml.safe_load(BASE)
    for key, part in yaml.safe_load(text).items():
        is_part = (
            isinstance(part, dict) and key in whole and part.get("type") != "kafka"
        )  # which shares no key with a server
        whole[key] = {**whole[key], **part} if is_part else part
    file = tmp_path / "shop.yaml"
    file.write_text(yaml.safe_dump(whole))

    assert load_config(file).name == "shop"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_loads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DB_PASSWORD", "s3cret")

    assert load_config(path).sinks


def _commands() -> Iterator[str]:
    """Each use of ``historian`` in a block or a comment that is meant to be typed."""
    for _, block in _blocks(""):
        yield from re.findall(r"^historian [^#\n]*", block, re.MULTILINE)
    for name, text in TEXTS.items():
        if name.endswith(".yaml"):
            yield from re.findall(r"historian [a-z]+ [^&#\n]*", text)


@pytest.mark.parametrize("line", sorted({line.strip() for line in _commands()}))
def test_a_command_in_a_document_can_be_typed(line: str) -> None:
    _parse(typer.main.get_command(app), shlex.split(line)[1:])


@pytest.mark.parametrize("line", ["historian tale", "historian tail --table", "historian schemas a.yaml at t --nope"])
def test_a_wrong_command_would_be_found(line: str) -> None:
    with pytest.raises(Exception, match=r"No such|requires an argument"):
        _parse(typer.main.get_command(app), shlex.split(line)[1:])


def _parse(command: Any, words: list[str]) -> None:
    """Fails where the command line is wrong; runs nothing."""
    context = command.make_context(command.name, list(words))
    if hasattr(command, "commands"):
        _, inner, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        _parse(inner, rest)


def test_every_target_in_a_document_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    named = {
        (name, target)
        for name, text in TEXTS.items()
        for words in re.findall(r"(?:^|`)make ([a-z-]+(?: [a-z-]+)*) *(?=[A-Z`#\n]|$)", text, re.MULTILINE)
        for target in words.split()
    }

    assert {"demo", "test", "help"} <= {target for _, target in named}
    assert [] == sorted(pair for pair in named if pair[1] not in targets)


def test_every_link_leads_somewhere() -> None:
    links = [
        (name, link)
        for name, text in TEXTS.items()
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
        if "://" not in link
    ]

    assert links
    assert [] == [(name, link) for name, link in links if not (ROOT / name).parent.joinpath(link).exists()]


@pytest.mark.parametrize("table", sorted(LAKE_TABLES))
def test_the_columns_of_a_lakes_own_tables_are_documented(table: str) -> None:
    section = TEXTS["docs/reference/lake.md"].split(f"## `{table}`")[1].split("\n## ")[0]
    named = [
        name for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]

    assert sorted(LAKE_TABLES[table].names()) == sorted(named)
