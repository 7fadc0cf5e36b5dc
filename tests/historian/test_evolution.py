"""The table of edits, targets and words, and the page that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from historian.evolution import EVOLVE, PRESETS, RULES, STOPS, TARGETS, Rule, problems, word_for

PAGE = Path(__file__).parents[2] / "docs" / "evolution.md"


def preset_rows() -> list[str]:
    """The presets as the page has them."""

    def said(words: tuple[str, ...]) -> str:
        if len(set(words)) == 1:
            return f"`{words[0]}`"
        return ", ".join(f"{target} `{word}`" for target, word in zip(TARGETS, words, strict=True))

    return [
        f"| `{rule.edit}` | {rule.what} | {' | '.join(said(words) for words in rule.presets)} |"
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
    return "the same" if text == first else text or "—"


def test_the_page_has_the_table_and_nothing_else() -> None:
    shown = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    meanings = [line for rule in RULES.values() for line in meaning_rows(rule)]

    assert [*preset_rows(), *meanings] == [line for line in shown if line.split("`")[1] in RULES]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_presets_say_what_each_target_can_do(rule: Rule) -> None:
    assert len(PRESETS) == len(rule.presets)
    for words in rule.presets:
        for target, word in zip(TARGETS, words, strict=True):
            assert word in rule.words((target,))


def test_strict_never_takes_anything_away_and_lenient_never_ends_a_run() -> None:
    strict, _, lenient = zip(*(rule.presets for rule in RULES.values()), strict=True)

    assert not {"keep", "ignore", "new_column", "quarantine"} & {word for words in strict for word in words}
    assert "fail" not in {word for words in lenient for word in words}


def test_one_target_that_cannot_go_on_stops_the_table() -> None:
    assert "apply" == word_for(EVOLVE, "change_key", ["changelog"])
    assert "quarantine" == word_for(EVOLVE, "change_key", ["changelog", "mirror"])
    assert "fail" == word_for((("preset", "strict"),), "change_key", ["changelog", "history"])
    assert "keep" == word_for((("preset", "lenient"),), "truncate", TARGETS)
    assert "ignore" == word_for((("preset", "lenient"), ("truncate", "ignore")), "truncate", TARGETS)


@pytest.mark.parametrize(
    "said, targets, expected",
    [
        ((("preset", "lenient"), ("truncate", "ignore")), TARGETS, []),
        ((("change_key", "apply"),), ["changelog"], []),
        ((("change_key", "apply"),), ["changelog", "mirror"], ["for a changelog and a mirror"]),
        ((("change_type", "apply"),), TARGETS, ["expected new_column or quarantine or fail"]),
        ((("attributes", "fail"),), TARGETS, ["expected apply"]),
        ((("preset", "lax"), ("drop", "keep")), TARGETS, ["expected strict or evolve or lenient", "expected one of"]),
    ],
)
def test_a_word_that_an_edit_does_not_have_is_a_problem(
    said: tuple[tuple[str, str], ...], targets: list[str], expected: list[str]
) -> None:
    found = problems(said, targets)

    assert len(expected) == len(found)
    for (_, text), part in zip(found, expected, strict=True):
        assert part in text
