"""What is wrong with a document, one line a problem: ``reason @ $.source.port (got 'x'), line 5, column 3``. No secret is ever in it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from connectors.config.document import SINKS, Document
from connectors.config.model import Model
from connectors.config.references import NOT_A_REFERENCE, JsonPath, path_text
from connectors.config.sources import SOURCE_TYPES

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

    from connectors.config.written import WrittenDocument

__all__ = ["problems_of"]

_SECRETS = frozenset(("password", "store", "salt", "token"))
_SINK_TYPES = tuple(name for sink in SINKS for name in get_args(sink.model_fields["type"].annotation))
_KIND = re.compile(r"[A-Z]\w+Document|\w+\[.+\]")
"""What stands in a place for one kind of several that it may be of: a model, or a type of Python."""
_WORDS = {
    "missing": "missing",
    "string_type": "expected a text; put it in quotes",
    "string_too_short": "expected a text that is not empty",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "list_type": "expected a list",
    "too_short": "expected a list that is not empty",
    "model_type": "expected a mapping",
    "model_attributes_type": "expected a mapping",
    "dict_type": "expected a mapping",
}


def problems_of(
    error: ValidationError | None, written: WrittenDocument, known: Mapping[JsonPath, str]
) -> tuple[str, ...]:
    """The problems of *error* and those *known* already, in the order of the document.

    Args:
        error: what validation found; None: nothing.
        written: the document with its references unfilled; values in messages are its own.
        known: problems found before, by path; what validation says of the same places is left out.
    """
    lines = [(path, _line(reason, path, written)) for path, reason in known.items()]
    found_by = [] if error is None else error.errors(include_url=False, include_input=False)
    told = [(_plain(details["loc"]), details) for details in found_by]
    for path, details in told:
        if path not in known and not _is_of_other_kind(details, path, told):
            lines += [(found, _line(reason, found, written)) for found, reason in _reasons(details, path)]
    order = {path: at for at, path in enumerate(_paths(written.value, ()))}
    lines.sort(key=lambda line: order.get(line[0], order.get(line[0][:-1], 0)))
    return tuple(dict.fromkeys(text for _, text in lines))


def _is_of_other_kind(details: ErrorDetails, path: JsonPath, told: Sequence[tuple[JsonPath, ErrorDetails]]) -> bool:
    """Whether the place may be of another kind too, which it is and has problems of its own: nobody meant a list who wrote a mapping."""
    return details["type"] in ("list_type", "model_type") and any(
        other[: len(path)] == path and other != path for other, _ in told
    )


def _reasons(details: ErrorDetails, path: JsonPath) -> Iterator[tuple[JsonPath, str]]:
    kind, context = details["type"], details.get("ctx", {})
    if kind == "extra_forbidden":
        yield path, _unknown_key(path)
    elif kind in ("union_tag_not_found", "union_tag_invalid"):
        types = SOURCE_TYPES if path == ("source",) else _SINK_TYPES
        missing = kind == "union_tag_not_found"
        reason = "missing" if missing else f"unknown type{_closest(str(context.get('tag')), types)}"
        yield (*path, "type"), f"{reason}; expected {', '.join(types)}"
    elif kind == "literal_error":
        yield path, f"expected {context['expected']}".replace("'", "")
    elif kind == "value_error":
        yield path, str(context["error"])
    elif kind in ("greater_than_equal", "less_than_equal"):
        yield path, f"expected a number {'from' if 'ge' in context else 'up to'} {context.get('ge', context.get('le'))}"
    elif kind == "string_pattern_mismatch":
        yield path, "expected letters, digits, _, . and -, a letter or digit first"
    else:
        yield path, _WORDS.get(kind, details["msg"])


def _unknown_key(path: JsonPath) -> str:
    return f"unknown key{_closest(str(path[-1]), _keys_at(path[:-1]))}"


def _closest(name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else f"; known: {', '.join(known)}"


def _keys_at(path: JsonPath) -> tuple[str, ...]:
    """The keys that the mapping at *path* may have."""
    models: tuple[type[BaseModel], ...] = (Document,)
    for part in path:
        # Places in lists, and people's own keys such as patterns, are no fields.
        fields: dict[str | int, FieldInfo] = {key: field for model in models for key, field in _fields(model)}
        if part in fields:
            models = tuple(_models(fields[part].annotation))
    return tuple(dict.fromkeys(key for model in models for key, _ in _fields(model)))


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    return ((field.alias or name, field) for name, field in model.model_fields.items())


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The documents' models in a field's type."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _plain(loc: tuple[int | str, ...]) -> JsonPath:
    """A validation error's place without the type that a union puts into it."""
    path = list(loc)
    if path[:1] == ["source"] and len(path) > 1 and path[1] in SOURCE_TYPES:
        del path[1]
    if path[:1] == ["sinks"] and len(path) > 2 and path[2] in _SINK_TYPES:
        del path[2]
    return tuple(part for part in path if not (isinstance(part, str) and _KIND.fullmatch(part)))


def _line(reason: str, path: JsonPath, written: WrittenDocument) -> str:
    found = _found(written.value, path)
    # A misspelt key may be that of a secret, and what is no reference a part of one.
    hidden = any(part in _SECRETS for part in path) or reason.startswith(("unknown key", NOT_A_REFERENCE))
    got = "" if hidden or isinstance(found, (dict, list, _Missing)) else f" (got {found!r})"
    place = written.place(path)
    where = "" if place is None else f", line {place[0]}, column {place[1]}"
    return f"{reason} @ {path_text(path)}{got}{where}"


class _Missing:
    """Nothing stands there."""


def _found(raw: Any, path: JsonPath) -> Any:
    for part in path:
        try:
            raw = raw[part]
        except (KeyError, IndexError, TypeError):
            return _Missing()
    return raw


def _paths(raw: Any, path: JsonPath) -> Iterator[JsonPath]:
    yield path
    pairs = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for key, value in pairs:
        yield from _paths(value, (*path, key))
