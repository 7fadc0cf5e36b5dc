"""The documents are plain: no sentence is long, and no page is left out of the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prose import docstrings, long_sentences, sentences

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (
        *ROOT.glob("docs/**/*.md"),
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    )
)


@pytest.mark.parametrize("page", PAGES)
def test_no_sentence_has_more_than_30_words(page: str) -> None:
    assert [] == long_sentences((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("package", ["connectors", "historian", "pyspark_historian", "sinks"])
def test_no_sentence_of_a_docstring_has_more_than_30_words(package: str) -> None:
    found = {
        f"{file.relative_to(ROOT)}: {sentence}"
        for file in (ROOT / package).rglob("*.py")
        for entry in docstrings(file.read_text(encoding="utf-8"))
        for sentence in long_sentences(entry)
    }

    assert set() == found


def test_a_long_sentence_of_a_docstring_would_be_found() -> None:
    long = " ".join(["Word"] * 31)

    found = [
        one
        for text in docstrings(f'class A:\n    """Short.\n\n    Args:\n        a: {long}.\n    """\n')
        for one in long_sentences(text)
    ]

    assert [f"{long}."] == found


def test_a_long_sentence_would_be_found() -> None:
    long = " ".join(["Word"] * 31)

    assert [long + "."] == long_sentences(f"# A page\n\nShort. {long}.\n")
    assert [long] == long_sentences(f"| a | b |\n|---|---|\n| short | {long} |\n")
    assert [] == long_sentences(f"```\n{long}\n```\n")
    assert ["One.", "Two."] == [each for each in sentences("One. Two.") if each]


def test_every_page_is_in_the_site() -> None:
    named = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))

    assert {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")} == named
