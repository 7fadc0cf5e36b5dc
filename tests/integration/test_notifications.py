"""A run tells webhooks, commands and its log what happens, at least once, and waits for none of them."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server
from historian.errors import LeaseHeld
from historian.store import Store
from monitoring.webhooks import receiving
from replicas.first_copies import copying_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOPS = ("ALTER TABLE c.t MODIFY v CHAR(3)", "INSERT INTO c.t VALUES (7, 'seven')")


@pytest.fixture
def source(mysql9: Server) -> Server:
    mysql9.clear()
    mysql9.sql("CREATE DATABASE c")
    mysql9.sql("CREATE TABLE c.t (id INT PRIMARY KEY, v VARCHAR(20))")
    return mysql9


def _config(server: Server, directory: Path, *channels: str) -> Path:
    path = copying_config(server, directory)
    text = path.read_text().replace('lake"}', 'lake", evolution: {change_type: quarantine}}')
    path.write_text(text + "notify:\n  to:\n" + "".join(f"    - {{{channel}}}\n" for channel in channels))
    return path


def test_all_channels_are_told_in_order_what_happened(
    source: Server, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "told.jsonl"
    program = f"import sys; open({str(file)!r}, 'a').write(sys.stdin.read() + chr(10))"
    with receiving(refusals=2) as receiver:
        command = json.dumps([sys.executable, "-c", program])
        path = _config(
            source, tmp_path, f"webhook: '{receiver.url}'", f"command: {command}", "log: true, events: [table_stopped]"
        )
        assert {} == run(load_config(path), once=True, spark=spark)
        assert [] == receiver.taken, "what was there before is no news"
        source.sql("ALTER TABLE c.t ADD COLUMN w INT")
        for statement in STOPS:
            source.sql(statement.replace("'seven'", "'s', 1"))
        with caplog.at_level(logging.INFO, logger="connectors.notifications"):
            assert ["c.t"] == list(run(load_config(path), once=True, spark=spark))

        by_command = [json.loads(line) for line in file.read_text().splitlines()]
        assert receiver.refused == 2
        assert [m["key"] for m in receiver.taken] == [m["key"] for m in by_command]
        assert [m["event"] for m in by_command] == ["schema_change", "schema_change", "table_stopped"]
        assert [m["text"] for m in by_command[:2]] == ["c.t: ALTER TABLE c.t ADD COLUMN w INT", f"c.t: {STOPS[0]}"]
        assert by_command[2]["text"].startswith("c.t stopped: ")
        assert [
            r.message
            for r in caplog.records
            if r.name == "connectors.notifications.channels" and r.levelno >= logging.ERROR
        ] == [by_command[2]["text"]]
        source.sql("INSERT INTO c.t VALUES (8, 'e', 1)")
        run(load_config(path), once=True, spark=spark)
        assert len(receiver.taken) == 3, "a run that finds the same tells nothing"
        assert "secret-path" not in caplog.text


def test_a_statement_is_told_with_what_each_target_does_with_it(
    source: Server, spark: SparkSession, tmp_path: Path
) -> None:
    with receiving() as receiver:
        path = _config(
            source,
            tmp_path,
            f"webhook: '{receiver.url}', events: [schema_change]",
            f"webhook: '{receiver.url}', template: slack, events: [schema_change]",
            f"webhook: '{receiver.url}', template: pagerduty, routing_key: k, events: [schema_change]",
        )
        lake = 'history: "{database}_{table}_history", tables: {"c.u": {evolution: {add_column: ignore}}}'
        path.write_text(path.read_text().replace("evolution: {change", f"{lake}, evolution: {{change"))
        source.sql("CREATE TABLE c.u (id INT PRIMARY KEY)")
        run(load_config(path), once=True, spark=spark)
        statements = (
            "ALTER TABLE c.t ADD COLUMN w INT",
            "ALTER TABLE c.u ADD COLUMN x INT",
            "ALTER TABLE c.u MODIFY x BIGINT",
            STOPS[0],
            "CREATE TABLE c.n (id INT PRIMARY KEY)",
        )
        for statement in statements:
            source.sql(statement)
        source.sql("INSERT INTO c.t VALUES (7, 's', 1)")
        run(load_config(path), once=True, spark=spark)

    plain = [m for m in receiver.taken if "event" in m]
    assert [m["details"]["tables"][0] for m in plain] == ["c.t", "c.u", "c.u", "c.t", "c.n"]
    told = [
        [
            (each["kind"], each["target"], "; ".join(each["effects"]), each["stopped"])
            for each in m["details"]["targets"]
        ]
        for m in plain
    ]
    assert told[0] == [
        ("changelog", "c_t_changes", "w integer is added", None),
        ("mirror", "c_t", "w integer is added, NULL in the rows that are there", None),
        ("history", "c_t_history", "w integer is added, NULL in the rows that are open", None),
    ]
    assert {("", None)} == {(effects, stopped) for _, _, effects, stopped in (*told[1], *told[2])}, told[1:3]
    assert [("table", "")] == [(kind, target) for kind, target, _, _ in told[3]]
    assert "change_type" in told[3][0][3], "it stops, and why"
    assert ["changelog", "mirror", "history"] == [kind for kind, *_ in told[4]]
    assert all(effects.startswith("is made: ") for _, _, effects, _ in told[4])
    assert ["info", "info", "info", "warning", "info"] == [m["severity"] for m in plain]

    slack = next(m["text"] for m in receiver.taken if set(m) == {"text"})
    assert slack.splitlines()[1:] == [f"\u2022 {kind} {target}: {effects}" for kind, target, effects, _ in told[0]]
    page = next(m["payload"] for m in receiver.taken if "payload" in m)
    assert "mirror c_t: w integer is added" in page["summary"]
    assert 3 == len(page["custom_details"]["targets"])


def test_what_nobody_took_is_shown_and_told_by_the_next_run(
    source: Server, spark: SparkSession, tmp_path: Path
) -> None:
    with receiving() as receiver:
        url = receiver.url
    path = _config(source, tmp_path, f"webhook: '{url}'")
    run(load_config(path), once=True, spark=spark)
    source.sql("ALTER TABLE c.t ADD COLUMN w INT")
    run(load_config(path), once=True, spark=spark)

    shown = CliRunner().invoke(app, ["status", str(path), "--json", "--no-targets"]).stdout
    (waits,) = json.loads(shown)["notifications"]
    assert (waits["waiting"], "refused" in waits["error"], "secret-path" in shown) == (1, True, False)
    told = CliRunner().invoke(app, ["status", str(path), "--no-targets"]).output
    assert "1 messages wait" in told

    with receiving() as other:
        path.write_text(path.read_text().replace(url, other.url))
        run(load_config(path), once=True, spark=spark)
        assert [] == other.taken, "another channel has other messages"


def test_messages_wait_for_a_channel_that_comes_back(source: Server, spark: SparkSession, tmp_path: Path) -> None:
    with receiving(refusals=1000, status=302) as receiver:
        path = _config(source, tmp_path, f"webhook: '{receiver.url}'")
        run(load_config(path), once=True, spark=spark)
        for number in range(3):
            source.sql(f"ALTER TABLE c.t ADD COLUMN w{number} INT")
        run(load_config(path), once=True, spark=spark)
        assert (receiver.refused > 0, receiver.taken) == (True, []), "a redirect was followed"
        receiver.refused = 1000
        run(load_config(path), once=True, spark=spark)
        assert [m["text"][-6:] for m in receiver.taken] == ["w0 INT", "w1 INT", "w2 INT"]
        with closing(Store.open(load_config(path).history.store)) as store:
            assert [] == json.loads(store.notifications())["channels"].popitem()[1]["pending"]


def test_a_run_that_ends_with_an_error_tells_it(source: Server, spark: SparkSession, tmp_path: Path) -> None:
    with receiving() as receiver:
        path = _config(
            source,
            tmp_path,
            f"webhook: '{receiver.url}'",
            f"webhook: '{receiver.url}', template: slack, events: [run_ended]",
        )
        run(load_config(path), once=True, spark=spark)
        with (
            closing(Store.open(load_config(path).history.store)) as store,
            store.lease("c"),
            pytest.raises(LeaseHeld),
        ):
            run(load_config(path), once=True, spark=spark)
        assert ["run_ended"] == [m["event"] for m in receiver.taken if "event" in m]
        (slack,) = [m for m in receiver.taken if "event" not in m]
        assert slack["text"].startswith(":rotating_light: *c* the run ended: ")
