"""Errors of commands where nobody's terminal breaks their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.cli.terminal.outcome import tell_error
from historian.errors import ConfigError, SourceError

if TYPE_CHECKING:
    import pytest

_LONG = " ".join(["word"] * 40)


def test_prose_is_broken_between_words_and_what_can_be_copied_stays_whole(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"`historian heal CONFIG --table {'t' * 60} --repair --and {'more' * 10}`"
    statement = f"ALTER TABLE t COMMENT '{_LONG}'"
    tell_error(
        SourceError(f"it failed {_LONG}", where=f"/a/{_LONG}", found=statement, next_step=f"look at it, then {command}")
    )

    lines = capsys.readouterr().err.splitlines()
    assert f"  where     /a/{_LONG}" in lines
    assert f"  found     {statement}" in lines
    assert f"            {command}" in lines
    assert [len(line) > 120 for line in lines] == [False, False, True, True, False, True]
    assert lines[0].startswith("error: it failed word")
    assert " ".join(lines[0].split() + lines[1].split()) == f"error: it failed {_LONG}"


def test_each_problem_of_a_configuration_is_broken_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    tell_error(ConfigError("it cannot be used", problems=(f"first {_LONG}", "second")))

    lines = capsys.readouterr().err.splitlines()
    assert [line[:12] for line in lines] == ["error: it ca", "  - first wo", "    word wor", "  - second"]
    assert max(map(len, lines)) <= 120
