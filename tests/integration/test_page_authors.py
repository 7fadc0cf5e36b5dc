"""Who wrote what the page shows: tools for online schema changes run their statements on a real server, and a person writes too."""

from __future__ import annotations

import base64
import json
import re
import zlib
from contextlib import closing

import pytest

from connectors.monitoring.state import connector_state
from connectors.page.page import Page
from connectors.tracking.recorded import recorded_store
from databases.online_tools import gh_ost, pt_osc, spirit, vitess
from databases.servers import Server
from replicas.tracked import Tracked


@pytest.fixture
def source(mysql8: Server) -> Server:
    return mysql8


def test_each_tool_is_told_from_the_others(source: Server, tracked: Tracked, database: str) -> None:
    tools = {"ghosted": gh_ost, "osced": pt_osc, "spirited": spirit, "vitessed": vitess}
    for table in (*tools, "plain"):
        source.sql(f"CREATE TABLE {database}.{table} (id INT PRIMARY KEY, a INT)")
        source.sql(f"INSERT INTO {database}.{table} VALUES (1, 1)")
    for table, tool in tools.items():
        tool(source, database, table, "ADD COLUMN b INT")
    source.sql(f"ALTER TABLE {database}.plain ADD COLUMN b INT")
    with tracked.tracker() as tracker:
        tracked.news(tracker)
    store = recorded_store(tracked.config)
    assert store is not None
    with closing(store):
        text = Page(tracked.config).html(store, connector_state(tracked.config, store))

    found = re.search(r'id="data">(.*?)</script>', text)
    assert found is not None
    data = json.loads(found[1])
    timelines = [json.loads(zlib.decompress(base64.b64decode(blob))) for blob in data["blobs"]]
    wrote = {
        table["name"].partition(".")[2]: [
            version[5] for version in timeline["versions"] if any(change[:2] == ["added", "b"] for change in version[6])
        ]
        for table, timeline in zip(data["tables"], timelines, strict=True)
        if table["state"] != "dropped" and not table["name"].partition(".")[2].startswith("_")
    }
    assert wrote == {
        "ghosted": ["gh-ost"],
        "osced": ["pt-online-schema-change"],
        "spirited": ["spirit"],
        "vitessed": ["vitess"],
        "plain": [""],
    }
