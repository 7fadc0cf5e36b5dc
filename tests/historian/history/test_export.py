"""A history as JSON lines: round trips are identities, and nothing that does not fit is taken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from historian import codec
from historian.errors import ConfigError, StoreError
from historian.history.export import HistoryFile, read_history, write_history
from historian.history.history import History
from historian.history.timeline import Gap, Horizon, TimelineEntry
from historian.positions import LogPosition
from historian.positions.places import Place
from historian.schema.edits import AddColumn, DropTable, Edit, TruncateTable
from historian.schema.snapshots import Column, ColumnType, Database, ForeignKey, Snapshot, UniqueKey
from historian.store import Store
from models.timelines import INT, A, B, capture, create, position, random_log, statement, table

T = table("t")
CONNECTOR = "9e0c6d3a-6f0a-4c1e-8a44-3d0f8e6f0b11"
DOCS = (Path(__file__).parents[3] / "docs" / "reference" / "history-format.md").read_text(encoding="utf-8")


def made(random: Random, transactions: int, *, gtids: bool = True) -> HistoryFile:
    log = random_log(random, transactions, gtids=gtids)
    odd = random.choice(("", "\u2028", "\x85\x0b", "'\"\\\n\r\n", "ü 漢 \U0001f600"))
    entries = tuple(replace(e, statement=f"{e.statement}{odd}" if e.place else "") for e in log.entries)
    gaps = tuple(
        Gap(start=t.before, end=t.after, reason=f"purged {odd}")
        for t in random.sample(log.transactions, min(len(log.transactions), random.choice((0, 0, 1, 2))))
    )
    return HistoryFile(connector=CONNECTOR, resolved=log.end, entries=entries, gaps=gaps)


SMALL = HistoryFile(
    connector=CONNECTOR,
    resolved=position(f"{A}:1-9", 9000),
    entries=(
        capture(create(1, "t", "a")),
        statement(2, f"{A}:5", AddColumn(table=T, column=Column(id=2, name="b", type=INT), after=0)),
        statement(3, f"{A}:6", TruncateTable(table=T, table_id=1)),
    ),
    gaps=(Gap(start=position(f"{A}:1-6", 3500), end=position(f"{A}:1-7", 4000), reason="purged"),),
)


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 2**32), st.integers(0, 12), st.booleans())
def test_what_is_written_reads_back_as_the_same(seed: int, transactions: int, gtids: bool) -> None:
    history = made(Random(seed), transactions, gtids=gtids)

    lines = list(write_history(history))
    text = "".join(f"{line}\n" for line in lines)

    assert history == read_history(lines)
    assert history == read_history(text.removesuffix("\n").split("\n"))
    assert [] == [line for line in lines if "\n" in line or "\r" in line]


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 2**32))
def test_a_changed_file_is_refused_or_reads_as_what_it_says(seed: int) -> None:
    random = Random(seed)
    lines = list(write_history(made(random, random.randint(0, 6))))
    for _ in range(random.choice((1, 1, 2))):
        at = random.randrange(len(lines))
        line = lines[at]
        cut = random.randrange(len(line)) if line else 0
        lines[at : at + 1] = random.choice(
            (
                [],
                [line, line],
                [random.choice(lines), line],
                [line[:cut] + line[cut + 1 :]],
                [line[:cut] + random.choice('0123456789",:{}[]x-') + line[cut + 1 :]],
                [line[:cut]],
            )
        )
        lines = lines or [""]

    try:
        again = list(write_history(read_history(lines)))
    except ConfigError as error:
        again = []
        told = error.problems
    else:
        told = ()
    assert told or [json.loads(line) for line in lines] == [json.loads(line) for line in again]


def change(at: int, edit: Callable[[Any], object]) -> list[str]:
    lines = list(write_history(SMALL))
    value = json.loads(lines[at])
    edit(value)
    lines[at] = json.dumps(value)
    return lines


def put(**values: object) -> Callable[[dict[str, dict[str, object]]], object]:
    return lambda line: next(iter(line.values())).update(values)


LINES = list(write_history(SMALL))


@pytest.mark.parametrize(
    "lines,said",
    [
        ([], ["expected the head of a history @ line 1", "the file was cut off"]),
        (LINES[:-1], ["the file was cut off: expected its end behind line 5"]),
        (LINES[1:], ["expected the head of a history @ line 1"]),
        ([LINES[0], *LINES], ["in this order @ line 2"]),
        ([*LINES, LINES[-1]], ["in this order @ line 7"]),
        ([*LINES[:1], LINES[4], *LINES[1:4], LINES[5]], ["in this order @ line 3"]),
        ([*LINES[:2], *LINES[3:]], ["expected 3 entries and 1 gaps, found 2 and 1 @ line 5"]),
        ([LINES[0], "", *LINES[1:]], ["not JSON: Expecting value: line 1 column 1 .* @ line 2"]),
        ([LINES[0], "[" * 100_000, *LINES[1:]], ["not JSON: .* @ line 2"]),
        ([LINES[0], '{"entri": 1}', "7", *LINES[1:]], ["expected an object with one key.* @ line 2", ".* @ line 3"]),
        (change(0, put(format=2)), ["expected format 1, found 2 @ line 1"]),
        (change(2, put(number="2")), ["not read as it is written: entry.number @ line 3"]),
        (change(2, put(mood="fine")), ["not read as it is written: entry.mood @ line 3"]),
        (change(2, lambda line: line["entry"].pop("position")), ["Field required at entry.position @ line 3"]),
        (change(2, lambda line: line["entry"]["edits"][0].pop("column")), [r"Field required at .*column.* @ line 3"]),
        (change(2, put(number=4)), ["hole.*expected 2; found 4 @ line 3"]),
        (change(3, lambda line: line["entry"]["place"].update(gtid=f"{A}:5")), ["is there already @ line 4"]),
        (change(3, lambda line: line["entry"]["place"].update(gtid=f"{A}:1-5")), ["not one GTID.* @ line 4"]),
        (
            change(3, lambda line: line["entry"]["place"].update(gtid=f"{A.upper()}:6")),
            ["as servers print it.* @ line 4"],
        ),
        (change(3, lambda line: line["entry"]["place"].update(gtid="soon")), ["not a GTID set.* @ line 4"]),
        (change(3, lambda line: line["entry"]["place"].update(gtid=f"{A}:12")), [r"stands behind .* @ line 4"]),
        (change(1, lambda line: line["entry"]["position"].update(gtids=f"{B}:1")), [r"stands behind .* @ line 2"]),
        (change(4, lambda line: line["gap"]["end"].update(gtids="1-2")), ["not a GTID set.* @ line 5"]),
        (change(4, lambda line: line["gap"]["end"].update(flavor="mariadb")), ["two kinds of server.* @ line 5"]),
        (change(3, lambda line: line["entry"]["edits"][0].update(table_id=7)), [r"@ line 4"]),
    ],
)
def test_each_problem_is_told_with_its_line(lines: list[str], said: list[str]) -> None:
    with pytest.raises(ConfigError, match="not a history that can be imported") as caught:
        read_history(lines, where="shop.jsonl")

    problems = caught.value.problems
    assert len(said) == len(problems), problems
    for pattern, problem in zip(said, problems, strict=True):
        assert re.search(pattern, problem), problem


def test_many_problems_are_counted() -> None:
    with pytest.raises(ConfigError) as caught:
        read_history(["x"] * 50)

    assert (21, "and 30 more") == (len(caught.value.problems), caught.value.problems[-1])


def test_a_history_of_mariadb_travels() -> None:
    def at(gtids: str) -> LogPosition:
        return LogPosition(flavor="mariadb", gtids=gtids, file="m.000001", offset=4, server="1")

    entries = (
        replace(capture(create(1, "t", "a")), position=at("0-1-1")),
        replace(
            statement(2, "0-1-2", DropTable(table=T, table_id=1)),
            place=Place(gtid="0-1-2", file="m.000001", offset=500, ordinal=1),
            position=at("0-1-1"),
        ),
    )
    history = HistoryFile(connector=CONNECTOR, resolved=at("0-1-2,1-1-1"), entries=entries)

    assert history == read_history(write_history(history))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.integers(0, 8))
def test_an_imported_history_answers_as_the_exported_one(seed: int, transactions: int) -> None:
    random = Random(seed)
    log = random_log(random, transactions)
    history = read_history(
        write_history(HistoryFile(connector=CONNECTOR, resolved=log.end, entries=tuple(log.entries)))
    )
    store = Store.open("sqlite://")
    for _ in range(2):  # importing again changes nothing
        store.restore("shop", history.connector, history.entries, ())
        store.record((), history.resolved, history.gaps)

    first, second = History.of(log.entries, resolved=log.end), store.history()

    assert (CONNECTOR, log.end, tuple(log.entries)) == (store.connector("shop"), second.resolved, second.entries)
    assert first.catalog == second.catalog
    assert [first.versions_by(n) for n in range(first.last_number + 1)] == [
        second.versions_by(n) for n in range(second.last_number + 1)
    ]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 8))
def test_a_history_whose_beginning_was_forgotten_travels_too(seed: int, transactions: int) -> None:
    random = Random(seed)
    log = random_log(random, transactions)
    horizon, left = History.of(log.entries, resolved=log.end).cut_at(random.choice(log.transactions).after)
    kept = (*left, *(entry for entry in log.entries if entry.number > horizon.number))
    cut = HistoryFile(connector=CONNECTOR, resolved=log.end, entries=kept, horizon=horizon)
    store = Store.open("sqlite://")

    history = read_history(write_history(cut))
    for _ in range(2):  # importing again changes nothing
        store.restore("shop", history.connector, history.entries, (), horizon=history.horizon)
        store.record((), history.resolved, history.gaps)

    assert cut == history
    assert (horizon, kept, log.end) == (store.history().horizon, store.entries(), store.resolved())
    with pytest.raises(StoreError, match="another history"):
        store.restore("shop", history.connector, kept, (), horizon=replace(horizon, next_table_id=99))


KINDS: dict[str, Any] = {kind.__dataclass_fields__["kind"].default: kind for kind in get_args(get_args(Edit)[0])}
PARTS = (TimelineEntry, Gap, Horizon, Place, LogPosition, Snapshot, Column, ColumnType, UniqueKey, ForeignKey, Database)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_edit_is_documented_with_its_keys(kind: str) -> None:
    (row,) = re.findall(rf"^\| `{kind}` \|.*$", DOCS, re.MULTILINE)

    assert [field.name for field in fields(KINDS[kind])][:-1] == re.findall(r"`(\w+)`", row.split("|")[2])


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_key_of_a_value_is_documented(part: Any) -> None:
    (section,) = re.findall(rf"^### {part.__name__}\n(.*?)(?=^#|\Z)", DOCS, re.DOTALL | re.MULTILINE)

    # A field that was renamed has its old name in JSON.
    keys = list(TypeAdapter(part).json_schema(by_alias=True)["properties"])

    assert keys == re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def test_the_documented_file_can_be_imported() -> None:
    (example,) = re.findall(r"^```json\n(.*?)^```", DOCS, re.DOTALL | re.MULTILINE)

    history = read_history(example.splitlines())

    assert example.splitlines() == list(write_history(history))
    assert codec.dump(LogPosition, history.resolved) in example
