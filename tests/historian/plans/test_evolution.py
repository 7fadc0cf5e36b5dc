"""The table of edits, targets and words, and the page that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from historian.plans.evolution import EVOLVE, PRESETS, RULES, STOPS, TARGETS, Rule, action_for, problems

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "evolution.md"


def preset_rows() -> list[str]:
    """The presets as the page has them."""
    return [
        f"| `{rule.edit}` | {rule.what} | {' | '.join(f'`{word}`' for word in rule.presets)} |"
        for rule in RULES.values()
    ]


def meaning_rows(rule: Rule) -> list[str]:
    """What the words of a rule mean, as the page has it."""
    return [
        f"| `{rule.edit}` | `{word}` | {' | '.join([texts[0], *(_shown(text, texts[0]) for text in texts[1:])])} |"
        for word, texts in rule.meanings.items()
        if word not in STOPS
    ]


def _shown(text: str, first: str) -> str:
    return "the same" if text == first else text


def test_the_page_has_the_table_and_nothing_else() -> None:
    shown = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    meanings = [line for rule in RULES.values() for line in meaning_rows(rule)]

    assert [*preset_rows(), *meanings] == [line for line in shown if line.split("`")[1] in RULES]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_presets_and_kinds_of_targets_each_have_a_word_of_the_rule(rule: Rule) -> None:
    assert len(PRESETS) == len(rule.presets)
    assert set(rule.presets) <= set(rule.actions)
    assert {len(TARGETS)} == {len(texts) for texts in rule.meanings.values()}


def test_strict_never_takes_anything_away_and_lenient_never_ends_a_run() -> None:
    strict, _, lenient = zip(*(rule.presets for rule in RULES.values()), strict=True)

    assert not {"keep", "ignore", "new_column", "quarantine"} & set(strict)
    assert "fail" not in lenient


def test_a_word_for_a_kind_of_edit_wins_over_the_presets() -> None:
    assert "apply" == action_for(EVOLVE, "change_key")
    assert "fail" == action_for((("preset", "strict"),), "change_key")
    assert "keep" == action_for((("preset", "lenient"),), "truncate")
    assert "ignore" == action_for((("preset", "lenient"), ("truncate", "ignore")), "truncate")


@pytest.mark.parametrize(
    "said, expected",
    [
        ((("preset", "lenient"), ("truncate", "ignore")), []),
        ((("change_key", "keep"),), ["expected apply or quarantine or fail"]),
        ((("change_type", "apply"),), ["expected new_column or repair or quarantine or fail"]),
        ((("attributes", "fail"),), ["expected apply"]),
        ((("preset", "lax"), ("drop", "keep")), ["expected strict or evolve or lenient", "expected one of"]),
    ],
)
def test_a_word_that_an_edit_does_not_have_is_a_problem(said: tuple[tuple[str, str], ...], expected: list[str]) -> None:
    found = problems(said)

    assert len(expected) == len(found)
    for (_, text), part in zip(found, expected, strict=True):
        assert part in text
