"""Strict validation of changelogs: what is wrong in one, with offset, what was expected, and what was found.

Mending what is wrong does not belong here.

Open to other rooms: ``images``, ``sequence``.
"""

from historian.changelog.validation.changelog import check
from historian.changelog.validation.columns import check_columns
from historian.changelog.validation.findings import Finding, Profile, Rule

__all__ = ["Finding", "Profile", "Rule", "check", "check_columns"]
