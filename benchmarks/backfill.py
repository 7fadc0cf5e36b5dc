"""All measurements of copies of rows: each of them alone in its process. Run: ``python benchmarks/backfill.py [--only NAME ...]``."""

from __future__ import annotations

from parts import run_parts

PARTS = {
    "rows": ["backfill_rows.py"],
    "debezium": ["backfill_debezium.py"],
    "lake": ["backfill_lake.py"],
    "planning": ["backfill_planning.py"],
}

if __name__ == "__main__":
    run_parts(__doc__, PARTS)
