"""The document's part on types: how values are carried, of all columns and of some."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from connectors.config.model import Model
from historian.plans.type_options import TypeOptions, TypeRule

__all__ = ["TypeOptionsDocument", "TypesDocument"]


def _no_null(value: object) -> object:
    """YAML's own null says nothing of what is to become NULL."""
    if value is None:
        raise ValueError("expected a policy such as null_and_count, not null")
    return value


def _column_pattern(text: str) -> str:
    TypeRule(pattern=text, values=())
    return text


_Policy = Annotated[Literal["fail", "null_and_count", "dead_letter"] | None, BeforeValidator(_no_null)]


def _policy(what: str) -> Any:
    return Field(
        default=None,
        description=f"{what}. `fail` (default): the table stops. `null_and_count`: NULL, counted. `dead_letter`: NULL, and a row in "
        "`historian_dead_letters`.",
    )


class TypeOptionsDocument(Model):
    """How values of some columns are carried."""

    bigint_unsigned: Literal["decimal", "int64", "text"] | None = Field(
        default=None,
        description="BIGINT UNSIGNED: `decimal` of 20 digits by default. `int64_overflow` says what becomes of a number that int64 cannot hold.",
    )
    tinyint1: Literal["int8", "boolean"] | None = Field(
        default=None,
        description="TINYINT(1): `int8` by default. `invalid_boolean` says what becomes of numbers other than 0 and 1.",
    )
    bit1: Literal["boolean", "binary"] | None = Field(default=None, description="BIT(1): `boolean` by default.")
    time: Literal["microseconds", "text"] | None = Field(default=None, description="TIME: `microseconds` by default.")
    zero_dates: Annotated[
        Literal["null_and_count", "text", "dead_letter", "fail"] | None, BeforeValidator(_no_null)
    ] = Field(
        default=None,
        description="Dates that the calendar does not have. `null_and_count` (default): NULL, counted. `text`: all values of the column are "
        "text. `dead_letter`: NULL, and a row in `historian_dead_letters`. `fail`: the table stops.",
    )
    invalid_text: _Policy = _policy("Bytes that are no text of their column's character set")
    int64_overflow: _Policy = _policy("Numbers above 2^63 - 1 where `bigint_unsigned` is `int64`")
    invalid_boolean: _Policy = _policy("Numbers other than 0 and 1 where `tinyint1` is `boolean`")
    invalid_variant: _Policy = _policy("JSON documents that VARIANT does not hold, where `json` is `variant`")
    invalid_json: _Policy = _policy("JSON documents that the log holds in an unknown form")
    invalid_member: _Policy = _policy("Numbers of ENUM and SET that stand for no label")
    invalid_compressed: _Policy = _policy("Values of COMPRESSED columns that cannot be unpacked")
    json_: Literal["text", "variant"] | None = Field(
        default=None,
        alias="json",
        description="MySQL's JSON: `text` by default. `variant`: VARIANT in Delta, with its own numbers and order of keys. Parquet, console "
        "and `tail` have the text.",
    )

    def rule(self, pattern: str) -> TypeRule:
        """The choices that are made, for the columns of a pattern."""
        made = self.model_dump(by_alias=True, exclude={"columns"}, exclude_none=True)
        return TypeRule(pattern=pattern, values=tuple(sorted(made.items())))


class TypesDocument(TypeOptionsDocument):
    """How values are carried where there is a choice, of all columns and of some."""

    columns: dict[Annotated[str, AfterValidator(_column_pattern)], TypeOptionsDocument] = Field(
        default={}, description="Choices for some columns, by a pattern on `DATABASE.TABLE` or `DATABASE.TABLE.COLUMN`."
    )

    def plain(self) -> TypeOptions:
        """The plain value."""
        rules = [self.rule(""), *(type_options.rule(pattern) for pattern, type_options in self.columns.items())]
        return TypeOptions(tuple(rule for rule in rules if rule.values))
