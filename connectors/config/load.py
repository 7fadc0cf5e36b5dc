"""A YAML file to a checked configuration."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from connectors.config.document import Document
from connectors.config.problems import problems_of
from connectors.config.references import fill, has_references
from connectors.config.settings import KafkaSource, PipelineConfig, ServerSource
from connectors.config.written import WrittenDocument, parse_document, read_document, unusable
from connectors.readers.kafka.messages.modes import DEFAULT_MODES

__all__ = ["can_change", "load_config", "parse_config", "reread", "revision"]


def load_config(path: str | Path, *, environment: Mapping[str, str] | None = None) -> PipelineConfig:
    """The configuration in the YAML file *path*; relative paths in it are relative to that file.

    Args:
        path: of the file.
        environment: what ``${env:NAME}`` refers to (:mod:`connectors.config.references`); by default the process's own.

    Raises:
        ConfigError: with every problem, each as ``reason @ $.source.port (got 'x'), line 5, column 3``; no secret is in it.
    """
    file = Path(path).expanduser().resolve()
    return _checked(read_document(file), file, environment)


def parse_config(
    document: str | Mapping[str, object], *, file: str | Path, environment: Mapping[str, str] | None = None
) -> PipelineConfig:
    """As :func:`load_config`, of a configuration that stands in no file: YAML, or the mapping that it would be.

    Args:
        document: the configuration; references in it are filled in as in a file.
        file: what errors call it; relative paths are relative to its directory.
        environment: see :func:`load_config`.
    """
    place = Path(file).expanduser().resolve()
    if isinstance(document, str):
        return _checked(parse_document(document, place), place, environment)
    return _checked(WrittenDocument(dict(document), {}), place, environment)


def _checked(raw: WrittenDocument, file: Path, environment: Mapping[str, str] | None) -> PipelineConfig:
    filled = fill(raw.value, os.environ if environment is None else environment, file.parent)
    try:
        document = Document.model_validate(filled.value, context={"base": file.parent})
    except ValidationError as error:
        raise unusable(file, problems_of(error, raw, filled.problems)) from None
    if filled.problems:
        raise unusable(file, problems_of(None, raw, filled.problems))
    return replace(document.plain(file), document=raw.value)


def reread(config: PipelineConfig) -> PipelineConfig:
    """*config* with what its references in ``source`` and ``history`` that let us in stand for now: users, passwords, paths of certificates.

    *config* itself where they stand for the same, or one cannot be filled in. Whatever else stands in the file by now is not looked at.
    """
    file, source = config.path, config.source
    if config.document is None or not isinstance(source, ServerSource | KafkaSource):
        return config
    filled = fill(config.document, os.environ, file.parent)
    if filled.problems:
        return config
    try:
        found = Document.model_validate(filled.value, context={"base": file.parent}).plain(file)
    except ValidationError:
        return config
    now = found.source
    if isinstance(source, ServerSource) and isinstance(now, ServerSource):
        source = replace(source, user=now.user, password=now.password, tls=now.tls, rows_from=now.rows_from)
    elif isinstance(source, KafkaSource) and isinstance(now, KafkaSource):
        source = replace(source, client=now.client, registry=now.registry)
    else:
        return config
    fresh = replace(config, source=source, history=found.history)
    return config if fresh == config else fresh


def can_change(config: PipelineConfig) -> bool:
    """Whether what lets us in to server or store can be another one without a change of the file: it has references, or names files."""
    source = config.source
    if isinstance(source, ServerSource):
        each = [source.tls, *([] if source.rows_from is None else [source.rows_from.tls])]
        has_files = any(tls.ca or tls.cert or tls.key for tls in each)
    elif isinstance(source, KafkaSource):
        has_files = any(name.endswith((".location", ".keytab")) for name in source.client) or bool(
            source.registry and source.registry.ca
        )
    else:
        return False
    document = config.document if isinstance(config.document, dict) else {}
    refers = has_references(document.get("source")) or has_references(document.get("history"))
    return refers or has_files


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
        *(
            []
            if not isinstance(source, KafkaSource)
            else [
                source.topics,
                source.format,
                *([source.time_zone] if source.time_zone != "UTC" else []),
                *([source.modes] if source.modes != DEFAULT_MODES else []),
                *([] if source.normalize is None else [("normalize", source.normalize.patterns)]),
                *([] if source.tombstones == "delete" else [("tombstones", source.tombstones)]),
            ]
        ),
        *config.types.rules,
    ]
    return hashlib.sha256(repr(meaning).encode()).hexdigest()[:16]
