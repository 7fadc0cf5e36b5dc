"""Why values cannot be represented, and what becomes of them: for each reason one of three policies.

In a plan a policy is a word of :attr:`historian.schema.snapshots.ColumnType.options`, so that a plan that is run again does the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from historian.schema.snapshots import ColumnType

__all__ = [
    "DEAD_LETTER",
    "FAIL",
    "NULL_AND_COUNT",
    "POLICIES",
    "REASONS",
    "holds_all",
    "is_possible",
    "may_be_dead_letter",
    "policy_of",
]

FAIL, NULL_AND_COUNT, DEAD_LETTER = "fail", "null_and_count", "dead_letter"
"""The table stops; the value becomes NULL and is counted; that, and it is told of with the log's bytes."""

REASONS: Mapping[str, str] = {
    "zero_dates": "a date that the calendar does not have",
    "invalid_text": "bytes that are no text",
    "int64_overflow": "a number above 2^63 - 1",
    "invalid_boolean": "a number that is no boolean",
    "invalid_variant": "a document that VARIANT does not hold",
    "invalid_json": "a document in an unknown form",
    "invalid_member": "an ENUM or SET number without a member",
    "invalid_compressed": "compressed data that cannot be unpacked",
}
"""Choices of policies, and why values come under them."""

POLICIES: Mapping[str, Mapping[str, str]] = {
    "zero_dates": {NULL_AND_COUNT: "", DEAD_LETTER: "dead_letter", FAIL: "error"},
    "invalid_text": {FAIL: "", NULL_AND_COUNT: "null", DEAD_LETTER: "dead_letter"},
    **{
        reason: {FAIL: "", NULL_AND_COUNT: f"{reason}=null", DEAD_LETTER: f"{reason}=dead_letter"}
        for reason in REASONS
        if reason not in ("zero_dates", "invalid_text")
    },
}
"""A reason's policies, the default one first, and the word of each in a form. Words are part of stored plans."""

_ONLY_IN = {"int64_overflow": "int64", "invalid_boolean": "boolean", "invalid_variant": "variant"}
"""The shape without which there is no such value."""


def policy_of(kind: ColumnType, reason: str) -> str:
    """What becomes of values that a column of that type cannot hold for *reason*.

    >>> policy_of(ColumnType(name="bigint", unsigned=True, options="int64 int64_overflow=null"), "int64_overflow")
    'null_and_count'
    """
    words = kind.options.split()
    default = next(iter(POLICIES[reason]))
    return next((policy for policy, word in POLICIES[reason].items() if word in words), default)


def may_be_dead_letter(kind: ColumnType) -> bool:
    """Whether values of such a column can become dead letters."""
    return any(word.endswith("dead_letter") for word in kind.options.split())


def is_possible(reason: str, shape: str) -> bool:
    """Whether a column of that shape, of a type that has the reason, can have such values."""
    if reason == "zero_dates":
        return shape != "text"
    return reason not in _ONLY_IN or shape == _ONLY_IN[reason]


def holds_all(kind: ColumnType, reason: str) -> bool:
    """Whether the type's shape is one that holds the values that others cannot hold for *reason*."""
    return not is_possible(reason, kind.shape)
