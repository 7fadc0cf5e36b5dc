"""Strict validation of changelogs: what is wrong in one, with offset, what was expected, and what was found."""

from historian.validation.changelog import check
from historian.validation.columns import check_columns
from historian.validation.findings import Finding, Profile, Rule

__all__ = ["Finding", "Profile", "Rule", "check", "check_columns"]
