"""What a Spark executor's Python says of itself. Sent to it by value, so that it is told where nothing of ours is installed too.

It stands alone: it imports only what every Python has.
"""

from __future__ import annotations

__all__ = ["report"]


def report(_: object) -> list[tuple[str, str, str]]:
    """The host, the interpreter, and what it has of ours: the version of Python, and a digest of our packages or why there is none."""
    import hashlib
    import importlib
    import platform
    import sys
    from pathlib import Path

    digest = hashlib.blake2b(digest_size=8)
    try:
        for name in ("connectors", "historian", "pyspark_historian", "sinks"):
            found = importlib.import_module(name).__file__
            if found is None:
                raise ModuleNotFoundError(f"No module named {name!r}")
            folder = Path(found).parent
            for path in sorted(folder.rglob("*.py")):
                digest.update(f"{name}/{path.relative_to(folder)}".encode() + b"\0" + path.read_bytes())
        for needed in ("pyarrow", "numba"):
            importlib.import_module(needed)
        ours = digest.hexdigest()
    except ImportError as error:
        ours = f"{type(error).__name__}: {error}"
    return [(platform.node(), sys.executable, f"Python {platform.python_version()}, {ours}")]
