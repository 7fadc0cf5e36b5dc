"""Statements of a topic of their own stand among rows where the source's log has them, though times are told by the second."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from connectors.readers.base import Bound, Statement
from connectors.readers.kafka import reader as kafka_reader
from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.debezium import schema_changes
from connectors.readers.kafka.located import batches as located_batches
from connectors.readers.kafka.message_cache import Room
from connectors.readers.kafka.messages.source_places import NO_PLACE, NOTHING, Newest, SourcePlace, place_of
from connectors.readers.kafka.reader import KafkaReader
from connectors.readers.kafka.repeats import Places, Repeats
from connectors.readers.kafka.scanning import TopicScan
from connectors.readers.kafka.statements.crossings import Crossings
from connectors.readers.kafka.statements.late import with_passed
from connectors.readers.kafka.statements.source_order import SourceOrder
from connectors.recovery.overriding import override
from historian.changelog.operations import physical_name
from historian.ddl import StatementContext
from historian.errors import SourceError, UnknownTable
from historian.names import TableName
from historian.positions import KAFKA, LogPosition, TopicOffsets
from historian.positions.places import Place
from historian.store import Store
from logs.registered_events import RegisteredEvents
from logs.source_logs import (
    STATED,
    S,
    SourceLog,
    Topics,
    compact,
    reader_of,
    row_message,
    source_at,
    statement_message,
    tracker_of,
)
from logs.topic_streams import Message, batch_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

FROM_THE_START = LogPosition(flavor=KAFKA, gtids=str(TopicOffsets.of({})), file="", offset=0)
SETTINGS = KafkaSettings(brokers="", topics=("t*",), schema_topic=STATED)
IN_AVRO = replace(SETTINGS, format="debezium_avro")
IN_JSON_SCHEMA = replace(SETTINGS, format="debezium_json_schema")
IN_EACH_FORM = pytest.mark.parametrize(
    "settings", [SETTINGS, IN_AVRO, IN_JSON_SCHEMA], ids=["JSON", "Avro", "JSON Schema"]
)
FORMS_AND_PATHS = [(SETTINGS, 0), (SETTINGS, 1_000_000), (IN_AVRO, 0), (IN_AVRO, 1_000_000), (IN_JSON_SCHEMA, 0)]
IN_EACH_FORM_BY_EACH_PATH = pytest.mark.parametrize(
    "settings, fewest_located",
    FORMS_AND_PATHS,
    ids=["JSON located", "JSON one by one", "Avro located", "Avro one by one", "JSON Schema"],
)
"""No compiled code reads JSON with a JSON Schema."""


def _plans(
    *steps: list[Any],
    settings: KafkaSettings = SETTINGS,
    limit_bytes: int | None = None,
    executed: list[str] | None = None,
) -> Generator[dict[int, list[int]], None, None]:
    """Of each plan the ids of rows by table, where each of *steps* sends what is told by topic, and then all is read.

    Args:
        executed: gets the statements of the history.
    """
    log = SourceLog(random.Random(0), 0)
    log.events = [((topic, 0), message) for step in steps for topic, *messages in step for message in messages]
    reader, topics = reader_of(settings, log)
    with contextlib.closing(Store.open("sqlite://")) as store:
        tracker = tracker_of(reader, store)
        number = 0
        for step in steps:
            topics.send(sum(len(messages) for _, *messages in step))
            while (plan := tracker.plan_after(number, limit_bytes=limit_bytes)) is not None:
                number, found = plan.number, dict[int, list[int]]()
                versions = {(table.table_id, each.version): each for table in plan.tables for each in table.versions}
                for planned in plan.ranges:
                    for chunk in reader.read(planned, plan.tables):
                        version = versions[chunk.table_id, chunk.version]
                        assert version.snapshot is not None
                        key = next(physical_name(each.id) for each in version.snapshot.columns if each.name == "id")
                        found.setdefault(chunk.table_id, []).extend(chunk.rows.column(key).to_pylist())
                yield found
        if executed is not None:
            executed += [entry.statement for entry in tracker.history.entries if entry.statement]
        if store.stopped():
            yield {-1: [table_id for table_id, *_ in store.stopped()]}


@pytest.mark.parametrize(
    "settings, fewest_located, seed",
    [(*each, seed) for each in FORMS_AND_PATHS for seed in range(6 if each[0] is SETTINGS else 3)],
    ids=lambda each: each.format if isinstance(each, KafkaSettings) else str(each),
)
def test_rows_are_on_the_side_of_each_statement_on_which_the_log_has_them(
    settings: KafkaSettings, fewest_located: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(located_batches, "FEWEST_LOCATED", fewest_located)
    numbers = random.Random(seed)
    log = SourceLog(numbers, 120)
    reader, topics = reader_of(settings, log)
    limit_bytes = numbers.choice([3_000, 8_000, 1 << 20])
    segments: dict[int, tuple[int, int]] = {}
    values: dict[int, dict[int, int]] = {}
    number = 0
    with contextlib.closing(Store.open("sqlite://")) as store:
        tracker = tracker_of(reader, store, range_bytes=limit_bytes)
        while not topics.is_sent():
            topics.send(numbers.randrange(1, 60))
            while (plan := tracker.plan_after(number)) is not None:
                number = plan.number
                for planned in plan.ranges:
                    for chunk in reader.read(planned, plan.tables):
                        version = next(each for each in plan.tables[0].versions if each.version == chunk.version)
                        assert version.snapshot is not None
                        by_name = {column.name: column.id for column in version.snapshot.columns}
                        for row in chunk.rows.to_pylist():
                            key = row[physical_name(by_name["id"])]
                            assert key not in values
                            segments[key] = (number, chunk.segment)
                            values[key] = {
                                column: row[physical_name(column)] for name, column in by_name.items() if name != "id"
                            }
        assert not store.stopped()
    # A rename keeps the one column, so its values all stand under one id.
    assert values.keys() == log.emptied.keys()
    (column,) = {column for of_row in values.values() for column in of_row}
    assert all(of_row == {column: key} for key, of_row in values.items())
    # Segments are counted by plan; what is in one of them has the same statements before it.
    told: dict[tuple[int, int], set[int]] = {}
    for key, segment in segments.items():
        told.setdefault(segment, set()).add(log.emptied[key])
    assert all(len(each) == 1 for each in told.values())
    for one, other in itertools.pairwise(sorted(told)):
        assert one[0] != other[0] or min(told[one]) < min(told[other])
    assert any(segment for _, segment in told)


def test_a_truncate_that_stands_among_rows_too_is_executed_once() -> None:
    payload = {"source": {**source_at(12, 100), "table": "t"}, "op": "t", "ts_ms": 1}
    stated = statement_message(12, 100, "TRUNCATE TABLE t")
    another = {**payload, "source": {**source_at(14, 100), "table": "t"}}
    settings = KafkaSettings(brokers="", topics=("t0",), schema_topic=STATED, format="debezium_json_schemaless")
    scan = TopicScan({(STATED, 0): (0, 1), ("t0", 0): (0, 2)}, settings)
    scan.take((STATED, 0), batch_of([stated]))
    scan.take(("t0", 0), batch_of([(None, json.dumps(each).encode()) for each in (payload, another)]))
    assert [f"{STATED}:0:0", "t0:0:1"] == [item.place.gtid for _, item in scan.found]


def _words(number: int, second: int, server: int = 3, gtid: str | None = None) -> list[int]:
    source = source_at(number, second, server, gtid)
    found = place_of(json.dumps({"source": source, "op": "c"}).encode())
    assert found is not None
    return found


def _moments(order: SourceOrder, *rows: tuple[int, int]) -> list[int]:
    words = np.array([_words(*row) for row in rows])
    return order.moments(words, np.array([second * S for _, second in rows]), "t:0").tolist()  # type: ignore[no-any-return]


def _place(number: int, server: int = 3, gtid: str | None = None) -> SourcePlace:
    found = SourcePlace.of(source_at(number, 0, server, gtid))
    assert found is not None
    return found


def test_statements_with_places_follow_those_that_an_earlier_release_placed_by_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, renamed = statement_message(10, 100, MADE), statement_message(13, 103, "ALTER TABLE t RENAME COLUMN a TO b")
    made = _told_by_microsecond(made, 100 * S + 1, "uuid:10")
    renamed = _told_by_microsecond(renamed, 103 * S + 1, "uuid:13")
    rows = [
        _told_by_microsecond(row_message(number, 0, ("id", column)), second * S + 1, f"uuid:{number}")
        for number, column, second in ((11, "a", 101), (12, "a", 104), (14, "b", 102), (15, "b", 105))
    ]
    executed = list[str]()
    steps: list[list[Any]] = [[(STATED, made), ("t0", *rows[:1])], [(STATED, renamed), ("t0", *rows[1:])]]
    plans = _plans(*steps, settings=IN_AVRO, executed=executed)
    with monkeypatch.context() as earlier:
        earlier.setattr(schema_changes, "SourcePlace", SimpleNamespace(of=lambda _: None))
        assert {1: [11]} == next(plans)
    assert [{1: [12, 14, 15]}] == list(plans)
    assert ["CREATE", "ALTER"] == [sql.split()[0] for sql in executed]


def test_a_statement_is_known_again_by_its_place_and_by_what_the_history_has_of_it() -> None:
    order = SourceOrder()
    first, second = (order.state(_place(number), 5 * S, "dbz:0:0") for number in (5, 12))
    assert (5 * S, 5 * S + 1) == (first, second)
    assert first == order.state(_place(5), 5 * S, "dbz:0:7")
    assert first is not None
    assert second is not None
    later = SourceOrder([(second, str(_place(12))), (first, str(_place(5)))])
    assert second == later.state(_place(12), 5 * S, "dbz:0:1")
    assert [first - 1, first, second] == _moments(later, (4, 5), (11, 5), (13, 5))


def test_a_row_before_a_long_statement_is_before_it_though_its_time_is_later() -> None:
    order = SourceOrder()
    began = order.state(_place(20), 100 * S, "dbz:0:0")
    assert began is not None
    assert [began - 1, 130 * S] == _moments(order, (19, 120), (21, 130))


@pytest.mark.parametrize("server", [3, 4])
def test_rows_of_another_log_go_by_time_unless_it_is_that_of_the_statement(server: int) -> None:
    order = SourceOrder()
    order.state(_place(20), 100 * S, "dbz:0:0")

    def moment(second: int) -> int:
        return int(order.moments(np.array([_words(2, second, server)]), np.array([second * S]), "t:0")[0])

    assert 99 * S == moment(99)
    if server == 3:
        assert 100 * S - 1 == moment(100)
    else:
        assert 101 * S == moment(101)
        with pytest.raises(SourceError, match=r"may be on either side \(t:0\)"):
            moment(100)


def test_a_log_that_was_begun_anew_is_refused() -> None:
    order = SourceOrder()
    order.state(_place(20), 100 * S, "dbz:0:0")
    assert order.state(_place(15), 90 * S, "dbz:0:1") is None
    with pytest.raises(SourceError, match=r"begun anew.*dbz:0:2"):
        order.state(_place(14), 101 * S, "dbz:0:2")


def _moment(order: SourceOrder, words: list[int], time_us: int) -> int:
    return int(order.moments(np.array([words]), np.array([time_us]), "t:0", lambda: NOTHING)[0])


def test_a_row_of_another_log_goes_by_its_time_where_its_gtid_says_the_same() -> None:
    order = SourceOrder()
    order.state(_place(200, gtid="0-3-50"), 100 * S, "dbz:0:0")
    # Of a replica whose files are older: behind the statement, though its place is before.
    assert 900 * S == _moment(order, _words(51, 900, gtid="0-3-60"), 900 * S)
    assert 90 * S == _moment(order, _words(300, 90, gtid="0-3-40"), 90 * S)
    # In one log the place decides.
    assert 100 * S - 1 == _moment(order, _words(199, 130, gtid="0-3-49"), 130 * S)


@pytest.mark.parametrize("gtid, second, why", [("0-3-60", 100, "either side"), ("0-3-60", 99, "disagree")])
def test_a_row_of_another_log_is_refused_where_its_second_does_not_tell(gtid: str, second: int, why: str) -> None:
    order = SourceOrder()
    order.state(_place(200, gtid="0-3-50"), 100 * S, "dbz:0:0")
    with pytest.raises(SourceError, match=rf"{why}.*t:0"):
        _moment(order, _words(51, second, gtid=gtid), second * S)


@pytest.mark.parametrize("gtid", [None, "uuid:60"])
def test_times_decide_where_statement_and_row_tell_microseconds_unless_gtids_show_one_log(gtid: str | None) -> None:
    order = SourceOrder()
    order.state(_place(200, gtid="uuid:50"), 100 * S + 7, "dbz:0:0")
    assert 100 * S + 8 == _moment(order, _words(51, 100, gtid=gtid), 100 * S + 8)
    assert 100 * S + 7 == _moment(order, _words(201, 100, gtid="uuid:51"), 100 * S + 6)


@pytest.mark.parametrize("behind", [0, 1], ids=["one plan", "another plan"])
@IN_EACH_FORM_BY_EACH_PATH
def test_rows_of_a_log_that_was_begun_anew_are_refused(
    settings: KafkaSettings, fewest_located: int, behind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(located_batches, "FEWEST_LOCATED", fewest_located)
    made = (
        statement_message(10, 100, "CREATE TABLE t (id INT PRIMARY KEY, a INT)"),
        statement_message(502, 102, "TRUNCATE TABLE t"),
    )
    columns = ("id", "a")
    rows = [
        row_message(501, 101, columns),
        row_message(503, 103, columns),
        row_message(51, 900, columns),
        row_message(52, 901, columns),
    ]
    steps = [(STATED, *made), ("t0", *rows[: 4 - 2 * behind])], [("t0", *rows[4 - 2 * behind :])]
    plans = _plans(*steps, settings=settings)
    if behind:
        assert {1: [501, 503]} == next(plans)
    with pytest.raises(SourceError, match=r"begun anew.*t0:0.*offset 104 of file 5"):
        next(plans)


@IN_EACH_FORM
def test_what_is_sent_again_is_no_log_that_was_begun_anew(settings: KafkaSettings) -> None:
    made = (
        statement_message(10, 100, "CREATE TABLE t (id INT PRIMARY KEY, a INT)"),
        statement_message(15, 100, "TRUNCATE TABLE t"),
    )
    rows = [row_message(number, second, ("id", "a")) for number, second in ((12, 105), (14, 100), (16, 101), (12, 105))]
    later = [row_message(number, second, ("id", "a")) for number, second in ((14, 100), (16, 101), (17, 106))]
    plans = _plans([(STATED, *made), ("t0", *rows)], [("t0", *later)], settings=settings)
    # That of 16 may be another one, as it is the last.
    assert [{1: [12, 14, 16]}, {1: [16, 17]}] == [
        {table: sorted(set(ids)) for table, ids in each.items()} for each in plans
    ]


CREATED = statement_message(10, 100, "CREATE TABLE t (id INT PRIMARY KEY, a INT)")


def _rows(*numbers: int, second: int = 104) -> list[Message]:
    return [row_message(number, second, ("id", "a")) for number in numbers]


@IN_EACH_FORM
@pytest.mark.parametrize("sql", ["TRUNCATE TABLE t", "DROP TABLE t"])
def test_a_table_stops_that_a_statement_empties_which_comes_later_than_rows_behind_it(
    sql: str, settings: KafkaSettings
) -> None:
    steps: list[list[Any]] = [
        [(STATED, CREATED), ("t0", *_rows(11))],
        [("t0", *_rows(14))],
        [(STATED, statement_message(13, 104, sql))],
        [("t0", *_rows(15))],
    ]
    assert [{1: [11]}, {1: [14]}, {}, {}, {-1: [1]}] == list(_plans(*steps, settings=settings))


@pytest.mark.parametrize(
    "gtid, second, row, time_us, is_passed",
    [
        (None, 0, source_at(12, 105), 105 * S, False),
        (None, 0, source_at(14, 104), 104 * S, True),
        ("0-3-50", 0, source_at(9, 105, gtid="0-3-51"), 105 * S, True),
        ("0-3-50", 0, source_at(14, 105, gtid="0-3-49"), 105 * S, False),
        ("0-3-50", 0, source_at(9, 104, gtid="0-4-51"), 104 * S, True),
        ("0-3-50", 0, source_at(9, 103, gtid="0-4-51"), 103 * S, False),
        ("uuid:50", 5, source_at(14, 104, gtid="uuid:1000000"), 104 * S + 4, False),
        ("uuid:50", 5, source_at(14, 104, gtid="uuid:7"), 104 * S + 6, True),
        ("uuid:50", 5, source_at(12, 106, gtid="uuid:49"), 106 * S + 6, False),
    ],
)
@pytest.mark.parametrize("ahead", [0, 60])
def test_a_partition_has_passed_a_statement(
    gtid: str | None, second: int, row: dict[str, Any], time_us: int, is_passed: bool, ahead: int
) -> None:
    repeats, places = Repeats(None), Places(1)
    places.note(0, compact({"source": row, "op": "c"}), time_us)
    repeats.take(places, batch_of([(None, b"{}")]).values)
    assert repeats.mark is not None
    source = str(_place(13, gtid=gtid)._replace(by_second=not second))
    place, own_us = Place(gtid="dbz:0:1", file="dbz:0", offset=1, ordinal=0), 104 * S + second
    context = StatementContext(database="shop", charset="utf8mb4", collation="utf8mb4_bin", time_us=own_us)
    # Behind a server whose clock was ahead, the moment is later than the time.
    moment_us = own_us + ahead * S
    statement = Statement(place=place, event_time_us=moment_us, sql="TRUNCATE t", context=context, source=source)
    ((_, found),) = with_passed([(moment_us, statement)], {"t0:0": repeats.mark})
    assert isinstance(found, Statement)
    assert is_passed == bool(found.passed_by)


MADE = "CREATE TABLE t (id INT PRIMARY KEY, a INT)"
SWAPPED = "RENAME TABLE t TO old, u TO t"


@pytest.mark.parametrize("sqls", [("DROP TABLE t", MADE), (SWAPPED,)], ids=["made anew", "swapped"])
def test_a_table_stops_that_takes_the_place_of_one_later_than_its_first_rows(sqls: tuple[str, ...]) -> None:
    other = statement_message(10, 100, "CREATE TABLE u (id INT PRIMARY KEY, a INT)")
    late = [statement_message(12 + number, 103, sql) for number, sql in enumerate(sqls)]
    steps: list[list[Any]] = [
        [(STATED, CREATED, other), ("t0", *_rows(11))],
        [("t0", *_rows(15))],
        [(STATED, *late), ("t0", *_rows(16))],
        [("t0", *_rows(17))],
    ]
    *plans, stopped = list(_plans(*steps))
    assert [{1: [11]}, {1: [15]}, {}, {}] == plans
    assert 1 in stopped[-1]


def test_tables_stop_that_a_chain_of_renames_parts_later_than_their_first_rows() -> None:
    steps: list[list[Any]] = [
        [
            (STATED, CREATED, statement_message(10, 100, "CREATE TABLE u (id INT PRIMARY KEY, a INT)")),
            ("t0", *_rows(11)),
        ],
        [("u0", _of_table("u", row_message(13, 104, ("id", "a")))), ("t0", *_rows(15))],
        [
            (STATED, statement_message(14, 103, "RENAME TABLE t TO old, u TO t, t TO v")),
            ("v0", _of_table("v", row_message(16, 105, ("id", "a")))),
        ],
        [("t0", *_rows(17))],
    ]
    *plans, stopped = list(_plans(*steps))
    assert [{1: [11]}, {1: [15], 2: [13]}] == [each for each in plans if each]
    assert {1, 2} <= set(stopped[-1])


@pytest.mark.parametrize("topic, number", [("t0", 12), ("t1", 14)], ids=["before it", "of another table's topic"])
def test_a_statement_that_comes_later_than_other_rows_is_executed(topic: str, number: int) -> None:
    another = json.loads(row_message(number, 104, ("id", "a"))[1] or b"")
    another["payload"]["source"]["table"] = "another" if topic == "t1" else "t"
    steps: list[list[Any]] = [
        [(STATED, CREATED), ("t0", *_rows(11))],
        [(topic, (_rows(number)[0][0], compact(another)))],
        [(STATED, statement_message(13, 104, "TRUNCATE TABLE t"))],
        [("t0", *_rows(15))],
    ]
    found = list(_plans(*steps))
    assert {1: [15]} == found[-1]


def _copied(number: int, second: int, key: int) -> Message:
    """A row of a snapshot, which names no server."""
    message = json.loads(row_message(key, second, ("id", "a"))[1] or b"")
    message["payload"] |= {"op": "r", "source": {**source_at(number, second, 0), "table": "t", "snapshot": "true"}}
    return _rows(key)[0][0], compact(message)


@IN_EACH_FORM_BY_EACH_PATH
def test_rows_of_a_snapshot_are_before_statements_behind_its_place_though_they_are_read_later(
    settings: KafkaSettings, fewest_located: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(located_batches, "FEWEST_LOCATED", fewest_located)
    truncated, elsewhere = (
        statement_message(20, 103, "TRUNCATE TABLE t"),
        statement_message(21, 104, "TRUNCATE TABLE elsewhere"),
    )
    copied = [_copied(12, second, key) for second, key in ((102, 1), (103, 2), (104, 3), (106, 4))]
    step = [(STATED, CREATED, truncated, elsewhere), ("t0", *copied, *_rows(22, second=107))]
    assert [{1: [1, 2, 3, 4, 22]}] == list(_plans(step, settings=settings))
    steps = [(STATED, CREATED), ("t0", *_rows(11))], [(STATED, truncated), ("t0", *copied, *_rows(22))]
    topics = _plans(*steps, settings=settings)
    assert [{1: [11]}, {1: [1, 2, 3, 4, 22]}] == list(topics)


def test_a_row_that_names_no_server_goes_by_time_where_logs_of_several_have_its_files_name() -> None:
    order = SourceOrder()
    order.state(_place(20), 100 * S, "dbz:0:0")
    assert 100 * S - 1 == _moment(order, _words(12, 105, server=0), 105 * S)
    order.state(_place(20, server=4), 102 * S, "dbz:0:1")
    assert 105 * S == _moment(order, _words(12, 105, server=0), 105 * S)
    with pytest.raises(SourceError, match="either side"):
        _moment(order, _words(12, 102, server=0), 102 * S)


def test_a_snapshot_of_a_log_that_was_begun_anew_is_refused() -> None:
    anew = {**source_at(12, 900, 0), "snapshot": "true"}
    sql = "CREATE TABLE u (id INT PRIMARY KEY)"
    made = None, json.dumps({"source": anew, "databaseName": "shop", "ddl": sql}).encode()
    first = [(STATED, CREATED, statement_message(502, 102, "TRUNCATE TABLE t")), ("t0", *_rows(503))]
    plans = _plans(first, [(STATED, made)])
    next(plans)
    with pytest.raises(SourceError, match=r"begun anew.*dbz:0:2"):
        next(plans)


def test_statements_of_one_second_are_known_again_where_the_first_has_no_entry() -> None:
    nothing = statement_message(12, 105, "DROP TABLE IF EXISTS u")
    made = statement_message(13, 105, "CREATE TABLE u (id INT PRIMARY KEY)")
    steps: list[list[Any]] = [
        [(STATED, CREATED, nothing), ("t0", *_rows(11))],
        [(STATED, made), ("t0", *_rows(14, second=106))],
        [(STATED, nothing, made), ("t0", *_rows(15, second=106))],
    ]
    assert [{1: [11]}, {1: [14]}, {1: [15]}] == list(_plans(*steps))


def test_offsets_that_begin_anew_within_a_file_are_refused() -> None:
    order = SourceOrder()
    order.state(_place(20), 100 * S, "dbz:0:0")
    words = np.array([[1, 7, 0, 2, offset, 0] for offset in (4_294_967_000, 4_294_967_200, 500)])
    order.check_goes_on(words[:2], np.array([101 * S] * 2), Newest(7, 0, 2 << 32, 101 * S), "t:0")
    with pytest.raises(SourceError, match=r"begun anew.*t:0.*offset 500 of file 2"):
        order.check_goes_on(words, np.array([101 * S] * 3), Newest(7, 0, 2 << 32, 101 * S), "t:0")
    with pytest.raises(SourceError, match="begun anew"):
        order.check_goes_on(words[2:], np.array([101 * S]), Newest(7, 0, (2 << 32) + 4_294_967_200, 101 * S), "t:0")


@IN_EACH_FORM_BY_EACH_PATH
def test_rows_of_another_server_between_those_of_one_go_by_their_own(
    settings: KafkaSettings, fewest_located: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(located_batches, "FEWEST_LOCATED", fewest_located)
    key, value = row_message(13, 106, ("id", "a"))
    other = key, (value or b"").replace(b'"server_id":3', b'"server_id":4')
    rows = [*_rows(11, 12), other, *_rows(21, second=107)]
    steps: list[list[Any]] = [
        [(STATED, CREATED, statement_message(20, 104, "TRUNCATE TABLE t"))],
        [("t0", *rows)],
    ]
    # That of the other server was written later than the statement, for all that its time says.
    assert {1: [13, 21]} == list(_plans(*steps, settings=settings))[-1]


def test_what_is_read_once_more_has_its_statements_though_the_history_has_later_ones() -> None:
    last = str(_place(20)._replace(by_second=True))
    order = SourceOrder([(100 * S, last)], goes_on=False)
    assert [90 * S, 100 * S - 1] == [
        order.state(_place(number), second * S, "dbz:0:0") for number, second in ((14, 90), (15, 100))
    ]
    order.check_snapshot(_place(12), 900 * S, "dbz:0:1")
    assert SourceOrder([(100 * S, last)]).state(_place(14), 90 * S, "dbz:0:0") is None


def test_seconds_of_a_snapshot_say_where_its_rows_are_among_statements_with_microseconds_but_in_their_own() -> None:
    order = SourceOrder()
    order.state(_place(200, gtid="uuid:50"), 100 * S + 7, "dbz:0:0")
    copied = place_of(compact({"source": source_at(51, 900, 0), "op": "r"}))
    assert copied is not None
    # A snapshot of another replica stands before, and was read later.
    assert [99 * S, 100 * S, 101 * S] == [_moment(order, copied, second * S) for second in (99, 100, 101)]
    behind = place_of(compact({"source": source_at(201, 100, 0), "op": "r"}))
    assert behind is not None
    assert 100 * S + 7 == _moment(order, behind, 100 * S)


def _of_table(table: str, message: Message) -> Message:
    key, value = message
    found = json.loads(value or b"")
    found["payload"]["source"]["table"] = table
    return key, compact(found)


NOTHING_DROPPED = statement_message(12, 105, "DROP TABLE IF EXISTS u")
U_MADE = statement_message(13, 105, "CREATE TABLE u (id INT PRIMARY KEY, a INT)")


def test_a_statement_that_had_nothing_to_do_is_not_executed_when_the_same_scan_has_it_again() -> None:
    altered = statement_message(16, 107, "ALTER TABLE u ADD COLUMN b INT")
    rows = [
        _of_table("u", row_message(number, second, columns))
        for number, second, columns in (
            (14, 106, ("id", "a")),
            (15, 106, ("id", "a")),
            (17, 108, ("id", "a", "b")),
        )
    ]
    step = (STATED, CREATED, NOTHING_DROPPED, U_MADE, altered, NOTHING_DROPPED, U_MADE, altered), ("t1", *rows)
    assert [{2: [14, 15, 17]}] == list(_plans([*step]))


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_scan_takes_each_statement_of_a_place_once(goes_on: bool) -> None:
    both = [statement_message(12, 105, f"DROP TABLE IF EXISTS {name}") for name in ("u", "v")]
    settings = KafkaSettings(brokers="", topics=("t0",), schema_topic=STATED)
    scan = TopicScan({(STATED, 0): (0, 7)}, settings, order=SourceOrder(goes_on=goes_on))
    scan.take((STATED, 0), batch_of([CREATED, *both, U_MADE, *both, U_MADE]))
    assert [0, 1, 2, 3] == [item.place.offset for _, item in scan.found]
    scan.complete()
    assert {"repeated": 3} == dict(scan.ranges()[0].passed_over)


def _moved() -> tuple[SourceOrder, SourceOrder]:
    """Of statements that two replicas tell, whose files have other numbers: what has read them, and what the history tells."""
    one, another = _place(500, gtid="uuid:50"), _place(90, gtid="uuid:60")
    order = SourceOrder()
    assert 100 * S + 7 == order.state(one, 100 * S + 7, "dbz:0:0")
    assert 200 * S + 8 == order.state(another, 200 * S + 8, "dbz:0:1")
    return order, SourceOrder([(100 * S + 7, str(one)), (200 * S + 8, str(another))])


@pytest.mark.parametrize("known", [0, 1], ids=["read", "from the history"])
def test_a_statement_of_another_replica_stands_by_its_microseconds(known: int) -> None:
    order = _moved()[known]
    rows = [(501, 51, 150 * S + 1), (89, 59, 200 * S + 7), (91, 61, 200 * S + 9), (510, 62, 201 * S + 1)]
    for number, transaction, time_us in rows:
        assert time_us == _moment(order, _words(number, 0, gtid=f"uuid:{transaction}"), time_us)
    assert order.has(_words(90, 200))
    # A snapshot tells seconds.
    copied = place_of(compact({"source": source_at(91, 0, 0), "op": "r"}))
    assert copied is not None
    assert 201 * S == _moment(order, copied, 201 * S)
    with pytest.raises(SourceError, match="either side"):
        _moment(order, copied, 200 * S)


@pytest.mark.parametrize("known", [0, 1], ids=["read", "from the history"])
def test_what_another_replica_sends_again_has_the_moments_it_had(known: int) -> None:
    order = _moved()[known]
    assert 300 * S == order.state(_place(502, gtid="uuid:70"), 300 * S, "dbz:0:2")
    again = [(_place(80, gtid="uuid:50"), 100 * S + 7), (_place(90, gtid="uuid:60"), 200 * S + 8)]
    for place, time_us in (*again, (_place(500, gtid="uuid:50"), 100 * S + 7)):
        assert time_us == order.state(place, time_us, "dbz:0:3")
        assert time_us == order.state(place._replace(base="mysql-bin."), time_us, "dbz:0:4")


def test_what_another_replica_sends_again_is_known_by_its_gtid_where_seconds_are_told() -> None:
    order = SourceOrder()
    moments = [order.state(_place(number, gtid=f"0-3-{number}"), 100 * S, "dbz:0:0") for number in (50, 51)]
    for base in ("binlog.", "mysql-bin."):
        again = [_place(number - 40, gtid=f"0-3-{number}")._replace(base=base) for number in (50, 51)]
        assert moments == [order.state(place, 100 * S, "dbz:0:2") for place in again]


def test_a_log_that_counts_its_transactions_anew_is_refused_though_microseconds_are_told() -> None:
    order = SourceOrder()
    order.state(_place(500, gtid="uuid:50"), 100 * S + 7, "dbz:0:0")
    order.state(_place(510, gtid="other:50"), 110 * S + 7, "dbz:0:1")
    for gtid in ("uuid:3", "uuid:50", "other:3"):
        with pytest.raises(SourceError, match=r"begun anew.*dbz:0:2"):
            order.state(_place(14, gtid=gtid), 900 * S + 1, "dbz:0:2")


def _told_by_microsecond(message: Message, time_us: int, gtid: str) -> Message:
    key, value = message
    found = json.loads(value or b"")
    source = found.get("payload", found)["source"]
    source |= {"ts_ms": time_us // 1000, "ts_us": time_us, "gtid": gtid}
    return key, compact(found)


@IN_EACH_FORM
def test_rows_are_on_their_side_of_a_statement_that_another_replica_tells(settings: KafkaSettings) -> None:
    sql = "ALTER TABLE t RENAME COLUMN a TO b", "DROP TABLE t"
    first = _told_by_microsecond(CREATED, 90 * S + 1, "uuid:40")
    renamed = _told_by_microsecond(statement_message(500, 100, sql[0]), 100 * S + 7, "uuid:50")
    dropped = _told_by_microsecond(statement_message(90, 200, sql[1]), 200 * S + 8, "uuid:60")
    rows = [
        _told_by_microsecond(row_message(number, 0, ("id", column)), time_us, f"uuid:{transaction}")
        for number, column, time_us, transaction in (
            (499, "a", 99 * S + 1, 49),
            (501, "b", 101 * S + 1, 51),
            (89, "b", 200 * S + 7, 59),
            (91, "b", 200 * S + 9, 61),
        )
    ]
    assert [{1: [499, 501]}, {1: [89], 2: [91]}, {2: [92]}] == list(
        _plans(
            [(STATED, first, renamed), ("t0", *rows[:2])],
            [(STATED, dropped), ("t0", *rows[2:])],
            [
                (STATED, renamed, dropped),
                ("t0", _told_by_microsecond(row_message(92, 0, ("id", "b")), 300 * S + 1, "uuid:62")),
            ],
            settings=settings,
        )
    )


def _asked(moment: Callable[[], Any]) -> int | str:
    """What a question for a moment is answered by: the moment, or the error."""
    try:
        return int(np.ravel(moment())[0])
    except SourceError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(30))
def test_the_moment_of_a_row_is_the_one_that_it_has_among_others(seed: int) -> None:
    numbers = random.Random(seed)
    servers, domains = (3, 4) if seed % 3 == 0 else (3,), ("uuid:", "other:", "")

    def told(number: int, unit_us: int) -> tuple[str | None, int]:
        """A GTID and a time that mostly go on with places."""
        gtid = numbers.choice(domains)
        off = numbers.choice((0, 0, 0, 0, -7, 7))
        late = numbers.choice((0, 0, 0, 40))
        time_us = 100 * S + (number + off + late) * S // 4
        return f"{gtid}{number + off}" if gtid else None, time_us // unit_us * unit_us

    order, units = SourceOrder(), (S,) if seed % 2 else (1, 1, S)
    for number in sorted(numbers.sample(range(20, 90), 8)):
        gtid, time_us = told(number, numbers.choice(units))
        place = _place(number, numbers.choice(servers), gtid)
        with contextlib.suppress(SourceError):
            order.state(place, time_us + (numbers.choice(units) == 1), "dbz:0:0")
    answers = list[int | str]()
    for number in numbers.choices(range(10, 100), k=60):
        gtid, time_us = told(number, numbers.choice(units))
        words = _words(number, 0, numbers.choice((*servers, 0, 9)), gtid)
        words = numbers.choice((words, words, words, list(NO_PLACE), [*words[:4], 0, 0]))
        newest = numbers.choice((None, lambda: NOTHING, partial(Newest, words[4], 50, 0, 100 * S)))
        answers.append(_asked(partial(order.moment, words, time_us, "t:0", newest)))
        several = np.array([words], np.int64), np.array([time_us], np.int64)
        assert answers[-1] == _asked(partial(order.moments, *several, "t:0", newest))
    assert len(set(answers)) > 5


def _scan_of(name: str, messages: list[Message], order: SourceOrder) -> tuple[TopicScan, list[Message]]:
    """A scan of messages of one partition, and these as the format *name* has them."""
    registered = RegisteredEvents(name)
    made = [registered.message(each) for each in messages]
    settings = KafkaSettings(brokers="", topics=("t0",), schema_topic=STATED, format=name)
    return TopicScan({("t0", 0): (0, len(made))}, settings, registered.writers, order=order), made


@pytest.mark.parametrize("name", ["debezium_json", "debezium_avro"])
@pytest.mark.parametrize("kind", ["snapshot", "without GTIDs", "with GTIDs"])
def test_places_of_rows_that_follow_each_other_are_found_without_looking_at_each(
    kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [_copied(12, 100 + number // 100, number) for number in range(300)]
    if kind != "snapshot":
        rows = [row_message(number, 101, ("id", "a")) for number in range(300, 600)]
    if kind == "with GTIDs":
        rows = [_told_by_microsecond(row, 101 * S + number, f"uuid:{number}") for number, row in enumerate(rows)]
    scan, messages = _scan_of(name, rows, SourceOrder([(102 * S, str(_place(2000)))]))
    looked_up: list[bytes] = []
    payload_of = scan._sent.payload

    def counted(value: bytes) -> Any:
        looked_up.append(value)
        return payload_of(value)

    monkeypatch.setattr(scan, "_sent", scan._sent._replace(payload=counted))
    monkeypatch.setattr(scan._statements, "_payload_of", counted)
    scan.take(("t0", 0), batch_of(messages))
    assert 1 <= len(looked_up) < 10


@pytest.mark.parametrize("name", ["debezium_json", "debezium_json_schema", "debezium_avro"])
def test_messages_that_are_read_one_by_one_are_parsed_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(located_batches, "FEWEST_LOCATED", 1_000_000)
    scan, messages = _scan_of(name, _rows(*range(300, 320)), SourceOrder([(102 * S, str(_place(2000)))]))

    def parsed_again(_: bytes) -> Any:
        raise AssertionError

    monkeypatch.setattr(scan, "_sent", scan._sent._replace(payload=parsed_again))
    monkeypatch.setattr(scan._statements, "_payload_of", parsed_again)
    scan.take(("t0", 0), batch_of(messages))
    assert scan.marks()["t0:0"].offset == source_at(319, 0)["pos"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["debezium_json", "debezium_json_schemaless", "debezium_avro"])
def test_places_are_the_same_whether_rows_are_located_or_looked_at_one_by_one(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = random.Random(seed)
    messages: list[Message] = []
    server, gtid = 3, "uuid:"
    for number in range(400):
        if numbers.random() < 0.1:
            server, gtid = numbers.choice((3, 4, 30)), numbers.choice(("uuid:", "other:", ""))
        if numbers.random() < 0.3:
            messages.append(_copied(numbers.choice((12, 13, 120)), 100, number))
            continue
        key, value = row_message(number, 101, ("id", "a"))
        found = json.loads(value or b"")
        found["payload"]["source"] |= {"server_id": server, "gtid": f"{gtid}{number}" if gtid else None}
        if numbers.random() < 0.1:
            files = (
                "no number",
                "mysql-bin.000007",
                "caf\u00e9.000001",
                "binlog.2147483648",
                "binlog.999999999999999999",
            )
            found["payload"]["source"]["file"] = numbers.choice(files)
        if numbers.random() < 0.05:
            found["payload"]["source"]["pos"] = numbers.choice((-1, (1 << 63) - 1))
        messages.append((key, compact(found)))
    if name == "debezium_json_schemaless":
        messages = [
            (compact(json.loads(key or b"")["payload"]), compact(json.loads(value or b"")["payload"]))
            for key, value in messages
        ]
    found_words: list[NDArray[np.int64]] = []

    def noted(order: SourceOrder, words: NDArray[np.int64], times_us: NDArray[np.int64], *_: Any) -> NDArray[np.int64]:
        found_words.append(words)
        return times_us

    monkeypatch.setattr(SourceOrder, "moments", noted)
    scan, sent = _scan_of(name, messages, SourceOrder([(1, str(_place(1)))]))
    monkeypatch.setattr(scan._statements, "_moment_us", lambda *_: 1)
    monkeypatch.setattr(Crossings, "of", lambda *_: [])
    scan.take(("t0", 0), batch_of(sent))
    expected = [list(place_of(value or b"") or NO_PLACE) for _, value in messages]
    # What tells no schema is inferred from a message that is read alone.
    assert expected[int(name == "debezium_json_schemaless") :] == np.concatenate(found_words).tolist()


NO_SERVERS = [{"file": "binlog.2147483648"}, {"file": "binlog.999999999999999999"}, {"pos": 1 << 63}, {"pos": 10**30}]


@pytest.mark.parametrize("strange", NO_SERVERS, ids=str)
@pytest.mark.parametrize("name", ["debezium_json", "debezium_json_schema"])
def test_a_row_at_a_place_that_no_server_has_goes_by_its_time(name: str, strange: dict[str, Any]) -> None:
    key, value = row_message(11, 102, ("id", "a"))
    found = json.loads(value or b"")
    found["payload"]["source"] |= {"gtid": "uuid:7", **strange}
    for second, is_refused in ((102, True), (103, False)):
        found["payload"]["source"]["ts_ms"] = 1000 * second
        scan, messages = _scan_of(name, [(key, compact(found))], SourceOrder([(102 * S, str(_place(2000)))]))
        with pytest.raises(SourceError, match="of one second") if is_refused else contextlib.nullcontext():
            scan.take(("t0", 0), batch_of(messages))
    assert [103 * S] == [moment_us for moment_us, _ in scan.found]


@pytest.mark.parametrize("strange", NO_SERVERS, ids=str)
def test_a_statement_at_a_place_that_no_server_has_is_placed_by_its_time(strange: dict[str, Any]) -> None:
    told = {"source": source_at(10, 100) | strange, "databaseName": "shop", "ddl": MADE}
    scan = TopicScan({(STATED, 0): (0, 1)}, SETTINGS)
    with pytest.raises(SourceError, match="placed by their time"):
        scan.take((STATED, 0), batch_of([(None, compact(told))]))


def test_a_row_of_a_dropped_table_that_is_sent_again_takes_no_later_rows_along() -> None:
    anew = [statement_message(14, 104, "DROP TABLE t"), statement_message(15, 105, MADE)]
    again = [
        row_message(number, second, ("id", "a")) for number, second in ((13, 103), (16, 106), (17, 107), (18, 107))
    ]
    steps: list[list[Any]] = [
        [(STATED, CREATED), ("t0", *_rows(12, 13, second=103))],
        [(STATED, *anew), ("t0", *_rows(16, second=106))],
        [(STATED, *anew), ("t0", *again)],
        [("t0", *_rows(19, second=108))],
    ]
    assert [{1: [12, 13]}, {2: [16]}, {2: [16, 17, 18]}, {2: [19]}] == list(_plans(*steps))


def _ticdc(second: int, key: int, column: str = "a") -> Message:
    row = {"id": str(key), column: "1"}
    told = {"database": "shop", "table": "t", "type": "INSERT", "isDdl": False, "es": 1000 * second, "pkNames": ["id"]}
    return None, compact({**told, "mysqlType": {"id": "int", column: "int"}, "data": [row], "old": None})


def _ticdc_ddl(second: int, sql: str) -> Message:
    told = {"database": "shop", "table": "t", "type": "QUERY", "isDdl": True, "es": 1000 * second, "sql": sql}
    return None, compact({**told, "data": None, "old": None})


@pytest.mark.parametrize("name", ["canal_json", "ticdc_canal_json"])
def test_a_row_of_a_dropped_table_that_comes_by_another_partition_takes_no_later_rows_along(name: str) -> None:
    anew = [_ticdc_ddl(104, "DROP TABLE t"), _ticdc_ddl(105, MADE)]
    again = [_ticdc(second, key) for second, key in ((103, 13), (106, 16), (107, 17), (107, 18))]
    steps: list[list[Any]] = [
        [("t0", _ticdc_ddl(100, MADE), _ticdc(102, 12)), ("t1", _ticdc(103, 13))],
        [("t0", *anew), ("t1", _ticdc(106, 16))],
        [("t1", *again)],
        [("t1", _ticdc(108, 19))],
    ]
    settings = KafkaSettings(brokers="", topics=("t*",), format=name)
    assert [{1: [12, 13]}, {2: [16]}, {2: [16, 17, 18]}, {2: [19]}] == list(_plans(*steps, settings=settings))


def test_a_row_of_a_table_that_was_dropped_in_the_same_plan_is_none_of_the_table_that_is_made_anew() -> None:
    anew = [_ticdc_ddl(104, "DROP TABLE t"), _ticdc_ddl(105, "CREATE TABLE t (id INT PRIMARY KEY, b INT)")]
    steps: list[list[Any]] = [
        [("t0", _ticdc_ddl(100, MADE), _ticdc(102, 12)), ("t1", _ticdc(103, 13))],
        [("t0", *anew), ("t1", _ticdc(106, 16, "b"), _ticdc(103, 13), _ticdc(107, 17, "b"))],
    ]
    settings = KafkaSettings(brokers="", topics=("t*",), format="ticdc_canal_json")
    assert [{1: [12, 13]}, {2: [16, 17]}] == list(_plans(*steps, settings=settings))


def test_a_row_of_a_renamed_table_that_comes_by_another_partition_stays_with_it() -> None:
    other = _ticdc_ddl(101, "CREATE TABLE u (id INT PRIMARY KEY, a INT)")
    again = [_ticdc(second, key) for second, key in ((103, 13), (106, 16), (107, 17))]
    steps: list[list[Any]] = [
        [("t0", _ticdc_ddl(100, MADE), other, _ticdc(102, 12)), ("t1", _ticdc(103, 13))],
        [("t0", _ticdc_ddl(104, SWAPPED)), ("t1", _ticdc(106, 16))],
        [("t1", *again)],
    ]
    settings = KafkaSettings(brokers="", topics=("t*",), format="ticdc_canal_json")
    assert [{1: [12, 13]}, {2: [16]}, {1: [13], 2: [16, 17]}] == list(_plans(*steps, settings=settings))


@pytest.mark.parametrize("anew", [("RENAME TABLE u TO t",), ("DROP TABLE t", MADE)], ids=["renamed", "made"])
@pytest.mark.parametrize("limit_bytes", [None, 300])
@pytest.mark.parametrize("others", ["t0", "t1"])
def test_rows_of_a_table_that_stopped_in_an_earlier_plan_are_none_of_the_table_that_gets_its_name(
    anew: tuple[str, ...], limit_bytes: int | None, others: str
) -> None:
    made = [statement_message(10, 101, MADE), statement_message(11, 102, "CREATE TABLE u (id INT PRIMARY KEY, a INT)")]
    steps: list[list[Any]] = [
        [(STATED, *made), ("t0", *_rows(12, second=103))],
        [(STATED, statement_message(13, 104, "ALTER TABLE t FROBNICATE"))],
        [("t0", *_rows(14, second=105))],
        [
            (STATED, *(statement_message(20 + at, 110, sql) for at, sql in enumerate(anew))),
            ("t0", *_rows(15, 16, second=106)),
            (others, *_rows(30, second=112)),
        ],
        [("t2", *_rows(17, second=107), *_rows(31, second=113))],
    ]
    *found, stopped = _plans(*steps, limit_bytes=limit_bytes)
    new = 3 if MADE in anew else 2
    assert [{1: [12]}, {new: [30]}, {new: [31]}] == [each for each in found if each]
    assert {-1: [1]} == stopped


U = "CREATE TABLE u (id INT PRIMARY KEY, a INT)"


@pytest.mark.parametrize("limit_bytes", [None, 300])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    "sql, name", [("RENAME TABLE t TO v, u TO t", "v"), ("RENAME TABLE t TO tmp, u TO t, tmp TO u", "u")]
)
def test_a_table_that_gets_the_name_of_a_stopped_one_goes_on_and_the_stopped_one_is_told_under_its_new_name(
    sql: str, name: str, late: bool, limit_bytes: int | None
) -> None:
    steps: list[list[Any]] = [
        [(STATED, statement_message(10, 101, MADE), statement_message(11, 102, U)), ("t0", *_rows(12, second=103))],
        [("u0", _of_table("u", row_message(13, 103, ("id", "a"))))],
        [(STATED, statement_message(14, 104, "ALTER TABLE t FROBNICATE"))],
        [
            (STATED, statement_message(20, 110, sql)),
            ("t0", *_rows(15, 16, second=106), *_rows(30, second=112)),
            (f"{name}0", _of_table(name, row_message(31, 113, ("id", "a")))),
        ],
        [("t0", *_rows(32, second=114)), (f"{name}0", _of_table(name, row_message(33, 115, ("id", "a"))))],
    ]
    if late:
        steps.append([("t2", *_rows(17, second=107), *_rows(34, second=116))])
    executed: list[str] = []
    *found, stopped = _plans(*steps, limit_bytes=limit_bytes, executed=executed)
    rows = [{1: [12]}, {2: [13]}, {2: [30]}, {2: [32]}, {2: [34]}]
    assert rows[: 5 if late else 4] == [each for each in found if each]
    assert {-1: [1, 0]} == stopped
    assert sql in executed


@pytest.mark.parametrize("sql", ["RENAME TABLE t TO v, u TO t", "RENAME TABLE t TO tmp, u TO t, tmp TO u"])
def test_a_table_stops_that_gets_the_name_of_a_stopped_one_later_than_its_first_rows(sql: str) -> None:
    steps: list[list[Any]] = [
        [(STATED, statement_message(10, 101, MADE), statement_message(11, 102, U)), ("t0", *_rows(12, second=103))],
        [("u0", _of_table("u", row_message(13, 103, ("id", "a"))))],
        [(STATED, statement_message(14, 104, "ALTER TABLE t FROBNICATE"))],
        [("t0", *_rows(30, second=112))],
        [(STATED, statement_message(20, 110, sql))],
        [("t0", *_rows(32, second=114))],
    ]
    *found, stopped = _plans(*steps)
    assert [{1: [12]}, {2: [13]}] == [each for each in found if each]
    assert {1, 2} <= set(stopped[-1])


def test_a_table_gets_the_name_of_one_that_no_message_has_told() -> None:
    steps: list[list[Any]] = [
        [(STATED, statement_message(11, 102, U)), ("u0", _of_table("u", row_message(13, 103, ("id", "a"))))],
        [(STATED, statement_message(20, 110, "RENAME TABLE t TO v, u TO t"))],
        [("t0", *_rows(32, second=114)), ("v0", _of_table("v", row_message(33, 115, ("id", "a"))))],
    ]
    assert [{1: [13]}, {1: [32], 2: [33]}] == [each for each in _plans(*steps) if each]


def test_a_row_from_before_a_rename_stays_with_its_table_though_a_stopped_one_has_its_name() -> None:
    of_v = [_of_table("v", row_message(key, 100 + key, ("id", "a"))) for key in (21, 23)]
    steps: list[list[Any]] = [
        [(STATED, statement_message(10, 101, U), statement_message(11, 102, MADE))],
        [("u0", _of_table("u", row_message(12, 103, ("id", "a")))), ("t0", *_rows(13, second=103))],
        [(STATED, statement_message(14, 104, "ALTER TABLE t FROBNICATE"))],
        [(STATED, statement_message(20, 110, "RENAME TABLE u TO v, t TO u")), ("v0", of_v[0])],
        [("u1", _of_table("u", row_message(15, 106, ("id", "a"))))],
        [("v0", of_v[1]), ("u1", _of_table("u", row_message(24, 124, ("id", "a"))))],
    ]
    *found, stopped = _plans(*steps)
    assert {1: [12, 21, 15, 23], 2: [13]} == _joined(found)
    assert {-1: [2, 0]} == stopped


def test_a_table_goes_that_is_dropped_together_with_a_stopped_one() -> None:
    steps: list[list[Any]] = [
        [(STATED, statement_message(10, 101, MADE), statement_message(11, 102, U)), ("t0", *_rows(12, second=103))],
        [(STATED, statement_message(14, 104, "ALTER TABLE t FROBNICATE"))],
        [(STATED, statement_message(20, 110, "DROP TABLE t, u"), statement_message(21, 111, U))],
        [("u0", _of_table("u", row_message(33, 115, ("id", "a"))))],
    ]
    *found, stopped = _plans(*steps)
    assert [{1: [12]}, {3: [33]}] == [each for each in found if each]
    assert {-1: [1]} == stopped


@pytest.mark.parametrize("limit_bytes", [None, 300])
def test_a_name_that_a_stopped_table_had_for_a_while_can_be_that_of_another_one(limit_bytes: int | None) -> None:
    def rows(*keys_at: tuple[int, int]) -> list[Message]:
        return [_of_table("v", row_message(key, second, ("id", "a"))) for key, second in keys_at]

    steps: list[list[Any]] = [
        [(STATED, statement_message(10, 101, MADE), statement_message(11, 102, U)), ("t0", *_rows(12, second=103))],
        [(STATED, statement_message(14, 104, "ALTER TABLE t FROBNICATE"))],
        [(STATED, statement_message(20, 110, "RENAME TABLE t TO v"))],
        [("v0", *rows((21, 111)))],
        [
            (STATED, statement_message(30, 115, "RENAME TABLE v TO w, u TO v")),
            ("v0", *rows((22, 112), (31, 116), (32, 117))),
        ],
        [("v1", *rows((23, 113), (33, 118)))],
    ]
    *found, stopped = _plans(*steps, limit_bytes=limit_bytes)
    assert [1, 12] == [*found[0], *found[0][1]]
    assert [(2, [31, 32, 33])] == list(_joined(found[1:]).items())
    assert {-1: [1, 0, 0]} == stopped


@pytest.mark.parametrize("sql", ["RENAME TABLE u TO v, t TO u", "RENAME TABLE u TO v, never TO u"])
@pytest.mark.parametrize("at_once", [False, True])
def test_rows_under_a_name_are_not_those_of_the_table_that_had_it_before_one_that_is_not_known(
    sql: str, at_once: bool
) -> None:
    def rows(table: str, *keys: int) -> list[Any]:
        return ["t0", *(_of_table(table, row_message(key, 100 + key, ("id", "a"))) for key in keys)]

    steps: list[list[Any]] = [
        [(STATED, statement_message(10, 101, MADE), statement_message(11, 102, U)), rows("t", 12)],
        [(STATED, statement_message(14, 104, "ALTER TABLE t FROBNICATE"))],
        [
            rows("u", 15),
            (STATED, statement_message(20, 120, sql)),
            rows("u", 21),
            rows("v", 22),
            rows("u", 23),
            rows("v", 24),
        ],
    ]
    if not at_once:
        steps[2:] = [steps[2][:2], steps[2][2:4], steps[2][4:]]
    *found, stopped = _plans(*steps)
    assert {1: [12], 2: [15, 22, 24]} == _joined(found)
    assert 0 in stopped[-1]


@pytest.mark.parametrize("limit_bytes", [None, 300])
def test_rows_of_a_table_that_stopped_are_told_where_another_gets_its_name_without_any(
    limit_bytes: int | None,
) -> None:
    of_u = [_of_table("u", row_message(key, 100 + key, ("id", "a"))) for key in (15, 18)]
    steps: list[list[Any]] = [
        [(STATED, statement_message(10, 101, MADE), statement_message(11, 102, U)), ("t0", *_rows(12, second=103))],
        [(STATED, statement_message(14, 104, "ALTER TABLE t FROBNICATE"))],
        [
            ("t0", of_u[0], *_rows(16, second=116)),
            (STATED, statement_message(20, 120, "RENAME TABLE t TO v, u TO t")),
            ("t0", of_u[1]),
        ],
        [("t0", *_rows(31, second=131))],
    ]
    *found, stopped = _plans(*steps, limit_bytes=limit_bytes)
    assert {1: [12], 2: [15, 18, 31]} == _joined(found)
    assert {-1: [1, 0]} == stopped


@pytest.mark.parametrize("topics", [("t0", "v0"), ("t0", "t0")], ids=["of their own", "one"])
@pytest.mark.parametrize("sent_again", [False, True])
@pytest.mark.parametrize("limit_bytes", [None, 300])
def test_a_renamed_table_goes_on_where_one_that_is_not_known_gets_its_name(
    topics: tuple[str, str], sent_again: bool, limit_bytes: int | None
) -> None:
    of_t, of_v = topics
    steps: list[list[Any]] = [
        [(STATED, statement_message(10, 101, MADE)), ("t0", *_rows(12, second=103))],
        [(STATED, statement_message(20, 110, "RENAME TABLE t TO v, never TO t"))],
        [(of_v, _of_table("v", row_message(31, 113, ("id", "a")))), (of_t, *_rows(32, second=114))],
        [(of_v, _of_table("v", row_message(33, 115, ("id", "a"))))],
        [(of_t, *_rows(34, second=116)), (of_v, _of_table("v", row_message(35, 117, ("id", "a"))))],
    ]
    if sent_again:
        steps[1].append(("t0", *_rows(13, second=105)))
    *found, stopped = _plans(*steps, limit_bytes=limit_bytes)
    assert {1: [12, *([13] if sent_again else []), 31, 33, 35]} == _joined(found)
    assert {-1: [0, 0]} == stopped


@pytest.mark.parametrize(
    "sql, name, table, given, rows",
    [
        ("RENAME TABLE t TO v", "v", "t", "", {1: [15, 31]}),
        ("RENAME TABLE t TO v, u TO t", "v", "v", "CREATE TABLE v (id INT PRIMARY KEY, a INT)", {3: [31]}),
    ],
    ids=["renamed", "another in its place"],
)
def test_a_statement_given_for_a_stopped_table_that_was_renamed_brings_its_rows(
    sql: str, name: str, table: str, given: str, rows: dict[int, list[int]]
) -> None:
    stated = [
        statement_message(10, 101, MADE),
        statement_message(11, 102, U),
        statement_message(14, 104, "ALTER TABLE t FROBNICATE"),
    ]
    log = SourceLog(random.Random(0), 0)
    log.events = [((STATED, 0), each) for each in (*stated, statement_message(20, 110, sql))]
    log.events += [(("t0", 0), each) for each in (*_rows(12, second=103), *_rows(15, second=106))]
    log.events += [((f"{name}0", 0), _of_table(name, row_message(31, 113, ("id", "a"))))]
    reader, topics = reader_of(SETTINGS, log)
    topics.send(len(log.events))
    with contextlib.closing(Store.open("sqlite://")) as store:
        tracker = tracker_of(reader, store)
        behind = tracker.catch_up()
        assert {(1, "t"), (0, name)} == {(table_id, held.table) for table_id, held, _ in store.stopped()}
        override(tracker, TableName("shop", table), given)
        # What stopped under a name that is another table's now stays so.
        assert [1] * (table != "t") == [table_id for table_id, *_ in store.stopped()]
        plan = tracker.plan_after(behind)
        assert plan is not None
        found: dict[int, list[int]] = {}
        for planned in plan.ranges:
            for chunk in reader.read(planned, plan.tables):
                key = physical_name(store.history().catalog.tables[TableName("shop", name)].columns[0].id)
                found.setdefault(chunk.table_id, []).extend(chunk.rows.column(key).to_pylist())
        assert rows == found


@pytest.mark.parametrize(
    "sqls",
    [
        ("RENAME TABLE t TO w", "RENAME TABLE u TO t", "DROP TABLE t"),
        ("RENAME TABLE t TO w", MADE, "DROP TABLE t", "RENAME TABLE w TO t"),
        ("RENAME TABLE t TO w, u TO t", "RENAME TABLE t TO u, w TO t"),
        ("RENAME TABLE u TO w, t TO u",),
        ("ALTER TABLE u FROBNICATE", "RENAME TABLE t TO w, u TO t"),
        ("DROP TABLE t", "ALTER TABLE u FROBNICATE", "RENAME TABLE u TO t"),
    ],
    ids=["renamed", "made", "swapped and back", "in another's place", "a stopped one in its place", "behind a drop"],
)
def test_a_statement_is_refused_for_a_table_whose_name_another_one_had_meanwhile(sqls: tuple[str, ...]) -> None:
    stated = [
        statement_message(10, 101, MADE),
        statement_message(11, 102, U),
        statement_message(14, 104, "ALTER TABLE t FROBNICATE"),
    ]
    log = SourceLog(random.Random(0), 0)
    log.events = [((STATED, 0), each) for each in stated]
    log.events += [((STATED, 0), statement_message(20 + number, 110 + number, sql)) for number, sql in enumerate(sqls)]
    log.events += [(("t0", 0), each) for each in (*_rows(12, second=103), *_rows(15, second=106))]
    reader, topics = reader_of(SETTINGS, log)
    topics.send(len(log.events))
    with contextlib.closing(Store.open("sqlite://")) as store:
        tracker = tracker_of(reader, store)
        tracker.catch_up()
        stopped = store.stopped()
        with pytest.raises(UnknownTable, match=r"another table had one of|another table has the stopped"):
            override(tracker, TableName("shop", "t"), "")
        assert stopped == store.stopped()


def _joined(plans: list[dict[int, list[int]]]) -> dict[int, list[int]]:
    return {table: [key for plan in plans for key in plan.get(table, ())] for plan in plans for table in plan}


def _truncate(number: int, second: int) -> Message:
    """As Debezium tells it among rows, with ``skipped.operations=none``."""
    _, value = row_message(number, second, ("id", "a"))
    message = json.loads(value or b"")
    message["payload"] |= {"op": "t", "before": None, "after": None}
    return None, compact(message)


@pytest.mark.parametrize("others", [0, 1])
def test_a_truncate_among_rows_does_not_overtake_a_statement_that_waits(others: int) -> None:
    statements = [CREATED, statement_message(13, 103, SWAPPED)]
    rows = [*_rows(11, second=101), _truncate(15, 105), *_rows(16, second=106)]
    ranges = {(STATED, 0): (0, 2), ("t0", 0): (0, 3)} | ({("t1", 0): (0, 9)} if others else {})
    scan = TopicScan(ranges, SETTINGS)
    scan.take((STATED, 0), batch_of(statements))
    scan.take(("t0", 0), batch_of(rows[:2]))
    # What was read up to behind the statement holds nothing back; what was not has the others wait where it stands.
    assert ({(STATED, 0): 1, ("t0", 0): 1, ("t1", 0): 0} if others else None) == scan.waiting_ends()


@IN_EACH_FORM
def test_a_truncate_among_rows_stands_where_the_log_has_it_among_statements_of_its_second(
    settings: KafkaSettings,
) -> None:
    renamed = statement_message(15, 101, "RENAME TABLE t TO old, u TO t")
    registered = RegisteredEvents(settings.format)
    scan = TopicScan({(STATED, 0): (0, 2), ("t0", 0): (0, 3)}, settings, registered.writers)
    scan.take((STATED, 0), batch_of([registered.message(each) for each in (CREATED, renamed)]))
    rows = [*_rows(11, second=101), _truncate(13, 101), _truncate(17, 101)]
    scan.take(("t0", 0), batch_of([registered.message(each) for each in rows]))
    assert [(STATED, 0), ("t0", 0), ("t0", 1), (STATED, 1), ("t0", 2)] == [
        (item.place.file.partition(":")[0], item.place.offset) for item in scan.in_order()
    ]


def _without_schema(message: Message) -> Message:
    return tuple(text and compact(json.loads(text)["payload"]) for text in message)  # type: ignore[return-value]


SCHEMALESS = replace(SETTINGS, format="debezium_json_schemaless")


@pytest.mark.parametrize(
    "settings",
    [SETTINGS, SCHEMALESS, IN_AVRO, IN_JSON_SCHEMA],
    ids=["schemas", "schemaless", "Avro", "JSON Schema"],
)
def test_a_truncate_among_rows_is_executed_once_though_a_statement_of_its_second_comes_before_it_is_sent_again(
    settings: KafkaSettings,
) -> None:
    first = [*_rows(11, second=100), _truncate(13, 101), *_rows(14, second=101), _truncate(15, 101)]
    last = [_truncate(15, 101), row_message(17, 102, ("id", "b"))]
    if settings is SCHEMALESS:
        first, last = ([_without_schema(each) for each in messages] for messages in (first, last))
    steps: list[list[Any]] = [
        [(STATED, CREATED), ("t0", *first)],
        [(STATED, statement_message(16, 101, "ALTER TABLE t RENAME COLUMN a TO b"))],
        [("t0", *last)],
    ]
    executed = list[str]()
    assert {1: [17]} == list(_plans(*steps, settings=settings, executed=executed))[-1]
    assert ["CREATE", "TRUNCATE", "TRUNCATE", "ALTER"] == [sql.split()[0] for sql in executed]


@pytest.mark.parametrize("fewest_located", [0, 1_000_000], ids=["located", "one by one"])
@pytest.mark.parametrize("kind", ["one plan", "two plans", "a tombstone between", "one comes again"])
def test_a_column_that_was_renamed_is_told_no_more_by_rows_without_schemas(
    kind: str, fewest_located: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(located_batches, "FEWEST_LOCATED", fewest_located)
    renamed = statement_message(15, 101, "ALTER TABLE t RENAME COLUMN a TO b")
    before, after = (
        [_without_schema(row_message(number, 101, ("id", column))) for number in numbers]
        for numbers, column in (((11, 12, 13), "a"), (range(16, 30), "b"))
    )
    if kind == "a tombstone between":
        before.append((b"{}", None))
    if kind == "one comes again":
        after.insert(5, before[1])
    steps: list[list[Any]] = [[(STATED, CREATED, renamed), ("t0", *before, *after)]]
    if kind == "two plans":
        steps = [[(STATED, CREATED), ("t0", *before)], [(STATED, renamed), ("t0", *after)]]
    executed = list[str]()
    found = list(_plans(*steps, settings=SCHEMALESS, executed=executed))
    again = [12] * (kind == "one comes again")
    assert [11, 12, 13, *range(16, 21), *again, *range(21, 30)] == [number for each in found for number in each[1]]
    assert ["CREATE", "ALTER"] == [sql.split()[0] for sql in executed]


def test_messages_of_a_plan_that_ends_before_a_statement_are_kept_though_there_is_room_for_one_scan_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = {"t0": _rows(11, 14), "t1": _rows(12, 15)}
    log = SourceLog(random.Random(0), 0)
    statements = [CREATED, statement_message(13, 105, "ALTER TABLE t RENAME COLUMN a TO b")]
    log.events = [((STATED, 0), each) for each in statements]
    log.events += [((topic, 0), each) for topic, of_topic in rows.items() for each in of_topic]
    reader, topics = reader_of(SETTINGS, log)
    topics.send(len(log.events))
    reader.keeps_scans = True
    wanted = {(STATED, 0): (0, 2), ("t0", 0): (0, 2)}
    scanned = sum(batch.size_bytes for _, batch in topics.batches(wanted))
    monkeypatch.setattr(kafka_reader, "ROOM", Room(scanned))
    (bound,) = [each for each in reader.scan(FROM_THE_START, limit_bytes=1) if isinstance(each, Bound)]
    assert {STATED, "t0"} == {planned.topic for planned in bound.partitions}
    assert all(reader.cached(planned) is not None for planned in bound.partitions)


@pytest.mark.parametrize("number, second", [(12, 900), (499, 102)])
def test_a_row_is_refused_that_is_later_than_a_statement_before_which_place_and_gtid_have_it(
    number: int, second: int
) -> None:
    order = SourceOrder()
    order.state(_place(500, gtid="uuid:50"), 100 * S + 7, "dbz:0:0")
    # Commits of one moment, or a clock that was set.
    assert 100 * S + 6 == _moment(order, _words(499, 100, gtid="uuid:49"), 100 * S + 900_000)
    with pytest.raises(SourceError, match=r"begun anew.*t:0"):
        _moment(order, _words(number, 0, gtid="uuid:3"), second * S + 1)


@pytest.mark.parametrize("transaction", [3, 12])
def test_rows_behind_reset_master_are_not_taken_for_those_that_a_truncate_has_emptied(transaction: int) -> None:
    def told(message: Message, second: int, number: int) -> Message:
        return _told_by_microsecond(message, second * S + 1, f"uuid:{number}")

    truncated = told(statement_message(500, 0, "TRUNCATE TABLE t"), 200, 50)
    plans = _plans(
        [(STATED, told(CREATED, 100, 10), truncated), ("t0", told(_rows(501)[0], 201, 51))],
        [("t0", told(_rows(12)[0], 900, transaction))],
    )
    assert {1: [501]} == next(plans)
    if transaction == 3:  # its number shows another log than its place does
        assert {1: [12]} == next(plans)
    else:
        with pytest.raises(SourceError, match=r"begun anew.*t0:0"):
            next(plans)


def _with_gtid(message: Message, gtid: str) -> Message:
    key, value = message
    found = json.loads(value or b"")
    found.get("payload", found)["source"]["gtid"] = gtid
    return key, compact(found)


@pytest.mark.parametrize("behind", [0, 1], ids=["one plan", "another plan"])
def test_rows_of_a_log_that_counts_its_transactions_anew_are_refused_where_seconds_are_told(behind: int) -> None:
    made = _with_gtid(CREATED, "0-3-10"), _with_gtid(statement_message(502, 102, "TRUNCATE TABLE t"), "0-3-50")
    told = ((501, 101, 49), (503, 103, 51), (12, 900, 12))
    rows = [_with_gtid(row_message(number, second, ("id", "a")), f"0-3-{seq}") for number, second, seq in told]
    first, second = rows[: 3 - behind], rows[3 - behind :]
    plans = _plans([(STATED, *made), ("t0", *first)], [("t0", *second)])
    if behind:
        assert {1: [501, 503]} == next(plans)
    with pytest.raises(SourceError, match=r"begun anew.*t0:0"):
        next(plans)


def test_rows_of_another_replica_with_gtids_that_go_on_are_read_though_their_places_are_before() -> None:
    made = _with_gtid(CREATED, "0-3-10"), _with_gtid(statement_message(502, 102, "TRUNCATE TABLE t"), "0-3-50")
    told = ((501, 101, 49), (503, 103, 51), (12, 900, 52))
    rows = [_with_gtid(row_message(number, second, ("id", "a")), f"0-3-{seq}") for number, second, seq in told]
    assert {1: [12]} == list(_plans([(STATED, *made), ("t0", *rows[:2])], [("t0", *rows[2:])]))[-1]


def test_rows_of_a_table_that_is_renamed_are_in_order_though_their_topics_are_not() -> None:
    made = [
        statement_message(10, 100, MADE.replace("TABLE t", "TABLE u")),
        statement_message(13, 101, "RENAME TABLE u TO t"),
    ]
    rows = {"t1": [_of_table("u", each) for each in _rows(11, 12)], "t0": _rows(14, 15)}
    log = SourceLog(random.Random(0), 0)
    log.events = [((STATED, 0), each) for each in made]
    log.events += [((topic, 0), each) for topic, of_topic in rows.items() for each in of_topic]
    reader, topics = reader_of(SETTINGS, log)
    topics.send(len(log.events))
    with contextlib.closing(Store.open("sqlite://")) as store:
        tracker = tracker_of(reader, store)
        plan = tracker.plan_after(0)
        assert plan is not None
        chunks = [chunk for planned in plan.ranges for chunk in reader.read(planned, plan.tables)]
    assert [[14, 15], [11, 12]] == [chunk.rows.column("h1").to_pylist() for chunk in chunks]
    assert chunks[1].segment < chunks[0].segment


@pytest.mark.parametrize("told", [7, 0], ids=["microseconds", "seconds"])
def test_a_statement_without_an_entry_that_another_replica_sends_again_is_known_by_its_number(told: int) -> None:
    known = [(100, 500, 5), (103, 502, 13)]
    stated = [
        (second * S + told, str(_place(number, gtid=f"uuid:{gtid}")._replace(by_second=not told)))
        for second, number, gtid in known
    ]
    order = SourceOrder(stated)
    assert order.state(_place(20, gtid="uuid:12"), 102 * S + told, "dbz:0:7") is None
    assert 103 * S + told == order.state(_place(21, gtid="uuid:13"), 103 * S + told, "dbz:0:8")
    # So it is where files of that replica have greater numbers, or another name.
    assert order.state(_place(900, gtid="uuid:12"), 102 * S + told, "dbz:0:9") is None
    assert order.state(_place(20, gtid="uuid:12")._replace(base="mysql-bin."), 102 * S + told, "dbz:0:10") is None
    # What commits side by side may stand in another order than its numbers.
    assert order.state(_place(904, gtid="uuid:21"), 104 * S + told, "dbz:0:11") is not None
    assert order.state(_place(905, gtid="uuid:20"), 104 * S + told, "dbz:0:12") is not None


@pytest.mark.parametrize("sql", ["ALTER TABLE t ADD COLUMN b INT", "RENAME TABLE t TO u"])
@pytest.mark.parametrize("behind", [0, 1], ids=["one plan", "another plan"])
def test_a_statement_behind_which_the_servers_clock_was_set_back_stands_where_its_log_has_it(
    behind: int, sql: str
) -> None:
    made = _told_by_microsecond(CREATED, 100 * S + 1, "uuid:10")
    changed = _told_by_microsecond(statement_message(13, 0, sql), 106 * S + 1, "uuid:13")
    columns = ("id", "a", "b") if "ADD" in sql else ("id", "a")
    rows = [
        _told_by_microsecond(row_message(number, 0, names), second * S + 1, f"uuid:{number}")
        for number, names, second in ((11, ("id", "a"), 102), (12, ("id", "a"), 110), (14, columns, 107))
    ]
    rows[2] = _of_table("u", rows[2]) if "RENAME" in sql else rows[2]
    steps: list[list[Any]] = [[(STATED, made, changed), ("t0", *rows)]]
    if behind:
        steps = [[(STATED, made), ("t0", *rows[:2])], [(STATED, changed), ("t0", rows[2])]]
    executed = list[str]()
    found = list(_plans(*steps, executed=executed))
    assert [11, 12, 14] == [number for each in found for number in each.get(1, [])]
    assert [sql.split()[0] for sql in executed] == ["CREATE", sql.split(maxsplit=1)[0]]


def test_a_statement_of_a_snapshot_is_before_all_that_follows_though_debeziums_clock_is_ahead() -> None:
    told = {**source_at(12, 109, 0), "snapshot": "true"}
    made = None, json.dumps({"source": told, "databaseName": "shop", "ddl": MADE}).encode()
    renamed = statement_message(14, 103, "ALTER TABLE t RENAME COLUMN a TO b")
    rows = [_copied(12, 109, 1), row_message(13, 102, ("id", "a")), row_message(15, 104, ("id", "b"))]
    executed = list[str]()
    assert [{1: [1, 13, 15]}] == list(_plans([(STATED, made, renamed), ("t0", *rows)], executed=executed))
    assert ["CREATE", "ALTER"] == [sql.split()[0] for sql in executed]


def test_a_row_that_is_read_once_more_between_a_statement_and_one_without_an_entry_is_behind_the_first() -> None:
    entries = [
        (105 * S, str(_place(10)._replace(by_second=True))),
        (105 * S + 1, str(_place(30)._replace(by_second=True))),
    ]
    order = SourceOrder(entries, goes_on=False)
    order.state(_place(20), 105 * S, "dbz:0:1")
    assert [105 * S] == _moments(order, (15, 105))


def test_a_row_from_before_a_swap_of_columns_that_is_sent_again_has_the_columns_of_then() -> None:
    swapped = statement_message(13, 101, "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a")
    made = statement_message(10, 100, "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)")
    rows = [row_message(number, 101, ("id", "a", "b")) for number in (12, 14, 15)]
    log = SourceLog(random.Random(0), 0)
    log.events = [((STATED, 0), made), ((STATED, 0), swapped), *((("t0", 0), each) for each in (*rows[:2], *rows))]
    topics = Topics(log)
    reader = KafkaReader(SETTINGS)
    reader._client = reader._administration = topics  # type: ignore[assignment]
    found = list[list[tuple[int, bool]]]()
    with contextlib.closing(Store.open("sqlite://")) as store:
        tracker, number = tracker_of(reader, store), 0
        for count in (4, 3):
            topics.send(count)
            while (plan := tracker.plan_after(number)) is not None:
                number = plan.number
                under = [
                    (chunk.rows.column("h1").to_pylist(), passage.version)
                    for planned in plan.ranges
                    for chunk in reader.read(planned, plan.tables)
                    for passage in [
                        each for each in planned.passages if each.offset <= int(chunk.first_position.rpartition(":")[2])
                    ][-1:]
                ]
                found.append(under)  # type: ignore[arg-type]
    assert [[([12], 2), ([14], 3)], [([12], 2), ([14, 15], 3)]] == found


# ---- a TRUNCATE among rows of several partitions ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [SETTINGS, replace(SETTINGS, schema_topic=""), IN_AVRO, IN_JSON_SCHEMA],
    ids=["statements", "rows alone", "Avro", "JSON Schema"],
)
@pytest.mark.parametrize(
    "number, second, stops", [(21, 111, True), (21, 110, True), (14, 110, False), (14, 104, False)]
)
def test_a_table_stops_that_a_truncate_among_rows_empties_later_than_rows_behind_it_by_another_topic(
    number: int, second: int, stops: bool, settings: KafkaSettings
) -> None:
    made = [(STATED, CREATED)] if settings.schema_topic else []
    steps: list[list[Any]] = [
        [*made, ("t0", *_rows(11, second=101)), ("t1", *_rows(number, second=second))],
        [("t0", _truncate(20, 110), *_rows(22, second=112))],
    ]
    found = list(_plans(*steps, settings=settings))
    assert stops == (-1 in found[-1])
    if not stops:
        assert {1: [22]} == found[-1]
