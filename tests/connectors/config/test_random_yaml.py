"""Configurations that nobody would write: each loads, or is refused with an error of ours, and no part of a secret is in that."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from connectors.config import load_config
from historian.errors import ConfigError

ROOT = Path(__file__).parents[3]
SECRET = "xq7secretzv"
ENVIRONMENT = {"SHOP_DB_PASSWORD": SECRET, "SHOP_DB_HOST": "db.internal"}
ODD = (
    *("", "null", "~", "-1", "0", "1e999", ".inf", ".nan", "1_000", "0x1F", "2024-01-01", "true", "[]", "{}", "- a", "? a", "&a x"),
    *("*a", "!!binary aGk=", "!!set {a}", "!!python/object:os.system x", "<<: {a: 1}", "---", "...", "|\n x", ">-\n  x", "\t", "\x00"),
    *("\u2028", "\ud800", "${", "${env:}", "${env:SHOP_DB_PASSWORD}", "${env:NOTHING}", "${file:/nowhere}", "${x:y}", "$${", "'", '"'),
    *("9" * 400, "x" * 5000, "[" * 60, "{a: " * 60, "1 fortnight", "-3 seconds", "99999999999 GB", "../{table}", "{database}", "{}"),
)  # fmt: skip


def _templates() -> list[str]:
    """What the documentation shows, and an example."""
    pages = [(ROOT / "docs" / name).read_text() for name in ("how-to/configure.md", "reference/configuration.md")]
    shown = [block for page in pages for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    return [(ROOT / "examples/shop.yaml").read_text(), *(block for block in shown if "name:" in block)]


def _mutated(draw: random.Random, templates: list[str]) -> str:
    text = draw.choice(templates)
    for _ in range(draw.choice((1, 1, 2, 3, 8))):
        words = list(re.finditer(r"[\w./*{}$:-]+", text))
        word = draw.choice(words) if words else None
        at = draw.randrange(len(text) + 1)
        kind = draw.choice(("value", "value", "word", "cut", "insert", "line", "character", "other"))
        if kind == "value" and (values := list(re.finditer(r"(?<=: )[^\n#{}\[\],]+", text))):
            value = draw.choice(values)
            text = text[: value.start()] + draw.choice(ODD) + text[value.end() :]
        elif kind == "word" and word is not None:
            text = text[: word.start()] + draw.choice((*ODD, draw.choice(words)[0])) + text[word.end() :]
        elif kind == "cut":
            text = text[:at] + text[at + draw.randrange(1, 40) :]
        elif kind == "insert":
            text = text[:at] + draw.choice(ODD) + text[at:]
        elif kind == "line":
            lines = text.split("\n")
            lines.insert(draw.randrange(len(lines) + 1), draw.choice(lines))
            text = "\n".join(lines)
        elif kind == "character":
            text = text[:at] + chr(draw.randrange(draw.choice((128, 0x110000)))) + text[at + 1 :]
        else:
            text = text[:at] + draw.choice(templates)[draw.randrange(200) :]
    return text


@pytest.mark.parametrize("count", [400, pytest.param(100_000, marks=pytest.mark.soak)])
def test_any_text_loads_or_is_refused(tmp_path: Path, count: int) -> None:
    templates = _templates()
    assert len(templates) > 2
    path = tmp_path / "random.yaml"
    loaded = refused = 0
    for seed in range(count):
        text = _mutated(random.Random(seed), templates)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            load_config(path, environment=ENVIRONMENT)
        except ConfigError as error:
            refused += 1
            told = f"{error} {error.problems}"
        except Exception as error:
            raise AssertionError(f"seed {seed}: {text}") from error
        else:
            loaded += 1
            continue
        assert SECRET not in told, f"seed {seed}: {text}"
    assert min(loaded, refused) > count // 20
