"""The command ``historian`` as a process of its own."""

from __future__ import annotations

import sys

__all__ = ["HISTORIAN"]

HISTORIAN = (sys.executable, "-c", "from connectors.cli import main; main()")
"""The words that begin a command; it runs from this checkout, whatever is installed."""
