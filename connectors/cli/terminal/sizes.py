"""Sizes, counts and spans of time as people read them."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["bytes_text", "copied_text", "counted", "span_text"]


def bytes_text(count: float) -> str:
    """A number of bytes in a unit of thousands.

    >>> bytes_text(999), bytes_text(1_250_000)
    ('999 B', '1.2 MB')
    """
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def copied_text(size_bytes: int | None, estimated_bytes: int | None) -> str:
    """How many bytes are copied, and of about how many where that is known; "": neither is."""
    if size_bytes is None:
        return ""
    of = f" of about {bytes_text(estimated_bytes)}" if estimated_bytes else ""
    return f"{bytes_text(size_bytes)}{of}"


def counted(count: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "table"), counted(2, "table")
    ('1 table', '2 tables')
    """
    return f"{count} {what}{'' if count == 1 else 's'}"


def span_text(seconds: float) -> str:
    """A span of time in whole seconds.

    >>> span_text(90), span_text(86_400 * 30)
    ('0:01:30', '30 days')
    """
    return str(timedelta(seconds=round(seconds))).removesuffix(", 0:00:00")
