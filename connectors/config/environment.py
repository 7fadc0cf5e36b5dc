"""References to environment variables in a document: ``${env:NAME}`` and ``${env:NAME:-default}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["JsonPath", "ResolvedDocument", "fill", "path_text"]

JsonPath = tuple[str | int, ...]

_REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_BROKEN = re.compile(r"\$\{[^}]*\}?")


@dataclass(frozen=True, slots=True)
class ResolvedDocument:
    """A document with its references filled in.

    Attributes:
        value: the document. A reference that cannot be filled in stands as it was.
        problems: one text a reference that cannot be filled in, by path.
    """

    value: Any
    problems: Mapping[JsonPath, str] = field(default_factory=dict)


def path_text(path: JsonPath) -> str:
    """A path as people write it: ``$.sinks[0].path``."""
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def fill(document: Any, environment: Mapping[str, str]) -> ResolvedDocument:
    """Fills in every reference in the texts of *document*; keys are left alone."""
    problems: dict[JsonPath, str] = {}
    return ResolvedDocument(_fill(document, environment, (), problems), problems)


def _fill(value: Any, environment: Mapping[str, str], path: JsonPath, problems: dict[JsonPath, str]) -> Any:
    if isinstance(value, dict):
        return {key: _fill(each, environment, (*path, key), problems) for key, each in value.items()}
    if isinstance(value, list):
        return [_fill(each, environment, (*path, at), problems) for at, each in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    unset = [m[1] for m in _REFERENCE.finditer(value) if m[2] is None and m[1] not in environment]
    broken = _BROKEN.search(_REFERENCE.sub("", value))
    if unset:
        problems[path] = f"environment variable {', '.join(unset)} is not set"
    elif broken is not None:
        problems[path] = f"not a reference; expected ${{env:NAME}} or ${{env:NAME:-default}}, found {broken[0]}"
    else:
        return _REFERENCE.sub(lambda match: environment.get(match[1], match[2] or ""), value)
    return value
