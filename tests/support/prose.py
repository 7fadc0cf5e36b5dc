"""The prose of Markdown pages and docstrings: their sentences, without code, tables' marks and links' addresses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

__all__ = ["docstrings", "long_sentences", "sentences"]

_FENCE = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`\n]*`")
_ROLE = re.compile(r":\w+:`[^`]*`|``[^`]*``")
_HEADING = re.compile(r"^\s*(?:Args|Attributes|Raises|Returns):\s*$", re.MULTILINE)
_ENTRY = re.compile(r"\n\s*\n|\n(?=\s+[\w*, ]+: )")
_DRAWN = ("\u251c", ">>>")
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


def docstrings(source: str) -> Iterator[str]:
    """The paragraphs and entries of a module's docstrings and texts behind constants; examples and drawings left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            texts = [ast.get_docstring(node)]
            texts += [
                each.value.value
                for each in node.body[1:]
                if isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ]
            for entry in _ENTRY.split("\n\n".join(filter(None, texts))):
                if not any(mark in entry for mark in _DRAWN):
                    yield _HEADING.sub("", _ROLE.sub("`CODE`", entry))
