"""What each area's tests take of a run of tests: by the report that pytest writes (``--junitxml``).

As a script: ``shares.py REPORT WORKERS`` prints each area's seconds, and the files that took longest; ``shares.py AREA`` prints the
area's paths, which ``make test-AREA`` runs.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

__all__ = ["AREAS", "by_area", "by_file", "described"]

TESTS = Path(__file__).parents[1]
AREAS: Mapping[str, tuple[str, ...]] = {
    "kafka": (
        "connectors/config/test_topic_source.py",
        "connectors/readers/kafka",
        "connectors/tracking/topics",
        "docs/test_topic_formats.py",
        "integration/test_healed_topics.py",
        "integration/test_kafka.py",
        "integration/test_killed_producers.py",
        "integration/test_killed_topics.py",
        "integration/test_maxwell.py",
        "integration/test_normalized_topics.py",
        "integration/test_outages_of_topics.py",
        "integration/test_postgresql_topics.py",
        "integration/test_statements_among_rows.py",
        "integration/test_topic_formats.py",
        "integration/test_topic_tombstones.py",
        "integration/test_topics_checked.py",
        "sinks/delta/keyed",
    ),
    "cluster": (
        "connectors/spark",
        "connectors/together",
        "connectors/tracking/capture/test_shared.py",
        "integration/test_cluster.py",
        "integration/test_connectors_together.py",
        "integration/test_copies_on_executors.py",
        "integration/test_s3.py",
        "integration/test_spark_source.py",
        "pyspark_historian/test_replication.py",
        "sinks/delta/log/test_orphans.py",
        "sinks/delta/rewrite/test_idle_tables.py",
        "sinks/test_spark_settings.py",
    ),
}
"""Directories and files under ``tests`` whose share has a limit. Tests of the whole that also use one of its parts are in none."""
_LONGEST = 20


def by_file(report: Path) -> Counter[str]:
    """Seconds of each file of tests, by its path under ``tests``; what a test waits for its fixtures is the test's."""
    seconds: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase"):
        name = str(case.get("classname"))
        while not (file := TESTS.parent / f"{name.replace('.', '/')}.py").exists():
            if "." not in name:
                raise ValueError(f"no file of tests has {case.get('classname')}")
            # Of a class in a file.
            name = name.rpartition(".")[0]
        seconds[str(file.relative_to(TESTS))] += float(case.get("time") or 0)
    return seconds


def by_area(seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds of the files of each area."""
    return {name: sum(s for file, s in seconds.items() if _is_in(file, paths)) for name, paths in AREAS.items()}


def _is_in(file: str, paths: Iterable[str]) -> bool:
    return any(Path(path) == Path(file) or Path(path) in Path(file).parents for path in paths)


def described(seconds: Counter[str], workers: int) -> str:
    """Lines for people: areas first, in minutes of a run whose workers have equally much to do."""
    areas = {**by_area(seconds), "all": seconds.total()}
    lines = [
        f"{name:8} {s:6.0f} s of tests, {s / workers / 60:5.1f} min of {workers} workers" for name, s in areas.items()
    ]
    return "\n".join([*lines, *(f"{s:6.0f} s  {file}" for file, s in seconds.most_common(_LONGEST))])


if __name__ == "__main__":
    if sys.argv[1] in AREAS:
        print(*(f"tests/{path}" for path in AREAS[sys.argv[1]]))
    else:
        print(described(by_file(Path(sys.argv[1])), max(1, int(sys.argv[2]))))
