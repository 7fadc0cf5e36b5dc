"""Sizes as people read them."""

from __future__ import annotations

__all__ = ["bytes_text", "copied_text"]


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
