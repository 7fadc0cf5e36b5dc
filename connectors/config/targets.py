"""The document's part on what is made of a table in a lake, and of its columns and rows."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, WithJsonSchema, model_validator

from connectors.config import values
from connectors.config.compaction import CompactDocument, compaction_of
from connectors.config.evolution import EvolutionDocument, EvolutionText, said_of
from connectors.config.model import Model
from historian.secret import Secret

__all__ = [
    "NOT_ONE_EACH",
    "ExcludeDocument",
    "HashDocument",
    "IntoDocument",
    "TableDocument",
    "TargetName",
    "TargetsDocument",
    "properties",
]


def _target(pattern: str) -> str:
    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(pattern) if name is not None]
    except ValueError as error:
        raise ValueError(f"not a pattern: {error}") from None
    if "table" not in fields or set(fields) - {"database", "table"}:
        raise ValueError(NOT_ONE_EACH)
    return pattern


def _own_target(pattern: str) -> str:
    return pattern if pattern and not {"{", "}"}.intersection(pattern) else _target(pattern)


NOT_ONE_EACH = "expected a name with {table}, and {database} where tables of several are wanted"
TargetName = Annotated[str, AfterValidator(_target)]
_OwnName = Annotated[str, AfterValidator(_own_target)]
_Properties = dict[str, str | bool | int | None]


def _constant(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float, type(None))):
        raise ValueError("expected a text, a number or null")  # noqa: TRY004 pydantic reports ValueError
    return None if value is None else str(value)


_Name = Annotated[str, Field(min_length=1)]
_Expression = Annotated[str, Field(min_length=1)]
_Characters = Annotated[int, Field(ge=1)]
_Constant = Annotated[Any, BeforeValidator(_constant), WithJsonSchema({"type": ["string", "number", "null"]})]


def _duration_us(value: object) -> int:
    if value == 0 and not isinstance(value, bool):
        return 0
    if not isinstance(value, str):
        raise ValueError("expected a duration such as 5 minutes, or 0")  # noqa: TRY004 pydantic reports ValueError
    return round(values.parse_duration_s(value) * 1_000_000)


_Duration = Annotated[int, BeforeValidator(_duration_us), WithJsonSchema({"type": ["string", "integer"]})]


def properties(said: _Properties) -> tuple[tuple[str, str | None], ...]:
    """Delta's properties as the texts that they are."""
    return tuple((name, str(value).lower() if isinstance(value, bool | int) else value) for name, value in said.items())


class TargetsDocument(Model):
    """What is made of a table in a lake."""

    changelog: TargetName | None = Field(
        default="{database}_{table}_changes", description="a changelog's name; null: none"
    )
    changelog_columns: list[Literal["position", "ordinal", "transaction"]] = Field(
        default=[], description="where a change stands in the source's log: columns _position, _ordinal, _transaction"
    )
    mirror: TargetName | None = Field(default="{database}_{table}", description="name of a mirror; null: none")
    mirror_deletes: Literal["hard", "soft"] = Field(
        default="hard", description="a deleted row goes, or stays and is marked in _deleted and _deleted_at"
    )
    history: TargetName | None = Field(default=None, description="name of a history (SCD 2); null: none")
    history_names: Literal["plain", "auto_cdc"] = Field(
        default="plain", description="a history's times: valid_from and valid_to, or __START_AT and __END_AT"
    )
    key: list[Annotated[str, Field(min_length=1)]] = Field(
        default=[], description="columns that tell rows apart in place of the primary key, as they are called at first"
    )
    keyless: Literal["changelog", "rows"] = Field(
        default="changelog", description="a table without a key has a changelog alone, or a mirror by whole rows too"
    )
    mirror_every: _Duration = Field(
        default=0,
        description="how long mirror and history may leave rows to later plans that the changelog has; 0: not at all",
    )
    cluster: bool = Field(default=False, description="mirrors are clustered by their key")
    table_properties: _Properties = Field(
        default={}, description="Delta's, of tables as they are made; null leaves one out that is set by default"
    )
    evolution: EvolutionText = Field(
        default=EvolutionDocument(),
        description="what becomes of targets when the table's schema changes (docs/evolution.md)",
    )
    compact: CompactDocument | None = Field(
        default=CompactDocument(), description="small files of targets are joined between plans; null: never"
    )

    writer: Literal["native", "spark"] = Field(
        default="native", description="who writes a table's targets: files of ours and a commit, or Spark's own writer"
    )

    def plain_values(self) -> tuple[tuple[str, Any], ...]:
        """What was said of a table, as plain values."""
        said = self.model_dump(exclude_unset=True, include=set(TargetsDocument.model_fields))
        plain: dict[str, Callable[[Any], object]] = {
            "table_properties": properties,
            "key": tuple,
            "changelog_columns": tuple,
            "evolution": said_of,
            "compact": compaction_of,
        }
        names = {"mirror_every": "mirror_every_us"}
        return tuple((names.get(key, key), plain[key](value) if key in plain else value) for key, value in said.items())


class HashDocument(Model):
    """A column's hash."""

    salt: SecretStr = Field(description="stands before the value in what is hashed; best a reference: ${env:NAME}")


class ExcludeDocument(Model):
    """Columns that are not wanted."""

    exclude: list[_Name] = Field(min_length=1, description="columns that are not wanted")


class IntoDocument(Model):
    """The one table that some tables are shards of."""

    name: str = Field(pattern=r"^[^.]+\..+$", description="database.table, as if the source had such a table")
    shard_columns: dict[_Name, _Name] = Field(
        min_length=1, description="new columns, first in table and key, to {database} and {table} of the row's source"
    )


class TableDocument(TargetsDocument):
    """What is made of some tables, and of their columns and rows."""

    changelog: _OwnName | None = Field(
        default="{database}_{table}_changes", description="the changelog's name; null: none"
    )
    mirror: _OwnName | None = Field(default="{database}_{table}", description="name of the mirror; null: none")
    history: _OwnName | None = Field(default=None, description="name of the history (SCD 2); null: none")
    into: IntoDocument | None = Field(default=None, description="one table for all tables that match; null: none")
    columns: list[_Name] | ExcludeDocument = Field(
        default=[],
        union_mode="left_to_right",
        description="the columns that are wanted, or exclude: those that are not",
    )
    mask: dict[_Name, _Constant] = Field(default={}, description="column to a constant in the place of its values")
    hash: dict[_Name, HashDocument] = Field(default={}, description="column whose SHA-256 is wanted, to its salt")
    truncate: dict[_Name, _Characters] = Field(
        default={}, description="column to the characters that stay of its texts"
    )
    compute: dict[_Name, _Expression] = Field(default={}, description="new column to its Spark SQL expression")
    where: _Expression = Field(default="", description="Spark SQL expression that is true for the rows that are wanted")

    @model_validator(mode="after")
    def _one_thing(self) -> TableDocument:
        hashed = {name.lower() for name in self.hash}
        for key in ("mask", "truncate"):
            both = sorted(name for name in getattr(self, key) if name.lower() in hashed)
            if both:
                raise ValueError(f"expected one thing to be done to {', '.join(both)}, not hash and {key}")
        return self

    def said(self) -> tuple[tuple[str, Any], ...]:
        """What is said, as the plain value."""
        values = dict(self.plain_values())
        for key in ("mask", "truncate", "compute"):
            if key in self.model_fields_set:
                values[key] = tuple(getattr(self, key).items())
        if self.hash:
            values["hash"] = tuple((name, Secret(said.salt.get_secret_value())) for name, said in self.hash.items())
        if "into" in self.model_fields_set:
            into = self.into
            values["into"] = None if into is None else (into.name, tuple(into.shard_columns.items()))
        if self.where:
            values["where"] = self.where
        if isinstance(self.columns, ExcludeDocument):
            values["exclude"] = tuple(self.columns.exclude)
        elif self.columns:
            values["columns"] = tuple(self.columns)
        return tuple(values.items())
