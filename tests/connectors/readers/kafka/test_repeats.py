"""Messages that a producer sends again are known, and no other one is taken for such a one."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import numpy as np
import pytest

from connectors.readers.kafka import scanning
from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.debezium.changes import changed
from connectors.readers.kafka.located import batches
from connectors.readers.kafka.messages.batch import Texts
from connectors.readers.kafka.messages.events import RowSchema, SqlEvent
from connectors.readers.kafka.repeats import Places, Repeats
from connectors.readers.kafka.scanning import TopicScan
from historian.errors import UnsupportedEvent
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
    number: int, gtid: int | None, at: tuple[int, int, int], time_s: int, op: str = "c", sent: int = 0
) -> bytes:
    """A change of Debezium's; *sent*: when, which is no part of it."""
    file, offset, line = at
    payload = {
        "before": None,
        "after": {"id": number, "v": 1},
        "source": {
            "ts_ms": 1000 * time_s,
            "db": "shop",
            "table": "t",
            "gtid": None if gtid is None else f"{UUID}:{gtid}",
            "file": f"binlog.{file:06}",
            "pos": offset,
            "row": line,
        },
        "op": op,
        "ts_ms": sent,
    }
    return b'{"schema":' + json.dumps(SCHEMA).encode() + b',"payload":' + json.dumps(payload).encode() + b"}"


def told(values: list[bytes], cuts: list[int]) -> list[bool]:
    """Which of messages are repeats, read in batches, with the mark kept in between."""
    mark, found = None, list[bool]()
    for begin, end in pairwise([0, *cuts, len(values)]):
        part = values[begin:end]
        places = Places(len(part))
        for number, value in enumerate(part):
            places.note(number, value, 1000 * json.loads(value)["payload"]["source"]["ts_ms"])
        repeats = Repeats(mark)
        found += repeats.take(places, Texts.of(part)).tolist()
        mark = repeats.mark
    return found


def log(numbers: random.Random, compressed: bool) -> list[bytes]:
    """Messages of one partition: transactions of some events of some rows; offsets inside of compressed ones say nothing."""
    found, offset, time_s = list[bytes](), 4, 100
    for gtid in range(1, 40):
        offset += 1000
        time_s += numbers.randrange(3)
        for event in range(numbers.randrange(4)):
            inside = offset - numbers.randrange(50) if compressed else offset + 10 * event
            for line in range(numbers.randrange(1, 3)):
                found.append(message(len(found), gtid, (2, inside, line), time_s))
    return found


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_what_comes_again_behind_a_restart_is_a_repeat_and_nothing_else(seed: int, compressed: bool) -> None:
    numbers = random.Random(seed)
    values = log(numbers, compressed)
    sent, is_new = list[bytes](), list[bool]()
    at = seen = 0
    while at < len(values):
        for value in values[at : (upto := min(len(values), at + numbers.randrange(1, 20)))]:
            is_new.append(at >= seen)
            sent.append(value.replace(b'"ts_ms": 0}', b'"ts_ms": %d}' % len(sent)))
            at += 1
            seen = max(seen, at)
        # It goes on from the begin of a transaction that it noted some time ago.
        if upto < len(values) and numbers.random() < 0.6:
            at = numbers.randrange(max(0, upto - 10), upto)
            while at and gtid_of(values[at - 1]) == gtid_of(values[at]):
                at -= 1
    cuts = sorted(numbers.randrange(len(sent)) for _ in range(4))
    assert [not new for new in is_new] == told(sent, cuts)


def gtid_of(value: bytes) -> str:
    return str(json.loads(value)["payload"]["source"]["gtid"])


@pytest.mark.parametrize(
    "values",
    [
        [message(1, 9, (2, 500, 0), 100), message(2, 1, (1, 4, 0), 101)],  # RESET BINARY LOGS AND GTIDS
        [
            message(1, 7, (2, 400, 0), 100),
            message(2, 9, (2, 500, 0), 100),
            message(3, 8, (2, 600, 0), 100),
        ],  # out of order
        [message(1, 9, (2, 500, 0), 100), message(2, 8, (2, 400, 0), 100, op="r")],  # an incremental snapshot
        [message(1, None, (2, 500, 0), 100), message(2, None, (2, 400, 0), 100)],  # no GTIDs
        [message(1, 9, (2, 500, 0), 100), message(2, 9, (2, 500, 0), 100)],  # a compressed transaction
    ],
)
def test_what_is_no_repeat_for_sure_is_none(values: list[bytes]) -> None:
    assert not any(told(values, []))


def pieces(gtid: int, lines: range, time_s: int = 100) -> list[bytes]:
    return [message(line, gtid, (2, 100 * gtid, line), time_s) for line in lines]


def op_first(line: int) -> bytes:
    payload = json.loads(message(line, 7, (2, 400, 0), 100))["payload"]
    return json.dumps({"payload": {"op": "c", **payload}}).encode()


@pytest.mark.parametrize(
    "met, sent, known",
    [
        # RESET BINARY LOGS AND GTIDS: what follows the first change that cannot be told apart is new.
        (
            [message(n, n, (1, 100 * n, 0), 100) for n in range(1, 8)],
            [message(10 + n, n, (1, 100 * n - 50, 0), 160 * n) for n in range(1, 9)],
            0,
        ),
        # One change's time lies ahead.
        (
            [message(n, n, (1, 100 * n, 0), 900 if n == 2 else 100) for n in range(1, 5)],
            [message(10 + n, n, (1, 100 * n - 50, 0), 200 + n) for n in range(1, 6)],
            0,
        ),
        # The rest of a transaction is left out by now, and a row that was left out comes.
        (
            pieces(1, range(1)) + pieces(2, range(3)),
            pieces(1, range(1)) + pieces(2, range(1)) + pieces(2, range(9, 10)),
            2,
        ),
        # Another server took the place, with files of its own and another order.
        ([message(1, 8, (9, 10, 0), 100), message(2, 10, (9, 50, 0), 102)], [message(3, 9, (3, 50, 0), 101)], 0),
        # What tells rows apart stands behind the operation.
        ([op_first(1)], [op_first(2)], 0),
        # Of a long transaction the first ones are known, and those behind them are counted.
        (pieces(1, range(1)) + pieces(2, range(100)), pieces(1, range(1)) + pieces(2, range(100)), 101),
        (pieces(1, range(1)) + pieces(2, range(100)), pieces(2, range(50, 100)), 0),
        # A change's time is later than that of the last one, as that took long.
        (
            pieces(1, range(1)) + pieces(2, range(1), 101) + pieces(3, range(1)),
            pieces(2, range(1), 101) + pieces(3, range(1)),
            1,
        ),
    ],
)
def test_in_doubt_a_message_is_a_change(met: list[bytes], sent: list[bytes], known: int) -> None:
    found = told(met + sent, [len(met)])
    assert not any(found[: len(met)])
    assert sum(found) == known


def scanned(values: list[bytes], *, located: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[object, ...]:
    with monkeypatch.context() as patched:
        if not located:
            patched.setattr(batches, "FEWEST_LOCATED", 10_000)
        scan = TopicScan({("t", 0): (0, len(values))}, KafkaSettings(brokers="", topics=("t",)))
        scan.take(("t", 0), batch_of([(None, value) for value in values]))
        (part,) = scan.ranges()
        return part.repeated, part.mark, part.passed_over


def test_compiled_code_and_python_tell_the_same_repeats_and_the_same_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    values = log(random.Random(3), compressed=False)
    values = (
        [*values[:60], *values[40:]] if gtid_of(values[39]) != gtid_of(values[40]) else [*values[:60], *values[38:]]
    )
    assert len(values) > batches.FEWEST_LOCATED
    compiled = scanned(values, located=True, monkeypatch=monkeypatch)
    assert compiled == scanned(values, located=False, monkeypatch=monkeypatch)
    repeated, mark, passed_over = compiled
    assert repeated
    assert mark is not None
    assert scanning.REPEATED in dict(passed_over)  # type: ignore[call-overload]
    assert np.diff(np.array(repeated)).sum() == dict(passed_over)[scanning.REPEATED]  # type: ignore[call-overload]


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
