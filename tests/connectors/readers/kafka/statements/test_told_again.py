"""What a partition's rows tell of their table is told again where another partition has told otherwise meanwhile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.readers.base import SchemaMet
from connectors.readers.kafka.client import KafkaSettings
from connectors.readers.kafka.located import batches
from connectors.readers.kafka.scanning import TopicScan
from logs.topic_streams import Message, batch_of


def row(time_ms: int, *names: str, **place: Any) -> Message:
    fields = [{"type": "int32", "field": name} for name in names]
    after = {"type": "struct", "fields": fields, "optional": True, "field": "after"}
    source = {"connector": "mysql", "db": "shop", "table": "t", "ts_ms": time_ms, **place}
    payload = {"before": None, "after": dict.fromkeys(names, 1), "source": source, "op": "c"}
    value = {"schema": {"type": "struct", "fields": [after]}, "payload": payload}
    return None, json.dumps(value, separators=(",", ":")).encode()


@pytest.mark.parametrize("fewest_located", [0, 1_000_000], ids=["located", "one_by_one"])
def test_rows_that_go_on_are_told_again_behind_other_columns_of_another_partition(
    fewest_located: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "FEWEST_LOCATED", fewest_located)
    settings = KafkaSettings(brokers="", topics=("t",), format="debezium_json")
    held = {
        ("t", 0): [row(1, "a", "b"), row(5, "a"), row(9, "a", "b")],
        ("t", 1): [row(at, "a", "b") for at in (2, 5, 6, 7, 10)],
    }
    scan = TopicScan({at: (0, len(messages)) for at, messages in held.items()}, settings)
    for partition, messages in held.items():
        scan.take(partition, batch_of(messages))

    scan.tell_again(())

    met = [(str(each.place), len(each.columns), time_us) for time_us, each in scan.found if isinstance(each, SchemaMet)]
    assert [("t:0:0", 2, 1000), ("t:0:1", 1, 5000), ("t:0:2", 2, 9000)] == [each for each in met if each[0][2] == "0"]
    assert [("t:1:0", 2, 2000), ("t:1:2", 2, 6000), ("t:1:4", 2, 10000)] == [each for each in met if each[0][2] == "1"]


@pytest.mark.parametrize("has_gtids", [False, True], ids=["files", "gtids"])
@pytest.mark.parametrize("fewest_located", [0, 1_000_000], ids=["located", "one_by_one"])
def test_rows_that_tell_their_place_are_told_again_by_it_whatever_their_times(
    fewest_located: int, has_gtids: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "FEWEST_LOCATED", fewest_located)

    def placed(time_ms: int, number: int, *names: str, server: str = "u") -> Message:
        # By GTIDs, files and positions are of any replica.
        place = {"file": "log.000001", "pos": 1000 - number if has_gtids else number, "row": 0, "server_id": 1}
        return row(time_ms, *names, **place, gtid=f"{server}:{number}" if has_gtids else None)

    settings = KafkaSettings(brokers="", topics=("t",), format="debezium_json")
    other = [placed(12, 100, "a", "b", server="other")] if has_gtids else []
    held = {
        ("t", 0): [placed(1, 1, "a", "b"), placed(7, 50, "a"), placed(9, 90, "a", "b")],
        ("t", 1): [placed(at, n, "a", "b") for at, n in ((2, 2), (8, 40), (8, 45), (8, 60), (8, 91))] + other,
    }
    scan = TopicScan({at: (0, len(messages)) for at, messages in held.items()}, settings)
    for partition, messages in held.items():
        scan.take(partition, batch_of(messages))

    scan.tell_again(())

    met = [each for _, each in scan.found if isinstance(each, SchemaMet) and each.place.file == "t:1"]
    assert [("t:1:0", 2000), ("t:1:3", 8000), ("t:1:4", 8000)] == [(str(e.place), e.event_time_us) for e in met]
    numbers = [each.transaction[1] & 0xFFFF for each in met if each.transaction is not None]
    assert [2, 60, 91] == numbers
