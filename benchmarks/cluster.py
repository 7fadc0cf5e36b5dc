"""Spark at work: readers, and what runs on executors. Each part stands alone in its process.

Prints what each part prints, and last one JSON object with all results. Run: ``python benchmarks/cluster.py [--only typed_read]``.
"""

from __future__ import annotations

from parts import run_parts

PARTS = {
    "start": ["cluster_start.py"],
    "typed_read": ["typed_read.py"],
    "executors": ["cluster_executors.py"],
    "idle_connectors": ["idle_connectors.py"],
    "scale": ["scale.py"],
}

if __name__ == "__main__":
    run_parts(__doc__, PARTS)
