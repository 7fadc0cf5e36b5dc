"""The YAML file as it is written: its values, and where in the file each stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from connectors.config.references import JsonPath
from historian.errors import ConfigError

__all__ = ["WrittenDocument", "parse_document", "parse_value", "read_document", "unusable"]

_NOT_AS_TAGGED = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
"""What PyYAML raises for !!int, !!bool and the like before a text that is none."""

_ENTRIES = 100_000
"""More are made of a short text by aliases alone."""
_DEPTH = 50
"""An anchor that holds itself has no end."""


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """A YAML document before anything in it is filled in or checked.

    Attributes:
        value: its mappings, lists and values.
        places: line and column of each key and each item of a list, by path; both count from 1.
    """

    value: Any
    places: Mapping[JsonPath, tuple[int, int]]

    def place(self, path: JsonPath) -> tuple[int, int] | None:
        """Where *path* stands, or what is missing there would; None: nowhere in particular."""
        while path not in self.places and path:
            path = path[:-1]
        return self.places.get(path)


def unusable(file: Path, problems: tuple[str, ...]) -> ConfigError:
    """The error of a file with *problems*."""
    return ConfigError("the configuration cannot be used", problems=problems, where=str(file))


def read_document(file: Path) -> WrittenDocument:
    """The document in *file*.

    Raises:
        ConfigError: it cannot be read, is no YAML, or no mapping.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        problems = (error.strerror or str(error),)
        raise ConfigError("the configuration cannot be read", problems=problems, where=str(file)) from None
    except UnicodeDecodeError as error:
        raise unusable(file, (f"not UTF-8: byte {error.start}",)) from None
    return parse_document(text, file)


def parse_document(text: str, file: Path) -> WrittenDocument:
    """The document in *text*; *file*: what errors call it. Raises as :func:`read_document`."""
    try:
        node, document = _parsed(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = "" if mark is None else f" @ line {mark.line + 1}, column {mark.column + 1}"
        raise unusable(file, (f"not YAML: {error.problem}{place}",)) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise unusable(file, (f"not YAML: {error}",)) from None
    except _NOT_AS_TAGGED:
        raise unusable(file, ("not YAML: a value is not what its tag says",)) from None
    if not isinstance(document, dict):
        raise unusable(file, ("expected a mapping with name and source @ $",))
    places: dict[JsonPath, tuple[int, int]] = {}
    for path, mark in _marks(node, ()):
        places[path] = mark.line + 1, mark.column + 1
        if len(path) > _DEPTH or len(places) > _ENTRIES:
            raise unusable(file, (f"expected at most {_ENTRIES} keys and items, {_DEPTH} deep, aliases unfolded @ $",))
    return WrittenDocument(document, places)


def parse_value(text: str) -> Any:
    """What *text* stands for behind a key of a document. Text that is no YAML stands for itself."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 a safe loader
    except (yaml.YAMLError, RecursionError, *_NOT_AS_TAGGED):
        return text


def _parsed(text: str) -> tuple[yaml.Node | None, Any]:
    loader = _Loader(text)  # refuses characters that no YAML has
    try:
        node = loader.get_single_node()
        return node, None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _marks(node: yaml.Node | None, path: JsonPath) -> Iterator[tuple[JsonPath, yaml.Mark]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), key.start_mark
            yield from _marks(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for at, value in enumerate(node.value):
            yield (*path, at), value.start_mark
            yield from _marks(value, (*path, at))


class _Loader(yaml.SafeLoader):
    """YAML without its surprises: a GTID is no date, 12:30 no number of seconds, and a key stands once."""

    yaml_implicit_resolvers = {  # noqa: RUF012 replaces PyYAML's own attribute
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":int"))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 PyYAML's
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key is no text", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value} stands twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))
