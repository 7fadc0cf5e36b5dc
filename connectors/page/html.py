"""One HTML file of data and the page's own script and style; nothing that stands in the data can become more than text."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

__all__ = ["security_policy", "written_page"]


def written_page(data: Mapping[str, Any], blobs: Sequence[str]) -> str:
    """The page's HTML.

    Args:
        data: of which JSON can be made; ``tables`` in the order of *blobs*.
        blobs: each table's timeline: JSON, deflated with zlib's header, in base64.
    """
    whole = json.dumps({**data, "blobs": blobs}, separators=(",", ":"))
    parts = {
        "policy": security_policy(),
        "style": _asset("page.css"),
        "script": _asset("page.js"),
        "data": _inert(whole),
    }
    # In one pass: what is put in is not looked through again.
    pieces = _asset("page.html").split("@@")
    return "".join(parts[piece] if at % 2 else piece for at, piece in enumerate(pieces))


@lru_cache(maxsize=1)
def security_policy() -> str:
    """The Content-Security-Policy of the page: its own script and style, by their hashes, and nothing else from anywhere."""
    script, style = (_hash(_asset(name)) for name in ("page.js", "page.css"))
    return f"default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; base-uri 'none'; form-action 'none'"


def _inert(text: str) -> str:
    """JSON that ends no element: ``json.dumps`` leaves ASCII alone, and so no U+2028 either."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=4)
def _asset(name: str) -> str:
    return (files("connectors.page") / "assets" / name).read_text(encoding="utf-8")
