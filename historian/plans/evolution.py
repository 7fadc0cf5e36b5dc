"""What becomes of a table's targets when its schema changes: one table of kinds of edits, kinds of targets and actions.

docs/explanation/evolution.md shows the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

__all__ = [
    "EVOLVE",
    "PRESETS",
    "RULES",
    "STOPS",
    "TARGETS",
    "Action",
    "EvolutionSettings",
    "Rule",
    "action_for",
    "problems",
]

Action = Literal["apply", "keep", "new_column", "ignore", "repair", "quarantine", "fail"]
"""What a target does about an edit."""

TARGETS = ("changelog", "mirror", "history")
"""The kinds of targets, in the order of :attr:`Rule.meanings`."""

PRESETS = ("strict", "evolve", "lenient")
"""Words for all kinds of edits at once, in the order of :attr:`Rule.presets`."""

EvolutionSettings = tuple[tuple[str, str], ...]
"""What a configuration says of a table: pairs of ``preset`` or a kind of edit, and an action."""

EVOLVE: EvolutionSettings = (("preset", "evolve"),)
"""What holds where nothing is configured."""

STOPS = ("fail", "quarantine")
"""Words that end the writing of a table."""

_STOPS: Mapping[str, tuple[str, ...]] = {
    "quarantine": ("the table is not written from there on, and `status` says why; others go on",) * 3,
    "fail": ("the run ends before it writes anything of the batch; another action lets the next run go on",) * 3,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The actions that one kind of edit may have.

    Attributes:
        edit: its name.
        what: which edits these are.
        meanings: of each action, for each of :data:`TARGETS`.
        presets: the action that each of :data:`PRESETS` has.
    """

    edit: str
    what: str
    meanings: Mapping[str, tuple[str, ...]]
    presets: tuple[str, ...]

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions that the edit may have."""
        return tuple(self.meanings)


def _rule(edit: str, what: str, presets: str, *, strict: bool = True, **meanings: str | tuple[str, str, str]) -> Rule:
    """*presets*: three actions; *strict*: whether the edit can stop a table."""
    texts_of = {action: (text,) * 3 if isinstance(text, str) else text for action, text in meanings.items()}
    meanings_of = {**texts_of, **(_STOPS if strict else {})}
    return Rule(edit=edit, what=what, meanings=meanings_of, presets=tuple(presets.split()))


_ASIDE = (
    "the column is called `name__h<id>` from then on and keeps its values. A new column of the name has the values of rows "
    "written since, and NULL in the others"
)
_REPAIRED = (
    "the table stops, is compared with the rows that the source holds, and goes on with what differs; where the source cannot be asked, "
    "as `quarantine`"
)
_DROPPED = "the directory stays as an archive; a table that is created again under the name gets directories of its own"

RULES: Mapping[str, Rule] = {
    rule.edit: rule
    for rule in (
        _rule(
            "add_column",
            "a column is added, and the log tells what rows from before read in it",
            "apply apply apply",
            apply=(
                "the column is added; rows keep the version that they were written under",
                "the column is added in its place; rows from before read its default",
                "the column is added; open rows read its default",
            ),
            ignore="the column is left out, and its values with it, for good",
        ),
        _rule(
            "drop_column",
            "a column is dropped",
            "fail apply keep",
            apply=(
                "the column stays, NULL in rows from then on",
                "the column goes",
                "the column stays, NULL in rows that begin from then on",
            ),
            keep=(
                "as `apply`",
                "the column stays behind the others; a row that is written again reads NULL in it",
                "as `apply`",
            ),
        ),
        _rule(
            "rename_column",
            "a column gets another name, or the same in other letter case",
            "fail apply apply",
            apply="the column has the new name; no file is written",
            ignore="the column keeps the name that it has",
        ),
        _rule(
            "move_column",
            "columns stand in another order",
            "apply apply apply",
            apply="the columns stand in that order",
            ignore="the columns stay where they are, until a move is followed",
        ),
        _rule(
            "widen_type",
            "a column gets a type that holds every value as it is, and that Delta widens to",
            "apply apply apply",
            apply="the column has the wider type; no file is written",
            new_column=_ASIDE,
        ),
        _rule(
            "change_type",
            "a column gets any other type: the server rewrites values, or Delta does not widen to it",
            "fail repair new_column",
            new_column=_ASIDE,
            repair=_REPAIRED,
        ),
        _rule(
            "computed_values",
            "the server computes values that the log does not tell: an added AUTO_INCREMENT or default of an expression, "
            "or another expression of a generated column",
            "fail repair new_column",
            repair=_REPAIRED,
            new_column=f"an added column has the values of rows written since, and NULL in the others. Of a column that was there: {_ASIDE}",
        ),
        _rule(
            "change_key",
            "the primary key changes, comes or goes",
            "fail apply apply",
            apply=(
                "rows go on, each under the key of its version",
                "rows stay, and are found by the new key from then on",
                "rows stay open, and are found by the new key from then on",
            ),
        ),
        _rule(
            "rename_table",
            "the table gets another name that is captured",
            "fail apply apply",
            apply="the directory stays and goes on; a catalog's table is renamed",
        ),
        _rule(
            "truncate",
            "TRUNCATE",
            "apply apply keep",
            apply=("a -R for each row that was there", "all rows go; soft deletes: are marked", "all open rows end"),
            keep=(
                "as `apply`",
                "rows stay until their key comes again; soft deletes: are marked",
                "as `apply`",
            ),
            ignore=("nothing", "rows stay until their key comes again", "rows stay open until their key comes again"),
        ),
        _rule(
            "drop_table",
            "DROP TABLE, also with its database",
            "fail apply keep",
            apply=(
                "a -R for each row that was there; a table that is created again under the name goes on here",
                "all rows go; soft deletes: are marked; a table that is created again under the name goes on here",
                "all open rows end; a table that is created again under the name goes on here",
            ),
            keep=(
                f"a -R for each row that was there; {_DROPPED}",
                f"rows stay; soft deletes: are marked; {_DROPPED}",
                f"all open rows end; {_DROPPED}",
            ),
            ignore=(_DROPPED, f"rows stay; {_DROPPED}", f"rows stay open; {_DROPPED}"),
        ),
        _rule(
            "attributes",
            "NOT NULL comes or goes, a default of rows to come, a comment, an index, a type that is the same in Delta",
            "apply apply apply",
            strict=False,
            apply="nothing: columns of targets are all nullable, and text has no length",
        ),
    )
}
"""Kind of edit to its rule."""


def action_for(settings: EvolutionSettings, edit: str) -> Action:
    """What a table's targets do about an edit of kind *edit*.

    Args:
        settings: what :func:`problems` finds nothing wrong with.
    """
    chosen = dict(settings)
    preset = RULES[edit].presets[PRESETS.index(chosen.get("preset", "evolve"))]
    return cast("Action", chosen.get(edit) or preset)


def problems(settings: EvolutionSettings) -> list[tuple[str, str]]:
    """What of *settings* is no rule: the key, and what was expected there."""
    found = []
    for key, action in settings:
        if key != "preset" and key not in RULES:
            found.append((key, f"expected one of preset, {', '.join(RULES)}"))
            continue
        allowed = PRESETS if key == "preset" else RULES[key].actions
        if action not in allowed:
            found.append((key, f"expected {' or '.join(allowed)}"))
    return found
