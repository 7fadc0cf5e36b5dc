"""What generated columns come from."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import replace

from historian.schema.snapshots import Column
from historian.schema.system_versioning import ROW_END, ROW_START

__all__ = ["under_ids", "with_sources"]

_WORD = re.compile(r"[a-z0-9_$]+")


def with_sources(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The columns of a table, those that are generated and have no sources with them.

    Whatever in an expression could be a column's name counts as one, so that there may be too many, never too few.
    """
    named = tuple(columns)
    return tuple(
        replace(column, sources=_sources(column.generation_expression, named))
        if column.generated and column.generation_expression not in (None, ROW_START, ROW_END) and not column.sources
        else column
        for column in named
    )


def under_ids(column: Column, ids: Mapping[int, int]) -> Column:
    """*column* in a table where it and those that it comes from have other ids, as far as *ids* names them."""
    sources = tuple(ids.get(source, source) for source in column.sources)
    return replace(column, id=ids.get(column.id, column.id), sources=sources)


def _sources(expression: str, columns: Iterable[Column]) -> tuple[int, ...]:
    text = _folded(expression)
    # The servers execute what stands in some comments.
    words = frozenset(() if "/*" in text else _WORD.findall(text))
    return tuple(column.id for column in columns if _is_named(_folded(column.name), text, words))


def _is_named(name: str, text: str, words: frozenset[str]) -> bool:
    if words and _WORD.fullmatch(name):
        return name in words
    return any(form in text for form in (name, name.replace("`", "``"), name.replace('"', '""')))


def _folded(text: str) -> str:
    """Without letter case and accents, by which no two columns of a table differ alone."""
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return plain.casefold()
