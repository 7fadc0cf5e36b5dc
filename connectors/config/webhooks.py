"""Addresses that messages are posted to."""

from __future__ import annotations

from urllib.parse import urlsplit

__all__ = ["is_webhook"]


def is_webhook(text: str) -> bool:
    """Whether *text* is an address of HTTP that can be asked."""
    try:
        address = urlsplit(text)
        known = address.hostname and (address.port is None or address.port > 0)
    except ValueError:
        return False
    return bool(known) and address.scheme in ("http", "https") and text.isascii() and not any(map(str.isspace, text))
