"""A scan of batches tells the same as one of message after message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.located import batches
from connectors.readers.kafka.scanning import TopicScan
from logs.topic_streams import FIRST_MS, batch_of, streams

STATED = st.lists(st.integers(0, 5).map(lambda second: 1000 * FIRST_MS + 1_000_000 * second), max_size=2)


def told(
    form: str, messages: list[Any], cuts: list[int], limit_bytes: int | None, stated_us: list[int]
) -> tuple[Any, ...]:
    scan = TopicScan(
        {("t", 0): (0, len(messages))}, KafkaSettings(brokers="", topics=("t",), format=form, keeps_unread=True)
    )
    for begin, end in zip([0, *cuts], [*cuts, len(messages)], strict=True):
        if end > begin and (limit_bytes is None or scan.size_bytes < limit_bytes):
            scan.take(("t", 0), batch_of(messages[begin:end], begin), limit_bytes)
    found = list(scan.found)
    scan.tell_again(stated_us)
    again = sorted(scan.found[len(found) :], key=repr)
    return found, again, scan.ranges(), scan.event_time_us, scan.size_bytes, scan.message_count


@pytest.mark.parametrize("form", ["debezium_json", "canal_json", "debezium_json_schemaless", "maxwell"])
@settings(max_examples=60, deadline=None)
@given(data=st.data(), most_slow=st.sampled_from([0, 8]), stated_us=STATED)
def test_batches_tell_what_their_messages_do(
    form: str, data: st.DataObject, most_slow: int, stated_us: list[int]
) -> None:
    parts = [data.draw(streams(form))[1] for _ in range(data.draw(st.integers(1, 3)))]
    messages = data.draw(st.permutations([message for part in parts for message in part]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(messages)), max_size=2)))
    limit_bytes = data.draw(st.one_of(st.none(), st.integers(1, 9000)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "_MOST_SLOW", most_slow)
        patch.setattr(batches, "FEWEST_LOCATED", 1_000_000)
        one_by_one = told(form, messages, list(range(1, len(messages))), limit_bytes, stated_us)
        patch.setattr(batches, "FEWEST_LOCATED", 0)

        located = told(form, messages, cuts, limit_bytes, stated_us)

    assert one_by_one == located


MYSQL, MONGODB = {"connector": "mysql", "db": "shop"}, {"connector": "mongodb", "db": "shop", "collection": "t"}
PUBLIC, SHOP = ({"connector": "postgresql", "db": "shop", "schema": name} for name in ("public", "shop"))
DBO, SHOP_OF_X = (
    {"connector": "sqlserver", "db": db, "schema": schema} for db, schema in (("shop", "dbo"), ("x", "shop"))
)
SERVERS = [(MYSQL, PUBLIC), (MYSQL, DBO), (SHOP, SHOP_OF_X), (MYSQL, MONGODB), (SHOP, MYSQL), (PUBLIC, SHOP)]


@pytest.mark.parametrize("servers", SERVERS, ids=lambda pair: "-".join(each["connector"] for each in pair))
def test_tables_of_several_servers_are_told_apart_as_one_by_one(
    servers: tuple[dict[str, str], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_MOST_SLOW", 0)
    messages = []
    for source in (servers[0], servers[0], servers[1], servers[0], servers[1]):
        change = {"before": None, "after": {"id": 1}, "source": {"table": "t", "ts_ms": 1, **source}, "op": "c"}
        messages.append((b'{"id":1}', json.dumps(change).encode()))
    monkeypatch.setattr(batches, "FEWEST_LOCATED", 1_000_000)
    one_by_one = told("debezium_json_schemaless", messages, [1, 2, 3, 4], None, [])
    monkeypatch.setattr(batches, "FEWEST_LOCATED", 0)

    assert one_by_one == told("debezium_json_schemaless", messages, [], None, [])


@pytest.mark.parametrize("rows", ["I I2 D I", "I D I D", "D D", "D I D", "I2 D D I2 I", "I D2 D I", "I2 D I D2 I2 D"])
def test_deletes_of_the_key_alone_do_not_hide_what_rows_behind_them_tell(
    rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_MOST_SLOW", 0)
    messages = []
    for number, row in enumerate(rows.split()):
        types = {"k": "int", "v": "int"} if row.endswith("2") else {"k": "int"}
        told_of_all = {"database": "a", "table": "t", "isDdl": False, "pkNames": ["k"], "mysqlType": types, "old": None}
        op = "INSERT" if row.startswith("I") else "DELETE"
        change = {"type": op, "es": 1000 + number, "data": [dict.fromkeys(types, "1")], **told_of_all}
        messages.append((None, json.dumps(change).encode()))
    monkeypatch.setattr(batches, "FEWEST_LOCATED", 1_000_000)
    one_by_one = told("canal_json", messages, list(range(1, len(messages))), None, [])
    monkeypatch.setattr(batches, "FEWEST_LOCATED", 0)

    assert one_by_one == told("canal_json", messages, [], None, [])
    met = [[column.name for column in each.columns] for _, each in one_by_one[0] if each.certainty == "types"]
    whole = [["k", "v"] if row.endswith("2") else ["k"] for row in rows.split() if row != "D"]
    assert [each for number, each in enumerate(whole) if number == 0 or each != whole[number - 1]] == met
