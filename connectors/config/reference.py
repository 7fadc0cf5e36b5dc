"""The reference page of the configuration, written from the models: ``make reference`` writes docs/reference/configuration.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from connectors.config.document import Document

__all__ = ["configuration_page"]

_HEAD = """\
# Configuration keys

One YAML file configures one connector:

```yaml
name: shop
source: {type: mysql, host: db.internal, user: cdc, password: "${env:SHOP_DB_PASSWORD}"}
sinks:
  - {type: delta, path: lake}
```

This page lists every key. It is written from the code by `make reference`. [Configure a connector](../how-to/configure.md)
explains references to secrets, sizes, durations and patterns.
"""


@dataclass(frozen=True)
class _Section:
    """One model of the document: its heading and the definition that holds its keys."""

    path: str
    definition: str


_SECTIONS = (
    _Section("Top level", ""),
    _Section("`source` with `type: mysql` or `type: mariadb`", "ServerDocument"),
    _Section("`source.tls`", "TlsDocument"),
    _Section("`source.backfill`", "BackfillDocument"),
    _Section("`source.backfill.pause_above`", "PauseAboveDocument"),
    _Section("`source.backfill.server`", "RowServerDocument"),
    _Section("`source` with `type: binlog-files`", "BinlogFilesDocument"),
    _Section("`source` with `type: kafka`", "KafkaDocument"),
    _Section("`source.registry`", "RegistryDocument"),
    _Section("`source.debezium`", "DebeziumDocument"),
    _Section("`history`", "HistoryDocument"),
    _Section("`sinks[]` with `type: delta`", "DeltaDocument"),
    _Section("`sinks[].tables.PATTERN`", "TableDocument"),
    _Section("`sinks[].tables.PATTERN.columns`", "ExcludeDocument"),
    _Section("`sinks[].tables.PATTERN.hash.COLUMN`", "HashDocument"),
    _Section("`sinks[].tables.PATTERN.into`", "IntoDocument"),
    _Section("`sinks[].compact`", "CompactDocument"),
    _Section("`sinks[]` with `type: parquet`", "ParquetDocument"),
    _Section("`sinks[]` with `type: console`", "ConsoleDocument"),
    _Section("`types`", "TypesDocument"),
    _Section("`types.columns.PATTERN`", "TypeOptionsDocument"),
    _Section("`run`", "RunDocument"),
    _Section("`run.http`", "HttpDocument"),
    _Section("`run.spark`", "SparkDocument"),
    _Section("`run.openlineage`", "OpenLineageDocument"),
    _Section("`notify`", "NotifyDocument"),
    _Section("`notify.to[]`", "ChannelDocument"),
)
_ALSO = {"TableDocument": "DeltaDocument", "TypeOptionsDocument": "TypesDocument"}


def configuration_page() -> str:
    """The page as Markdown, the same at every call. Raises :class:`KeyError` where a model has no section."""
    schema = Document.model_json_schema(by_alias=True)
    definitions: dict[str, Any] = {"": schema, **schema["$defs"]}
    missing = set(definitions) - {section.definition for section in _SECTIONS}
    if missing:
        raise KeyError(f"models without a section: {sorted(missing)}")
    return "\n".join([_HEAD, *(line for section in _SECTIONS for line in _section(section, definitions))])


def _section(section: _Section, definitions: Mapping[str, Any]) -> Iterator[str]:
    model = definitions[section.definition]
    yield f"## {section.path}\n"
    yield f"{model['description'].splitlines()[0]}\n"
    shared = _ALSO.get(section.definition)
    known = set(definitions[shared]["properties"]) if shared else set()
    own = {key: value for key, value in model["properties"].items() if key not in known}
    if shared and len(own) < len(model["properties"]):
        titles = {each.definition: each.path for each in _SECTIONS}
        names = ", ".join(f"`{key}`" for key in model["properties"] if key in known)
        yield f"The keys of {titles[shared]} that can be given here too: {names}.\n"
    if own:
        yield "| key | value | default | meaning |"
        yield "|---|---|---|---|"
        for key, value in own.items():
            required = key in model.get("required", ())
            cells = (f"`{key}`", _kind(value), _default(value, required=required), value.get("description", ""))
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        yield ""


def _kind(value: Mapping[str, Any]) -> str:
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{word}`" for word in value["enum"])
    for either in ("anyOf", "oneOf"):
        if either in value:
            return " or ".join(dict.fromkeys(_kind(each) for each in value[either]))
    if "$ref" in value:
        return "mapping"
    kind = value.get("type", "")
    if isinstance(kind, list):
        return " or ".join(_TYPES[each] for each in kind)
    if kind == "array":
        return f"list of {_kind(value['items'])}" if "items" in value else "list"
    return _TYPES[kind]


_TYPES = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "boolean": "`true`, `false`",
    "object": "mapping",
    "null": "`null`",
    "array": "list",
}


_MB = 1_000_000


def _default(value: Mapping[str, Any], *, required: bool) -> str:
    if required:
        return "required"
    default = value.get("default")
    if default in (None, "", [], {}) or isinstance(default, dict):
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, list):
        return "`[" + ", ".join(f'"{each}"' for each in default) + "]`"
    if isinstance(default, float):
        return f"`{default:g} seconds`"
    if isinstance(default, int) and default >= _MB:
        return f"`{default // _MB} MB`"
    return f"`{default}`"


if __name__ == "__main__":
    sys.stdout.write(configuration_page())
