"""A run tells a server of OpenLineage what it reads and writes, column by column, and again when a schema changes."""

from __future__ import annotations

import os
import signal
import threading
import uuid
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server
from monitoring.webhooks import Receiver, receiving
from replicas.first_copies import copying_config
from workload.beside import beside
from workload.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULES = """, history: "{database}_{table}_history", tables: {c.t: {
  mask: {card: "0000"}, hash: {mail: {salt: s}}, where: "active = 1", compute: {both: "concat(`name`, mail)"}}}}"""


def _config(server: Server, directory: Path, url: str) -> Path:
    path = copying_config(server, directory)
    text = path.read_text().replace('lake"}', f'lake"{RULES}')
    path.write_text(f"{text}run:\n  openlineage: {{url: '{url}', api_key: 'secret-key', namespace: shops}}\n")
    return path


def test_lineage_goes_by_column_ids_through_a_run_and_its_ddl(
    mysql9: Server, spark: SparkSession, tmp_path: Path
) -> None:
    mysql9.clear()
    mysql9.sql("CREATE DATABASE c")
    mysql9.sql(
        "CREATE TABLE c.t (id INT PRIMARY KEY, name VARCHAR(20), card CHAR(4), mail VARCHAR(50), active INT, gone INT)"
    )
    mysql9.sql("INSERT INTO c.t VALUES (1, 'a', '1234', 'a@b', 1, 1)")
    with receiving(refusals=2) as server:
        path = _config(mysql9, tmp_path, server.url)

        def change(_: threading.Event) -> None:
            try:
                wait_until(lambda: len(_targets(server)) == 3, 90)
                mysql9.sql("ALTER TABLE c.t RENAME COLUMN name TO title, DROP COLUMN gone")
                mysql9.sql("ALTER TABLE c.t ADD COLUMN gone BIGINT")
                mysql9.sql("INSERT INTO c.t VALUES (2, 'b', '1234', 'b@b', 1, 1)")
                wait_until(lambda: all(_has(each, "gone", "long") for each in _targets(server).values()), 60)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        with beside(change):
            assert {} == run(load_config(path), spark=spark)
        of_first = len(server.taken)
        assert {} == run(load_config(path), once=True, spark=spark)

    assert {("/secret-path", "Bearer secret-key")} == set(server.places)
    for event in server.taken:
        _check(event)
    events, later = server.taken[:of_first], server.taken[of_first:]
    assert [{"STREAMING"}, {"BATCH"}] == [
        {event["job"]["facets"]["jobType"]["processingType"] for event in some} for some in (events, later)
    ]
    assert ("START", "COMPLETE") == (later[0]["eventType"], later[-1]["eventType"])
    kinds = [event["eventType"] for event in events]
    assert (kinds[0], set(kinds[1:-1]), kinds[-1]) == ("START", {"RUNNING"}, "COMPLETE")
    assert {("shops", "c")} == {(e["job"]["namespace"], e["job"]["name"]) for e in events}
    assert 1 == len({event["run"]["runId"] for event in events})

    source = {"namespace": f"mysql://{mysql9.host}:{mysql9.port}", "name": "c.t"}
    (read,) = events[-1]["inputs"]
    assert source == {key: read[key] for key in source}
    assert [(f["name"], f["type"]) for f in read["facets"]["schema"]["fields"]] == [
        ("id", "int"),
        ("title", "varchar(20)"),
        ("card", "char(4)"),
        ("mail", "varchar(50)"),
        ("active", "int"),
        ("gone", "bigint"),
    ]
    written = {output["name"]: output for output in events[-1]["outputs"]}
    assert {f"{tmp_path}/lake/c_t{end}" for end in ("", "_changes", "_history")} == set(written)
    assert {"file"} == {output["namespace"] for output in written.values()}
    mirror = written[f"{tmp_path}/lake/c_t"]["facets"]
    assert ["id", "title", "card", "mail", "active", "gone", "both"] == [
        f["name"] for f in mirror["schema"]["fields"] if not f["name"].startswith("_")
    ]
    assert {
        "id": [("id", "IDENTITY", False)],
        "title": [("title", "IDENTITY", False)],
        "card": [("card", "TRANSFORMATION", True)],
        "mail": [("mail", "TRANSFORMATION", True)],
        "active": [("active", "IDENTITY", False)],
        "gone": [("gone", "IDENTITY", False)],
        "both": [("title", "TRANSFORMATION", False), ("mail", "TRANSFORMATION", False)],
    } == _came(server, "c_t")
    assert ["active"] == [each["field"] for each in mirror["columnLineage"]["dataset"]]
    before = next(e for e in events if e["outputs"])
    assert any("name" in output["facets"]["columnLineage"]["fields"] for output in before["outputs"]), (
        "the schema of before was told before"
    )


def _targets(server: Receiver) -> dict[str, Any]:
    """The newest of what is told of each target, by its directory."""
    return {Path(output["name"]).name: output for event in server.taken for output in event["outputs"]}


def _has(output: dict[str, Any], name: str, kind: str) -> bool:
    return any((field["name"], field["type"]) == (name, kind) for field in output["facets"]["schema"]["fields"])


def _came(server: Receiver, target: str) -> dict[str, list[tuple[str, str, bool]]]:
    fields = _targets(server)[target]["facets"]["columnLineage"]["fields"]
    return {
        name: [
            (each["field"], each["transformations"][0]["subtype"], each["transformations"][0]["masking"])
            for each in of["inputFields"]
        ]
        for name, of in fields.items()
    }


def _check(event: dict[str, Any]) -> None:
    """What the specification wants of every event of a run."""
    assert event["schemaURL"].startswith("https://openlineage.io/spec/2-")
    assert event["producer"].startswith("urn:pyspark-historian:")
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    uuid.UUID(event["run"]["runId"])
    holders = (event["run"], event["job"], *event["inputs"], *event["outputs"])
    for facet in (facet for holder in holders for facet in holder["facets"].values()):
        assert {"_producer", "_schemaURL"} <= set(facet)
