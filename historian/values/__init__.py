"""Column types as Arrow types, and values in the server's own text as Arrow and Python values.

Bytes of a log do not belong here (:mod:`connectors.readers.binlog.columns`).
"""

from historian.values.arrow_types import MAX_DECIMAL_DIGITS, arrow_type, is_readable
from historian.values.policies import (
    DEAD_LETTER,
    FAIL,
    POLICIES,
    REASONS,
    holds_all,
    is_possible,
    may_be_dead_letter,
    policy_of,
)
from historian.values.texts import default_scalar, inet6_text, initial_scalar, initial_value
from historian.values.variant import encoded

__all__ = [
    "DEAD_LETTER",
    "FAIL",
    "MAX_DECIMAL_DIGITS",
    "POLICIES",
    "REASONS",
    "arrow_type",
    "default_scalar",
    "encoded",
    "holds_all",
    "inet6_text",
    "initial_scalar",
    "initial_value",
    "is_possible",
    "is_readable",
    "may_be_dead_letter",
    "policy_of",
]
