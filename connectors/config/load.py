"""A YAML file to a checked configuration."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from connectors.config.document import Document
from connectors.config.problems import problems_of
from connectors.config.references import fill
from connectors.config.settings import PipelineConfig, ServerSource
from connectors.config.written import read_document, unusable

__all__ = ["load_config", "revision"]


def load_config(path: str | Path, *, environment: Mapping[str, str] | None = None) -> PipelineConfig:
    """The configuration in the YAML file *path*; relative paths in it are relative to that file.

    Args:
        path: of the file.
        environment: what ``${env:NAME}`` refers to (:mod:`connectors.config.references`); by default the process's own.

    Raises:
        ConfigError: with every problem, each as ``reason @ $.source.port (got 'x'), line 5, column 3``; no secret is in it.
    """
    file = Path(path).expanduser().resolve()
    raw = read_document(file)
    filled = fill(raw.value, os.environ if environment is None else environment, file.parent)
    try:
        document = Document.model_validate(filled.value, context={"base": file.parent})
    except ValidationError as error:
        raise unusable(file, problems_of(error, raw, filled.problems)) from None
    if filled.problems:
        raise unusable(file, problems_of(None, raw, filled.problems))
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
