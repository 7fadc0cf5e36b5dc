"""What is told of a run as lineage, apart from a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from connectors.config import load_config
from connectors.config.settings import OpenLineageConfig
from connectors.lineage.datasets import Dataset, Link
from connectors.lineage.events import require_library
from connectors.lineage.runs import LineageRun
from historian.errors import ConfigError

SETTINGS = OpenLineageConfig(url="http://localhost/api/v1/lineage", namespace="shops")


@pytest.fixture
def made(tmp_path: Path) -> LineageRun:
    path = tmp_path / "c.yaml"
    path.write_text("{name: c, source: {type: binlog-files, directory: .}}")
    return LineageRun(load_config(path), SETTINGS, is_stream=True)


def _links(count: int) -> list[Link]:
    return [
        Link(
            sources=(Dataset(namespace="mysql://h:1", name=f"s.t{at}"),),
            target=Dataset(namespace="file", name=f"/lake/t{at}"),
        )
        for at in range(count)
    ]


def test_a_run_that_was_killed_is_told_to_have_ended_by_the_next_one(made: LineageRun) -> None:
    left = "00000000-0000-0000-0000-000000000001"
    found = [event for _, event in made.look(_links(1), 5, left)]

    assert [("ABORT", left), ("START", made.id)] == [(e["eventType"], e["run"]["runId"]) for e in found]
    assert [[], ["/lake/t0"]] == [[output["name"] for output in e["outputs"]] for e in found]


def test_only_what_changed_is_told_again_and_an_error_at_the_end(made: LineageRun) -> None:
    first, second = _links(2)
    assert ["START"] == [event["eventType"] for _, event in made.look([first, second], 1, "")]
    assert [] == made.look([first, second], 2, "")
    changed = Link(sources=second.sources, target=Dataset(namespace="file", name="/lake/t1", columns=(("a", "int"),)))
    ((_, again),) = made.look([first, changed], 3, "")
    ((_, end),) = made.ended(4, "the lake is full")

    assert ("RUNNING", ["/lake/t1"]) == (again["eventType"], [output["name"] for output in again["outputs"]])
    assert ("FAIL", 2) == (end["eventType"], len(end["outputs"]))
    assert "the lake is full" == end["run"]["facets"]["errorMessage"]["message"]


def test_many_targets_are_told_in_several_events(made: LineageRun) -> None:
    found = made.look(_links(250), 1, "")
    (end,) = made.ended(2, "")

    assert [("START", 100), ("RUNNING", 100), ("RUNNING", 50)] == [
        (e["eventType"], len(e["outputs"])) for _, e in found
    ]
    assert ("COMPLETE", []) == (end[1]["eventType"], end[1]["outputs"])
    assert 4 == len({key for key, _ in (*found, end)})


def test_what_has_not_begun_does_not_end(made: LineageRun) -> None:
    assert [] == made.ended(1, "another run holds the lease")


def test_a_missing_package_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openlineage.client.event_v2", None)
    with pytest.raises(ConfigError, match=r"pyspark-historian\[openlineage\]"):
        require_library()
