"""What is told by two looks at a run, and how it is put."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from connectors.monitoring.picture import RunPicture, SchemaChange, TablePicture, TableState
from connectors.notifications.messages import Message, Told, messages, run_ended
from connectors.notifications.templates import TEMPLATES
from historian.schema.diff import Difference

RUNS = RunPicture(taken_us=1_000_000, connector="shop", source="mysql here", sinks=("delta",), stage="runs", plan=3)
STOPPED = TablePicture(name="s.t", state=TableState.STOPPED, reason="its values")
TOLD = Told(entry=4)


def _look(told: Told, picture: RunPicture, max_lag_s: float = math.inf, letters: int = 0) -> tuple[list[Message], Told]:
    return messages(told, picture, (), letters, max_lag_s)


def test_a_table_that_stops_is_told_once_and_once_more_when_it_goes_on() -> None:
    stops = replace(RUNS, tables=(STOPPED,), taken_us=5)
    first, told = _look(TOLD, stops)
    again, told = _look(told, replace(stops, taken_us=6))
    over, told = _look(told, replace(RUNS, taken_us=7))
    later, _ = _look(told, replace(stops, taken_us=8))

    assert [(m.event, m.severity, m.table, m.text, m.is_over) for m in first] == [
        ("table_stopped", "error", "s.t", "s.t stopped: its values", False)
    ]
    assert [] == again
    assert [(m.severity, m.is_over, m.incident) for m in over] == [("info", True, first[0].incident)]
    assert len({m.key for m in (*first, *over, *later)}) == 3


@pytest.mark.parametrize("picture", [replace(RUNS, stage="starts", plan=0), replace(RUNS, plan=0)])
def test_what_is_not_known_yet_is_not_over(picture: RunPicture) -> None:
    _, told = _look(TOLD, replace(RUNS, tables=(STOPPED,)))

    found, after = _look(told, picture)

    assert ([], told) == (found, after)


def test_what_nobody_takes_is_told_once_somebody_does() -> None:
    stops = replace(RUNS, tables=(STOPPED,))
    unheard, told = messages(TOLD, stops, (), 0, math.inf, events=("lag",))
    ((first,), told) = _look(told, stops)
    _, unheard_over = messages(told, RUNS, (), 0, math.inf, events=("lag",))
    ((over,), _) = _look(unheard_over, RUNS)

    assert [] == unheard
    assert ("table_stopped", True, first.incident) == (first.event, over.is_over, over.incident)


def test_a_lag_around_its_limit_is_told_once() -> None:
    told, texts = TOLD, []
    for lag_s in (9, 11, 9, 11, 6, 4, 11):
        found, told = _look(told, replace(RUNS, lag_s=lag_s), max_lag_s=10)
        texts += [m.text for m in found]
    begun = "the targets are 11 s behind, more than 10 s"
    assert texts == [begun, f"over: {begun}", begun]


def test_other_events_are_told() -> None:
    repairs = replace(RUNS, tables=(TablePicture(name="s.r", state=TableState.REPAIRING),), warnings=("soon purged",))
    found, told = _look(TOLD, replace(repairs, stage="tries again", notes=("the lake is away",)), letters=2)
    assert {(m.event, m.severity) for m in found} == {
        ("repair", "info"),
        ("retention", "warning"),
        ("retry", "warning"),
        ("dead_letters", "warning"),
    }
    _, ended = _look(told, replace(repairs, stage="has ended", tables=()))
    assert set(ended.open) == {"retry:", "retention:"}, "a run that ends has not come back"


def test_a_run_that_ended_is_over_once_another_one_goes_on() -> None:
    ended, told = run_ended(TOLD, RUNS, "no lease")
    assert ("the run ended: no lease", "error") == (ended.text, ended.severity)
    (over,), after = _look(told, replace(RUNS, plan=0))
    assert (over.is_over, over.incident, dict(after.open)) == (True, ended.incident, {})


def test_schema_changes_are_told_in_order_each_by_its_entry() -> None:
    added = Difference(change="added", column="n", after="int")
    changes = [
        SchemaChange(number=n, time_us=n, tables=("s.t", "s.u"), statement=f"ALTER {n}", changes=(added,))
        for n in (5, 7)
    ]
    found, told = messages(TOLD, RUNS, changes, 0, math.inf)
    assert [(m.text, m.table, m.time_us) for m in found] == [
        ("s.t, s.u: ALTER 5", "s.t", 5),
        ("s.t, s.u: ALTER 7", "s.t", 7),
    ]
    assert found[0].incident != found[1].incident
    assert told.entry == 7
    assert found[0].details["changes"][0]["column"] == "n"


def test_a_message_is_put_as_each_receiver_takes_it() -> None:
    stopped, told = _look(TOLD, replace(RUNS, tables=(replace(STOPPED, reason="<!channel> & co"),)))
    (over,), _ = _look(told, RUNS)

    slack = TEMPLATES["slack"](stopped[0], "")
    trigger, resolve = (TEMPLATES["pagerduty"](message, "key") for message in (stopped[0], over))

    assert slack["text"].endswith("s.t stopped: &lt;!channel&gt; &amp; co")
    assert (trigger["event_action"], resolve["event_action"]) == ("trigger", "resolve")
    assert trigger["dedup_key"] == resolve["dedup_key"]
    assert trigger["payload"]["timestamp"] == "1970-01-01T00:00:01.000+00:00"
    assert json.loads(json.dumps(TEMPLATES["json"](stopped[0], "")))["table"] == "s.t"
    assert Message(**json.loads(json.dumps(over.fields()))) == over
