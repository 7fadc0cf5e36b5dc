"""All measurements of topics: each of them alone in its process. Run: ``python benchmarks/kafka.py [--only NAME ...]``."""

from __future__ import annotations

from parts import run_parts

PARTS = {
    "json": ["kafka_json.py"],
    "avro": ["kafka_avro.py"],
    "to_delta": ["kafka_lake.py"],
    "normalised": ["kafka_state.py"],
}

if __name__ == "__main__":
    run_parts(__doc__, PARTS)
