"""What the page on topics says of each format has a recorded message of that format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from connectors.readers.kafka.decoders import FORMATS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/read-from-kafka.md").read_text(encoding="utf-8")
GOLDENS = ROOT / "tests/connectors/readers/kafka/formats/goldens"
LINES = re.findall(r"^\| `(\w+)` \| .* \| .* \| `(\w+)` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("form, golden", LINES)
def test_what_a_format_lacks_is_recorded(form: str, golden: str) -> None:
    assert form == json.loads((GOLDENS / f"{golden}.json").read_text(encoding="utf-8"))["format"]


def test_each_format_has_its_lines_and_stands_among_the_formats() -> None:
    assert {*FORMATS} == {form for form, _ in LINES}
    formats = PAGE.partition("## Formats")[2].partition("**Statements.**")[0]
    assert sorted(FORMATS) == sorted(re.findall(r"^\| `(\w+)` \|", formats, re.MULTILINE))
