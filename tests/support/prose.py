"""The prose of a Markdown page: its sentences, without code, tables' marks and links' addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["long_sentences", "sentences"]

_FENCE = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`\n]*`")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs)\.")


def sentences(page: str) -> Iterator[str]:
    """Each sentence of the page, headings and cells of tables included. Code counts as one word."""
    text = _COMMENT.sub("", _FENCE.sub("", page))
    text = _CODE.sub("CODE", _LINK.sub(r"\1", text))
    text = _ABBREVIATION.sub(r"\1", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*#|>]|\d+\.|!!!|\?\?\?)\s*)", text):
        for cell in block.split("|") if block.lstrip().startswith("|") else (block,):
            yield from re.split(r"(?<=[.!?:])\s+(?=[\"'(A-Z0-9*])", " ".join(cell.split()))


def long_sentences(page: str, most_words: int = 30) -> list[str]:
    """The sentences with more than *most_words* words."""
    return [each for each in sentences(page) if len(re.findall(r"[\w'-]+", each)) > most_words]
