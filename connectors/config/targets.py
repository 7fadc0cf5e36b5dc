"""The document's part on what is made of a table in a lake, and of its columns and rows."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, WithJsonSchema, model_validator

from connectors.config import values
from connectors.config.evolution import EvolutionDocument, EvolutionText, evolution_settings
from connectors.config.model import Bytes, Model
from historian.secret import Secret

__all__ = [
    "NOT_ONE_EACH",
    "CompactDocument",
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
    return _inside(pattern)


def _own_target(pattern: str) -> str:
    return _inside(pattern) if pattern and not {"{", "}"}.intersection(pattern) else _target(pattern)


def _inside(name: str) -> str:
    """Names of directories below the lake's; a name's own ``/`` makes directories of its own."""
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError("expected a name inside of the sink's own directory, without parts that are empty, . or ..")
    return name


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


def properties(chosen: _Properties) -> tuple[tuple[str, str | None], ...]:
    """Delta's properties as the texts that they are."""
    return tuple(
        (name, str(value).lower() if isinstance(value, bool | int) else value) for name, value in chosen.items()
    )


class CompactDocument(Model):
    """When small files are joined."""

    files: int = Field(default=50, ge=2, description="From how many small files on they are joined.")
    target: Bytes = Field(default=128_000_000, description="Size of the joined files, such as `128 MB`.")


def _compaction_of(chosen: object) -> tuple[int, int] | None:
    """So many files, and of what size in bytes, of a document or its keys; None: small files stay."""
    if chosen is None:
        return None
    document = CompactDocument.model_validate(chosen)
    return document.files, document.target


class TargetsDocument(Model):
    """What is made of a table in a lake."""

    changelog: TargetName | None = Field(
        default="{database}_{table}_changes", description="Name of each table's changelog. `null`: none."
    )
    changelog_columns: list[Literal["position", "ordinal", "transaction"]] = Field(
        default=[],
        description="Further columns of changelogs that say where in the log a change stands: `_position`, `_ordinal`, `_transaction`.",
    )
    mirror: TargetName | None = Field(
        default="{database}_{table}",
        description="Name of each table's mirror. `null`: none. A table without a key has none.",
    )
    mirror_deletes: Literal["hard", "soft"] = Field(
        default="hard",
        description="`hard`: a deleted row goes. `soft`: the row stays, marked in `_deleted` and `_deleted_at`.",
    )
    history: TargetName | None = Field(
        default=None,
        description="Name of each table's history (SCD 2), such as `{database}_{table}_history`. `null`: none.",
    )
    history_names: Literal["plain", "auto_cdc"] = Field(
        default="plain", description="A history's times: `valid_from` and `valid_to`, or `__START_AT` and `__END_AT`."
    )
    key: list[Annotated[str, Field(min_length=1)]] = Field(
        default=[],
        description="Columns that tell rows apart in place of the primary key, by the names with which the table comes into the lake.",
    )
    keyless: Literal["changelog", "rows"] = Field(
        default="changelog",
        description="What a table without a key has: a changelog, or with `rows` also a mirror of whole rows.",
    )
    mirror_every: _Duration = Field(
        default=0,
        description="How long mirror and history may be deferred behind the changelog, such as `5 minutes`.",
    )
    cluster: bool = Field(default=False, description="Cluster mirrors by their key.")
    table_properties: _Properties = Field(
        default={}, description="Delta properties of new targets. `null` leaves out one that is set by default."
    )
    evolution: EvolutionText = Field(
        default=EvolutionDocument(),
        description="What becomes of targets when a table's schema changes: a preset, or actions by kind of edit.",
    )
    compact: CompactDocument | None = Field(
        default=CompactDocument(), description="When small files of targets are joined. `null`: never."
    )

    writer: Literal["native", "spark"] = Field(
        default="native",
        description="Who writes targets. `native`: our tasks write Parquet files and one commit adds them. `spark`: Spark's writer, which is slower.",
    )

    def plain_values(self, *, only_set: bool = True) -> tuple[tuple[str, Any], ...]:
        """The keys of a table's targets as plain values: all of them, or those that are set."""
        chosen = self.model_dump(exclude_unset=only_set, include=set(TargetsDocument.model_fields))
        plain: dict[str, Callable[[Any], object]] = {
            "table_properties": properties,
            "key": tuple,
            "changelog_columns": tuple,
            "evolution": evolution_settings,
            "compact": _compaction_of,
        }
        names = {"mirror_every": "mirror_every_us"}
        return tuple(
            (names.get(key, key), plain[key](value) if key in plain else value) for key, value in chosen.items()
        )


class HashDocument(Model):
    """A column's hash."""

    salt: SecretStr = Field(description="Stands before the value in what is hashed. Best a reference: `${env:NAME}`.")


class ExcludeDocument(Model):
    """Columns that are not wanted."""

    exclude: list[_Name] = Field(min_length=1, description="Columns that are left out.")


class IntoDocument(Model):
    """The one table that some tables are shards of."""

    name: str = Field(
        pattern=r"^[^.]+\..+$",
        description="`DATABASE.TABLE` of the one table, from which its targets have their names.",
    )
    shard_columns: dict[_Name, _Name] = Field(
        min_length=1,
        description="New columns, first in table and key, with `{database}` and `{table}` of the row's source.",
    )


class TableDocument(TargetsDocument):
    """What is made of some tables, and of their columns and rows."""

    changelog: _OwnName | None = Field(
        default="{database}_{table}_changes", description="Name of the changelog. `null`: none."
    )
    mirror: _OwnName | None = Field(default="{database}_{table}", description="Name of the mirror. `null`: none.")
    history: _OwnName | None = Field(default=None, description="Name of the history (SCD 2). `null`: none.")
    into: IntoDocument | None = Field(default=None, description="One table for all tables that match. `null`: none.")
    columns: list[_Name] | ExcludeDocument = Field(
        default=[],
        union_mode="left_to_right",
        description="The columns that are kept, or with `exclude` those that are left out.",
    )
    mask: dict[_Name, _Constant] = Field(
        default={}, description="Column to a constant that takes the place of its values."
    )
    hash: dict[_Name, HashDocument] = Field(default={}, description="Column to the salt of its SHA-256.")
    truncate: dict[_Name, _Characters] = Field(
        default={}, description="Column to the number of characters that stay of its texts."
    )
    compute: dict[_Name, _Expression] = Field(default={}, description="New column to its Spark SQL expression.")
    where: _Expression = Field(default="", description="Spark SQL expression that is true for the rows that are kept.")

    @model_validator(mode="after")
    def _one_thing(self) -> TableDocument:
        hashed = {name.lower() for name in self.hash}
        for key in ("mask", "truncate"):
            both = sorted(name for name in getattr(self, key) if name.lower() in hashed)
            if both:
                raise ValueError(f"expected one thing to be done to {', '.join(both)}, not hash and {key}")
        return self

    def chosen(self) -> tuple[tuple[str, Any], ...]:
        """The keys that are set, as the plain value."""
        values = dict(self.plain_values())
        for key in ("mask", "truncate", "compute"):
            if key in self.model_fields_set:
                values[key] = tuple(getattr(self, key).items())
        if self.hash:
            values["hash"] = tuple((name, Secret(chosen.salt.get_secret_value())) for name, chosen in self.hash.items())
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
