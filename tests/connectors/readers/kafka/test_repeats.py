"""Messages that a producer sends again are known, and no other one is taken for such a one."""

from __future__ import annotations

import json
import random
import re
from base64 import b64decode
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from connectors.readers.kafka import scanning
from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.debezium.changes import changed
from connectors.readers.kafka.located import batches
from connectors.readers.kafka.messages.batch import Texts
from connectors.readers.kafka.messages.events import RowSchema, SqlEvent
from connectors.readers.kafka.repeats import MOST_SEEN, Places, Repeats, Told, _Seen, hash_of
from connectors.readers.kafka.scanning import TopicScan
from historian.errors import UnsupportedEvent
from historian.plans.plans import PartitionRange
from logs.registered_events import RegisteredEvents
from logs.topic_messages import body, recorded_writers
from logs.topic_streams import batch_of
from models.ddl_text import edits_of

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
FIELDS = [{"type": "int32", "optional": False, "field": "id"}, {"type": "int32", "optional": True, "field": "v"}]
SCHEMA = {
    "type": "struct",
    "fields": [
        {"type": "struct", "fields": FIELDS, "optional": True, "field": "before"},
        {"type": "struct", "fields": FIELDS, "optional": True, "field": "after"},
    ],
}


def message(
    number: int,
    gtid: int | None,
    at: tuple[int, int, int],
    time_us: int,
    op: str = "c",
    sent: int = 0,
    server: str = UUID,
) -> bytes:
    """A change of Debezium's of the row *number*; *sent*: when, which is no part of it."""
    file, offset, line = at
    row = {"id": number, "v": 1}
    payload = {
        "before": row if op == "d" else None,
        "after": None if op == "d" else row,
        "source": {
            "ts_ms": time_us // 1000,
            "ts_us": time_us,
            "db": "shop",
            "table": "t",
            "gtid": None if gtid is None else f"{server}:{gtid}",
            "file": f"binlog.{file:06}",
            "pos": offset,
            "row": line,
        },
        "op": op,
        "ts_ms": sent,
    }
    return b'{"schema":' + json.dumps(SCHEMA).encode() + b',"payload":' + json.dumps(payload).encode() + b"}"


def without_gtids(values: list[bytes]) -> list[bytes]:
    """The same changes of a server that has no GTIDs."""
    return [re.sub(rb'"gtid": "[^"]*"', b'"gtid": null', value) for value in values]


def told_of(values: list[bytes], cuts: list[int]) -> tuple[list[bool], list[bool]]:
    """Which of messages are repeats, and which may be, read in batches, with the mark kept in between."""
    mark, repeated, doubtful = None, list[bool](), list[bool]()
    for begin, end in pairwise([0, *cuts, len(values)]):
        part = values[begin:end]
        places = Places(len(part))
        for number, value in enumerate(part):
            places.note(number, value, json.loads(value)["payload"]["source"]["ts_us"])
        repeats = Repeats(mark)
        found = repeats.take(places, Texts.of(part))
        repeated += found.repeats.tolist()
        doubtful += found.doubtful.tolist()
        mark = repeats.mark
    return repeated, doubtful


def told(values: list[bytes], cuts: list[int]) -> list[bool]:
    """Which of messages are repeats."""
    return told_of(values, cuts)[0]


def log(numbers: random.Random, compressed: bool) -> list[bytes]:
    """Messages of one partition: transactions of some events of some rows; rows of compressed ones stand at one offset."""
    found, offset, time_us = list[bytes](), 4, 100_000_001
    for gtid in range(1, 40):
        offset += 1000
        time_us += 1 + numbers.randrange(30)
        for event in range(numbers.randrange(4)):
            for line in range(numbers.randrange(1, 3)):
                found.append(
                    message(len(found), gtid, (2, offset if compressed else offset + 10 * event, line), time_us)
                )
    return found


def restarted(numbers: random.Random, transactions: list[list[bytes]], most: int) -> tuple[list[bytes], list[bool]]:
    """What a producer sends that begins anew now and then, from the begin of a transaction, and which of it is new."""
    flat = [(at, value) for at, values in enumerate(transactions) for value in values]
    sent, is_new = list[bytes](), list[bool]()
    at = seen = 0
    while at < len(flat):
        upto = min(len(flat), at + numbers.randrange(1, most))
        for number in range(at, upto):
            is_new.append(number >= seen)
            sent.append(flat[number][1].replace(b'"ts_ms": 0}', b'"ts_ms": %d}' % len(sent)))
        seen, at = max(seen, upto), upto
        if upto < len(flat) and numbers.random() < 0.6:
            at = numbers.randrange(max(0, upto - most), upto)
            while at and flat[at - 1][0] == flat[at][0]:
                at -= 1
    return sent, is_new


@pytest.mark.parametrize("has_gtids", [True, False])
@pytest.mark.parametrize("seed", range(30))
def test_what_comes_again_behind_a_restart_is_a_repeat_or_counted_and_nothing_else_is(
    seed: int, has_gtids: bool
) -> None:
    numbers = random.Random(seed)
    values = log(numbers, compressed=False)
    transactions = [
        [value for value in values if gtid_of(value) == gtid] for gtid in dict.fromkeys(map(gtid_of, values))
    ]
    sent, is_new = restarted(numbers, transactions, 20)
    sent = sent if has_gtids else without_gtids(sent)
    repeated, doubtful = told_of(sent, sorted(numbers.randrange(len(sent)) for _ in range(4)))
    assert all(new != (again or unsure) for new, again, unsure in zip(is_new, repeated, doubtful, strict=True))
    # Those of the last transaction are changes, and those where it began anew within a transaction more than once.
    assert sum(repeated) > sum(doubtful)


@pytest.mark.parametrize("has_gtids", [True, False])
@pytest.mark.parametrize("seed", range(300))
def test_no_change_is_lost_that_looks_like_another_one(seed: int, has_gtids: bool) -> None:
    numbers, alive = random.Random(seed), set[int]()
    order = list(range(1, 9))
    if numbers.random() < 0.5:
        at = numbers.randrange(7)
        order[at], order[at + 1] = order[at + 1], order[at]
    step = 1_000_000 if numbers.random() < 0.3 else 1
    transactions, time_us = list[list[bytes]](), 100_000_000 + step % 1_000_000
    for place, gtid in enumerate(order):
        time_us += numbers.randrange(3) * step
        is_compressed, found = numbers.random() < 0.5, list[bytes]()
        for event in range(numbers.randrange(1, 5)):
            key = numbers.randrange(3)
            alive ^= {key}
            offset = 1000 * place + (0 if is_compressed else 10 * event)
            found.append(message(key, gtid, (2, offset, 0), time_us, "c" if key in alive else "d"))
        transactions.append(found)
    sent, is_new = restarted(numbers, transactions, 8)
    sent = sent if has_gtids else without_gtids(sent)
    repeated, doubtful = told_of(sent, sorted({numbers.randrange(1, len(sent) + 1) for _ in range(4)} - {len(sent)}))
    for new, again, unsure in zip(is_new, repeated, doubtful, strict=True):
        assert not (new and again)
        assert new or again or unsure


def gtid_of(value: bytes) -> str:
    return str(json.loads(value)["payload"]["source"]["gtid"])


S = 1_000_000
"""A second, in microseconds."""


def toggled(count: int, at: tuple[int, int, int] = (2, 500, 0), time_us: int = 100 * S + 7) -> list[bytes]:
    """A row that comes and goes within a compressed transaction, whose rows all stand at one place."""
    return [message(1, 9, at, time_us, "c" if number % 2 == 0 else "d") for number in range(count)]


BEFORE = message(50, 8, (2, 400, 0), 100 * S + 3)
COUNTED_ANEW = [message(1, 1, (1, 200, 0), 100 * S), message(1, 2, (1, 300, 0), 100 * S, "d")]
"""The first two transactions of a log on a server that tells times by the second."""


@pytest.mark.parametrize(
    "values",
    [
        toggled(5),
        [BEFORE, *toggled(3)],
        # RESET BINARY LOGS AND GTIDS, and the same changes at the same places within the second.
        [*COUNTED_ANEW, COUNTED_ANEW[0]],
        [*COUNTED_ANEW, *COUNTED_ANEW, *COUNTED_ANEW],
        # RESET BINARY LOGS AND GTIDS, and other changes at the same places, at the very same time.
        [message(n, n, (1, 100 * n, 0), 100 * S + 1) for n in range(1, 6)]
        + [message(10 + n, n, (1, 100 * n, 0), 100 * S + 1) for n in range(1, 6)],
        # A replica that commits in another order, with files of the same numbers, and what it commits late.
        [
            message(1, 7, (2, 400, 0), 100 * S + 1),
            message(2, 9, (2, 500, 0), 100 * S + 3),
            message(3, 8, (2, 450, 0), 100 * S + 2),
        ],
        [
            message(1, 7, (2, 400, 0), 100 * S),
            message(2, 9, (2, 500, 0), 100 * S),
            message(3, 8, (2, 450, 0), 100 * S),
        ],
        [BEFORE, message(2, 8, (2, 400, 0), 100 * S + 3, op="r")],  # an incremental snapshot
        # No GTIDs: the last event may be one of a compressed transaction.
        without_gtids(toggled(5)),
        without_gtids([BEFORE, *toggled(3)]),
        # No GTIDs, RESET BINARY LOGS AND GTIDS.
        without_gtids([*COUNTED_ANEW, *COUNTED_ANEW, *COUNTED_ANEW]),
        without_gtids([message(n, n, (1, 100 * n, 0), 100 * S + 1) for n in range(1, 6)])
        + without_gtids([message(10 + n, n, (1, 100 * n, 0), 100 * S + 1) for n in range(1, 6)]),
    ],
)
def test_a_change_is_never_taken_for_another_one_that_came_before(values: list[bytes]) -> None:
    for cuts in ([], list(range(1, len(values)))):
        assert not any(told(values, cuts))


@pytest.mark.parametrize("sent_of_it", [1, 2, 3])
def test_a_compressed_transaction_is_known_once_a_later_one_came(sent_of_it: int) -> None:
    whole = [BEFORE, *toggled(5)]
    met = whole[: 1 + sent_of_it]
    # What came of it may come twice: another producer, which was thought dead, might go on with it meanwhile.
    assert [False] * len(met) + [True] + [False] * 5 == told([*met, *whole], [len(met)])
    behind = [*whole, message(99, 10, (2, 600, 0), 100 * S + 9)]
    assert [False] * 7 + [True] * 3 + [False] * 4 == told([*behind, *behind], [7])


def test_two_producers_at_once_take_no_change_away() -> None:
    later = message(7, 10, (2, 600, 0), 100 * S + 9)
    come, go = toggled(2)
    assert [False, False, True, False, True, False, False] == told([BEFORE, come, BEFORE, go, BEFORE, come, later], [])


def test_two_rows_that_are_equal_are_two() -> None:
    # A table without a key may have them, whatever its messages have as key.
    assert [False] * 3 == told([BEFORE, *(2 * toggled(1))], [])


def pieces(gtid: int, lines: range, time_us: int = 100 * S + 1, step: int = 0) -> list[bytes]:
    return [message(line, gtid, (2, 1000 * gtid + step * line, line), time_us) for line in lines]


def op_first(line: int) -> bytes:
    payload = json.loads(message(line, 7, (2, 400, 0), 100))["payload"]
    return json.dumps({"payload": {"op": "c", **payload}}).encode()


@pytest.mark.parametrize(
    "met, sent, known",
    [
        (pieces(1, range(100)) + pieces(2, range(1)), pieces(1, range(100)) + pieces(2, range(1)), 100),
        (pieces(1, range(1)) + pieces(2, range(100)), pieces(1, range(1)) + pieces(2, range(100)), 1),
        # Of the last transaction alone: the rows of one event may be those of a compressed transaction.
        (pieces(2, range(100)), pieces(2, range(50, 100)), 0),
        (pieces(2, range(100), step=1), pieces(2, range(50, 100), step=1), 50),
        # More than is kept.
        (
            [*pieces(1, range(9)), *pieces(2, range(MOST_SEEN - 1)), *pieces(3, range(1))],
            [*pieces(1, range(9)), *pieces(2, range(MOST_SEEN - 1)), *pieces(3, range(1))],
            MOST_SEEN - 1,
        ),
        # Times of seconds: all but the last one is known.
        (
            pieces(1, range(3), 100 * S) + pieces(2, range(3), 102 * S),
            pieces(1, range(3), 100 * S) + pieces(2, range(3), 102 * S),
            3,
        ),
        # No GTIDs: all but the rows of the last event are known.
        (without_gtids(pieces(1, range(9), step=9)), without_gtids(pieces(1, range(9), step=9)), 8),
        (
            without_gtids(pieces(1, range(3)) + pieces(2, range(4))),
            without_gtids(pieces(1, range(3)) + pieces(2, range(4))),
            3,
        ),
        # No GTIDs, and the first files of a log, whose number has grown by a digit.
        (
            [message(n, None, (999_998 + n, 4, 0), 100 * S + n) for n in range(1, 5)],
            [message(n, None, (999_998 + n, 4, 0), 100 * S + n) for n in range(1, 5)],
            3,
        ),
        # No number holds these places.
        (2 * [message(1, None, (1 << 31, 4, 0), 100)], 2 * [message(1, None, (1 << 31, 4, 0), 100)], 0),
        # What stands behind the operation may be part of the row.
        ([op_first(1)], [op_first(1)], 0),
    ],
)
def test_what_is_known_of_changes_that_come_again(met: list[bytes], sent: list[bytes], known: int) -> None:
    found = told(met + sent, [len(met)])
    assert not any(found[: len(met)])
    assert sum(found) == known


def test_what_may_have_come_before_is_counted() -> None:
    values = [*COUNTED_ANEW, COUNTED_ANEW[0], message(3, 1, (2, 200, 0), 100 * S)]
    scan = TopicScan({("t", 0): (0, len(values))}, KafkaSettings(brokers="", topics=("t",)))
    scan.take(("t", 0), batch_of([(None, value) for value in values]))
    (part,) = scan.ranges()
    assert (("doubtful", 2),) == part.passed_over
    assert () == part.repeated


def scanned(values: list[bytes], *, located: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[object, ...]:
    with monkeypatch.context() as patched:
        if not located:
            patched.setattr(batches, "FEWEST_LOCATED", 10_000)
        scan = TopicScan({("t", 0): (0, len(values))}, KafkaSettings(brokers="", topics=("t",)))
        scan.take(("t", 0), batch_of([(None, value) for value in values]))
        (part,) = scan.ranges()
        return part.repeated, scan.marks(), part.passed_over


@pytest.mark.parametrize("has_gtids", [True, False])
def test_compiled_code_and_python_tell_the_same_repeats_and_the_same_mark(
    has_gtids: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = log(random.Random(3), compressed=False)
    values = (
        [*values[:60], *values[40:]] if gtid_of(values[39]) != gtid_of(values[40]) else [*values[:60], *values[38:]]
    )
    if not has_gtids:
        lacking = [value.replace(b'"gtid": null, ', b"") for value in without_gtids(values[-9:])]
        beyond = [message(1, None, place, 100 * S) for place in ((1 << 31, 4, 0), (3, 1 << 32, 0), (3, -1, 0))]
        at_most = [message(2, None, ((1 << 31) - 1, (1 << 32) - 1, 0), 200 * S)]
        values = [*without_gtids(values[:-9]), *lacking, *beyond, *at_most]
    assert len(values) > batches.FEWEST_LOCATED
    compiled = scanned(values, located=True, monkeypatch=monkeypatch)
    assert compiled == scanned(values, located=False, monkeypatch=monkeypatch)
    repeated, marks, passed_over = compiled
    assert repeated
    assert marks
    assert scanning.REPEATED in dict(passed_over)  # type: ignore[call-overload]
    assert np.diff(np.array(repeated)).sum() == dict(passed_over)[scanning.REPEATED]  # type: ignore[call-overload]


ROW = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "int"}, {"name": "v", "type": "int"}]}
SOURCE = {"ts_ms": "long", "ts_us": "long", "db": "string", "table": "string", "gtid": ["null", "string"], "file": "string", "pos": "long", "row": "int"}  # fmt: skip
WHEN_SENT = {"ts_ms": ["null", "long"], "transaction": ["null", {"type": "record", "name": "block", "fields": [{"name": "id", "type": "string"}]}]}  # fmt: skip


def record_of(name: str, **kinds: object) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in kinds.items()]}


def registry_of(**behind: object) -> dict[str, Any]:
    source = record_of("Source", **SOURCE)
    rows = {"before": ["null", ROW], "after": ["null", "Value"]}
    key = record_of("Key", id="int")
    return {"1": key, "2": record_of("Envelope", **rows, source=source, op="string", **behind)}


def in_avro(value: bytes, registry: dict[str, Any], transaction: str = "") -> tuple[bytes, bytes]:
    """The key and the value that say in Avro what a message in JSON does."""
    payload = json.loads(value)["payload"]
    record = {**payload, "transaction": {"id": transaction} if transaction else None, "more": 0}
    row = payload["after"] or payload["before"]
    key = body({"schema": 1, "record": {"id": row["id"]}}, registry)
    return key, body({"schema": 2, "record": record}, registry)


def scanned_avro(messages: list[tuple[bytes, bytes]], registry: dict[str, Any]) -> tuple[TopicScan, PartitionRange]:
    settings = KafkaSettings(brokers="", topics=("t",), format="debezium_avro")
    scan = TopicScan({("t", 0): (0, len(messages))}, settings, recorded_writers({"registry": registry}))
    scan.take(("t", 0), batch_of(messages))
    (part,) = scan.ranges()
    return scan, part


def sent_again(seed: int, *, has_gtids: bool) -> list[bytes]:
    """What a producer sends that begins anew now and then."""
    numbers = random.Random(seed)
    values = log(numbers, compressed=numbers.random() < 0.3)
    transactions = [
        [value for value in values if gtid_of(value) == gtid] for gtid in dict.fromkeys(map(gtid_of, values))
    ]
    sent, _ = restarted(numbers, transactions, 20)
    sent = [*sent, *sent[-9:]]
    return sent if has_gtids else without_gtids(sent)


@pytest.mark.parametrize("has_gtids", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_known_in_json_is_known_where_a_registry_has_its_json_schema(seed: int, has_gtids: bool) -> None:
    sent = [(None, value) for value in sent_again(seed, has_gtids=has_gtids)]
    found = []
    for name in ("debezium_json", "debezium_json_schema"):
        registered = RegisteredEvents(name)
        settings = KafkaSettings(brokers="", topics=("t",), format=name)
        scan = TopicScan({("t", 0): (0, len(sent))}, settings, registered.writers)
        scan.take(("t", 0), batch_of([registered.message(each) for each in sent]))
        (part,), (mark,) = scan.ranges(), scan.marks().values()
        found.append((part.repeated, part.passed_over, replace(mark, seen="")))
    assert found[0] == found[1]
    assert found[0][0]


@pytest.mark.parametrize("is_located", [True, False])
@pytest.mark.parametrize("has_gtids", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_known_in_json_is_known_in_avro(
    seed: int, has_gtids: bool, is_located: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = sent_again(seed, has_gtids=has_gtids)
    monkeypatch.setattr(batches, "FEWEST_LOCATED", 1 if is_located else 10_000)
    in_json = TopicScan({("t", 0): (0, len(sent))}, KafkaSettings(brokers="", topics=("t",)))
    in_json.take(("t", 0), batch_of([(None, value) for value in sent]))
    (expected,) = in_json.ranges()
    registry = registry_of(**WHEN_SENT)
    scan, found = scanned_avro([in_avro(value, registry) for value in sent], registry)
    assert expected.repeated
    assert expected.repeated == found.repeated
    assert expected.passed_over == found.passed_over
    (of_json,), (of_avro,) = in_json.marks().values(), scan.marks().values()
    assert replace(of_json, seen="") == replace(of_avro, seen="")


@pytest.mark.parametrize("behind", [WHEN_SENT, {"ts_ms": ["null", "long"]}])
def test_compiled_code_and_the_library_tell_the_same_mark(
    behind: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = registry_of(**behind)
    values = log(random.Random(3), compressed=False)
    messages = [in_avro(value, registry) for value in without_gtids(values[:50]) + values[50:] + values[20:]]
    marks = []
    for fewest in (1, 10_000):
        monkeypatch.setattr(batches, "FEWEST_LOCATED", fewest)
        marks.append(scanned_avro(messages, registry)[0].marks())
    assert marks[0] == marks[1]
    (mark,) = marks[0].values()
    assert len(mark.seen) > 100


@pytest.mark.parametrize(
    "behind, transaction, known",
    [(WHEN_SENT, "", 8), ({}, "", 8), (WHEN_SENT, "x", 0), ({**WHEN_SENT, "more": "int"}, "", 0)],
)
def test_what_stands_behind_the_operation_in_avro_may_only_be_when_it_was_sent(
    behind: dict[str, object], transaction: str, known: int
) -> None:
    registry = registry_of(**behind)
    values = [in_avro(value, registry, transaction) for value in [*pieces(1, range(8)), *pieces(2, range(1))]]
    _, part = scanned_avro([*values, *values[:8]], registry)
    assert known == dict(part.passed_over).get(scanning.REPEATED, 0)


@pytest.mark.parametrize(
    "places, are_two",
    [
        ([{"gtid": f"{UUID}:2"}, {"gtid": f"{UUID}:3"}], True),
        ([{"gtid": f"{UUID}:2"}, {"gtid": f"{UUID}:2", "pos": 9}], False),
        ([{"gtid": None, "file": "binlog.000002", "pos": 4}, {"gtid": None, "file": "binlog.000002", "pos": 99}], True),
        ([{"lsn": 4}, {"lsn": 9}], True),
        ([{"gtid": "*/ 1"}, {"gtid": "*/ 2"}], False),
    ],
)
def test_two_truncates_of_one_second_are_told_apart_by_their_place(
    places: list[dict[str, object]], are_two: bool
) -> None:
    found = [
        changed(
            {"op": "t", "source": {"db": "shop", "table": "t", "ts_ms": 1000, **place}},
            lambda: RowSchema(fields=(), key=()),
            "",
            UnsupportedEvent,  # type: ignore[arg-type]
        )
        for place in places
    ]
    assert (found[0] != found[1]) == are_two
    for event in found:
        assert isinstance(event, SqlEvent)
        assert edits_of(event.sql, "CREATE TABLE t (a INT)") == ["truncate_table"]


def test_numbers_that_begin_anew_are_new_and_little_is_kept_of_them() -> None:
    repeats, rounds = Repeats(None), 4

    def taken(file: int, first: int, second: int) -> Told:
        values = [
            json.dumps(
                {
                    "before": None,
                    "after": {"id": number},
                    "source": {"file": f"binlog.{file:06}", "pos": 100 * number, "row": 0, "gtid": None},
                    "op": "c",
                    "ts_ms": 1,
                }
            ).encode()
            for number in range(first, first + MOST_SEEN)
        ]
        batch = batch_of([(None, value) for value in values], first)
        places = Places(len(batch))
        for number, value in enumerate(values):
            places.note(number, value, second * S)
        return repeats.take(places, batch.values)

    assert not taken(500, 1, 100).doubtful.any()
    for number in range(rounds):
        told = taken(1, 1 + MOST_SEEN * number, 900 + number)
        assert not told.repeats.any()
        assert not told.doubtful.any()
    mark = repeats.mark
    assert mark is not None
    assert len(b64decode(mark.seen)) == 8 * MOST_SEEN
    again = taken(1, 1 + MOST_SEEN * (rounds - 1), 900 + rounds - 1)
    assert int((again.repeats | again.doubtful).sum()) == MOST_SEEN


def test_hashes_beyond_the_last_ones_are_forgotten_and_places_stay() -> None:
    seen = _Seen("", lambda value, _: hash_of(value))
    seen.index()
    for found in range(1, 5 * MOST_SEEN):
        seen.add(found)
    assert seen.places(5 * MOST_SEEN - 1) == [5 * MOST_SEEN - 2]
    assert seen.places(4 * MOST_SEEN) == [4 * MOST_SEEN - 1]
    assert seen.places(1) == []
    text, left_out = seen.text()
    assert left_out == 4 * MOST_SEEN - 1
    assert len(b64decode(text)) == 8 * MOST_SEEN
