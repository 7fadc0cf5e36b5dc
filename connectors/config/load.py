"""A YAML file to a checked configuration."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from connectors.config.document import Document
from connectors.config.environment import fill
from connectors.config.problems import problems_of
from connectors.config.settings import PipelineConfig, ServerSource
from historian.errors import ConfigError

__all__ = ["load_config", "revision"]


def load_config(path: str | Path, *, environment: Mapping[str, str] | None = None) -> PipelineConfig:
    """The configuration in the YAML file *path*; relative paths in it are relative to that file.

    Args:
        path: of the file.
        environment: what ``${env:NAME}`` refers to; by default the process's own.

    Raises:
        ConfigError: with every problem, each as ``reason @ $.source.port (got 'x')``; no secret is in it.
    """
    file = Path(path).expanduser().resolve()
    raw = _read(file)
    filled = fill(raw, os.environ if environment is None else environment)
    try:
        document = Document.model_validate(filled.value, context={"base": file.parent})
    except ValidationError as error:
        raise _unusable(file, problems_of(error, raw, filled.problems)) from None
    if filled.problems:
        raise _unusable(file, problems_of(None, raw, filled.problems))
    return document.plain(file)


def revision(config: PipelineConfig) -> str:
    """A short hash over what decides which rows reach which targets: tables, start, schema, accepted cascades, sinks.

    How the server is reached, secrets, the store and the run's own settings are left out.
    """
    source = config.source
    meaning: list[object] = [
        config.name,
        type(source).__name__,
        source.flavor,
        source.tables.patterns,
        source.start,
        sorted(source.accept_cascades) if isinstance(source, ServerSource) else (),
        "" if source.schema is None else hashlib.sha256(source.schema.read_bytes()).hexdigest(),
        config.sinks,
        *config.types.rules,
    ]
    return hashlib.sha256(repr(meaning).encode()).hexdigest()[:16]


def _unusable(file: Path, problems: tuple[str, ...]) -> ConfigError:
    return ConfigError("the configuration cannot be used", problems=problems, where=str(file))


def _read(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        problems = (error.strerror or str(error),)
        raise ConfigError("the configuration cannot be read", problems=problems, where=str(file)) from None
    except UnicodeDecodeError as error:
        raise _unusable(file, (f"not UTF-8: byte {error.start}",)) from None
    try:
        document = yaml.load(text, _Loader)  # noqa: S506 a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = "" if mark is None else f" @ line {mark.line + 1}, column {mark.column + 1}"
        raise _unusable(file, (f"not YAML: {error.problem}{place}",)) from None
    except yaml.YAMLError as error:
        raise _unusable(file, (f"not YAML: {error}",)) from None
    if not isinstance(document, dict):
        raise _unusable(file, ("expected a mapping with name and source @ $",))
    return document


class _Loader(yaml.SafeLoader):
    """YAML without its surprises: a GTID is no date, 12:30 no number of seconds, and a key stands once."""

    yaml_implicit_resolvers = {  # noqa: RUF012 replaces PyYAML's own attribute
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":int"))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 PyYAML's
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value} stands twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))
