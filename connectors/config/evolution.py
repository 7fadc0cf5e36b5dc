"""The document's part on evolution: what becomes of a table's targets when its schema changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model

from connectors.config.model import Model
from historian.plans.evolution import PRESETS, RULES, EvolutionSettings

__all__ = ["EvolutionText", "evolution_settings"]

_LITERAL = cast("Any", Literal)

_FIELDS: dict[str, Any] = {
    rule.edit: (_LITERAL[rule.actions] | None, Field(default=None, description=rule.what)) for rule in RULES.values()
}

if TYPE_CHECKING:

    class EvolutionDocument(Model):
        """A preset, and actions for some kinds of edits."""

else:
    EvolutionDocument = create_model(
        "EvolutionDocument",
        __base__=Model,
        preset=(_LITERAL[PRESETS], Field(default="evolve", description="actions for the kinds that are not named")),
        **_FIELDS,
    )


def _preset(value: object) -> object:
    return {"preset": value} if isinstance(value, str) else value


def evolution_settings(values: Mapping[str, str | None]) -> EvolutionSettings:
    """The document's values, as :mod:`historian.plans.evolution` takes them."""
    return tuple((key, action) for key, action in values.items() if action is not None)


def _schema() -> dict[str, Any]:
    choices = {rule.edit: {"enum": list(rule.actions), "description": rule.what} for rule in RULES.values()}
    whole = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"preset": {"enum": list(PRESETS)}, **choices},
    }
    return {"anyOf": [{"enum": list(PRESETS)}, whole]}


EvolutionText = Annotated[
    EvolutionDocument,
    BeforeValidator(_preset),
    WithJsonSchema(_schema()),
]
"""A preset's name, or an object."""
