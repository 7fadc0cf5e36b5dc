"""What one check found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["CheckResult", "Status", "failed", "ok", "shortened", "warning"]

_SHOWN = 10

Status: TypeAlias = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check found.

    Attributes:
        name: of the check, the same at every run.
        status: "failed" where the data would be wrong or nothing can be read; a run is refused then.
        found: what is there.
        expected: what should be there; "" where that is what was found.
        mend: the SQL statement or the setting that mends it; "" where there is nothing to mend.
    """

    name: str
    status: Status
    found: str
    expected: str = ""
    mend: str = ""


def ok(name: str, found: str) -> CheckResult:
    """All is well."""
    return CheckResult(name=name, status="ok", found=found)


def warning(name: str, found: str, expected: str, mend: str = "") -> CheckResult:
    """It can run, but someone should know."""
    return CheckResult(name=name, status="warning", found=found, expected=expected, mend=mend)


def failed(name: str, found: str, expected: str, mend: str = "") -> CheckResult:
    """It must not run like this."""
    return CheckResult(name=name, status="failed", found=found, expected=expected, mend=mend)


def shortened(names: Sequence[str]) -> str:
    """The first ten of *names*, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
