"""The pictures in the documents that are drawn from the code show what the code shows."""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]


def _words(svg: str) -> list[str]:
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", svg)
    return html.unescape(" ".join(texts)).split()


def test_the_picture_of_a_run_is_what_make_pictures_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "examples"), *sys.path])
    import live_display

    shown = [word for line in live_display.lines() for word in line.plain.split()]

    held = _words((ROOT / "docs" / "images" / "live-display.svg").read_text(encoding="utf-8"))
    assert held == _words(live_display.svg())
    assert [] == [word for word in shown if word not in " ".join(held)]


def test_the_picture_of_the_page_is_of_a_page_that_is_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "examples"), *sys.path])
    import page

    text = page.shop_page(tmp_path)

    assert ["shop.orders", "shop.customers", "shop.order_lines", "shop.coupons"] == re.findall(
        r'{"id":\d+,"name":"([^"]*)"', text
    )
    assert (ROOT / "docs" / "images" / "page.png").read_bytes().startswith(b"\x89PNG")
