"""The yardstick of changelogs: what breaks a rule is found, in a lake's changelog of several keys too."""

from __future__ import annotations

import pyarrow as pa
import pytest

from historian.changelog.operations import Op
from historian.changelog.validation import Profile
from models.changelogs import changelog_of, random_changelog
from models.changes import DATA, KEY
from replicas.replica_validation import Form, assert_changelog_is_valid

A, R, C, D = Op.APPEND, Op.RETRACT, Op.CORRECT_FROM, Op.CORRECT_TO
FORMS = {1: Form(key=KEY, columns=DATA), 2: Form(key=("v",), columns=DATA), 3: Form(key=(), columns=DATA[:3])}
ROWS, _ = random_changelog(7, 80)


def _versions(rows: pa.Table, *numbers: int) -> pa.Table:
    at = rows.schema.get_field_index("schema_version")
    return rows.set_column(at, "schema_version", pa.array(numbers, pa.int64()))


def test_a_sound_changelog_passes_whatever_its_keys_were() -> None:
    assert_changelog_is_valid("here", ROWS, FORMS)
    assert_changelog_is_valid("here", ROWS.slice(0, 0), FORMS)
    # The key (k, l) would take the last two rows for one that is added again, and one that is not as it was.
    rows = changelog_of([(A, "a", 1, b"x", None), (A, "a", 1, b"y", None), (R, "a", 1, b"x", 2.5)], Profile.BINLOG)
    assert_changelog_is_valid("here", _versions(rows, 1, 2, 3), FORMS)


@pytest.mark.parametrize(
    "rows, found",
    [
        ([(A, "a", 1, b"x", None), (R, "a", 1, b"y", None)], "image at offset 1"),
        ([(A, "a", 1, b"x", None), (A, "a", 1, b"y", None)], "presence at offset 1"),
        ([(A, "a", 1, b"x", None), (C, "a", 1, b"x", None)], "pair at offset 1"),
        ([(A, "a", 1, b"x", None), (R, "b", 1, b"x", None)], "did not come before"),
    ],
)
def test_what_breaks_a_rule_is_found(rows: list[tuple[object, ...]], found: str) -> None:
    with pytest.raises(Exception, match=found):
        assert_changelog_is_valid("here", changelog_of([*rows], Profile.BINLOG), FORMS)
