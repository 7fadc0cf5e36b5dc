"""Tables of topics that stopped go on as a file says: `historian heal`."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.tracking.sources import make_tracker
from databases.kafka import Kafka

TOPIC = "shop.healed"


def maxwell(number: int, **values: Any) -> dict[str, Any]:
    data = {"id": number, **values}
    return {"database": "shop", "table": "t", "type": "insert", "ts": 1_700_000_000 + number, "data": data}


def historian(path: Path, *arguments: str, code: int = 0) -> str:
    answer = CliRunner().invoke(app, [arguments[0], str(path), *arguments[1:]])
    assert code == answer.exit_code, answer.output
    return answer.output


def read(path: Path, after: int) -> tuple[int, list[tuple[Any, ...]]]:
    """Makes the plans behind one; gives the last one's number and the rows of all."""
    found, number = [], after
    tracker = make_tracker(load_config(path))
    with closing(tracker.store):
        while (plan := tracker.plan_after(number)) is not None:
            number = plan.number
            for planned in plan.ranges:
                for chunk in tracker.reader.read(planned, plan.tables):
                    found += [tuple(row.values())[5:] for row in chunk.rows.to_pylist()]
    return number, found


def test_a_table_of_topics_goes_on_as_its_file_says(kafka: Kafka, tmp_path: Path) -> None:
    kafka.make_topic(TOPIC)
    path, file = tmp_path / "shop.yaml", tmp_path / "now.sql"

    def configure(more: str = "") -> None:
        path.write_text(
            f"name: shop\nsource: {{type: kafka, brokers: '{kafka.brokers}', topics: [{TOPIC}], format: maxwell{more}}}\n"
            f"history: {{store: 'sqlite:///{tmp_path}/shop.db'}}\nsinks: [{{type: parquet, path: {tmp_path}/lake}}]\n",
            encoding="utf-8",
        )

    def send(*messages: dict[str, Any]) -> None:
        kafka.produce(TOPIC, [(None, json.dumps(each).encode()) for each in messages])

    configure()
    send(maxwell(1, v="a"))
    number, rows = read(path, 0)
    assert [(1, "a")] == rows
    send(maxwell(2, v=[1]), maxwell(3, v="lost"))
    number, rows = read(path, number)
    assert [] == rows
    refused = historian(path, "heal", "--table", "shop.t", code=3)
    assert "no file says what the table is by now" in refused
    overridden = historian(path, "ddl-override", "--table", "shop.t", "--statement", "", code=3)
    assert "topics are not read again for one table" in overridden

    file.write_text("CREATE TABLE shop.t (id INT PRIMARY KEY, v JSON)", encoding="utf-8")
    configure(f", schema: {file}")
    said = historian(path, "heal", "--table", "shop.t")
    send(maxwell(4, v={"a": 1}))
    _, rows = read(path, number)

    assert f"shop.t goes on from {TOPIC}:0:3" in said
    assert [(4, '{"a": 1}')] == rows
    with closing(make_tracker(load_config(path)).store) as store:
        assert () == store.stopped()
    assert "json" in historian(path, "schemas", "at", "shop.t", f"{TOPIC}:0:3")
