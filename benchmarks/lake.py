"""All measurements of Delta lakes, and of looks at one of many tables: each of them alone in its process. Run: ``python benchmarks/lake.py [--only NAME ...]``."""

from __future__ import annotations

from parts import run_parts

PARTS = {
    "limit": ["lake_limit.py"],
    "copy": ["lake_copy.py"],
    "pipeline": ["lake_pipeline.py"],
    "mirror": ["lake_mirror.py"],
    "tables": ["lake_tables.py"],
    "many_tables": ["lake_many.py"],
    "many_status": ["status_many.py"],
    "latency": ["lake_latency.py"],
    "memory": ["lake_memory.py", "--mirror"],
}

if __name__ == "__main__":
    run_parts(__doc__, PARTS)
