"""What areas of tests took, told from the report of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

import shares

REPORT = """<testsuites><testsuite>
<testcase classname="tests.integration.test_kafka" name="a" time="2.5" />
<testcase classname="tests.integration.test_kafka" name="b" time="1.5"><failure /></testcase>
<testcase classname="tests.connectors.readers.kafka.statements.test_source_order.TestOfAClass" name="c" time="8" />
<testcase classname="tests.integration.test_s3" name="d[x.y]" time="4" />
<testcase classname="tests.integration.test_types" name="e" time="44" />
</testsuite></testsuites>"""


def test_seconds_are_summed_by_file_and_by_area(tmp_path: Path) -> None:
    seconds = shares.by_file(_report(tmp_path, REPORT))

    assert {
        "integration/test_kafka.py": 4,
        "connectors/readers/kafka/statements/test_source_order.py": 8,
        "integration/test_s3.py": 4,
        "integration/test_types.py": 44,
    } == seconds
    assert {"kafka": 12, "cluster": 4} == shares.by_area(seconds)
    said = shares.described(seconds, 2).splitlines()
    assert ["all", "60", "s", "of", "tests,", "0.5", "min", "of", "2", "workers"] == said[2].split()
    assert ["44", "s", "integration/test_types.py"] == said[3].split()


def test_a_report_of_other_tests_is_refused(tmp_path: Path) -> None:
    report = _report(tmp_path, REPORT.replace("test_types", "test_nowhere"))

    with pytest.raises(ValueError, match=r"tests\.integration\.test_nowhere"):
        shares.by_file(report)


def test_what_an_area_names_is_there() -> None:
    assert [] == [path for paths in shares.AREAS.values() for path in paths if not (shares.TESTS / path).exists()]


def _report(directory: Path, text: str) -> Path:
    path = directory / "tests.xml"
    path.write_text(text)
    return path
