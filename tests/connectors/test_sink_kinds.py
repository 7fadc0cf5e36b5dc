from __future__ import annotations

from typing import Any

import pytest

from connectors.config import SinkConfig
from connectors.sink_kinds import tells_rows
from historian.names import TableName


@pytest.mark.parametrize(
    "chosen, expected",
    [
        ({}, True),
        ({"mirror": None, "history": "{table}_history"}, True),
        ({"mask": (("v", None),)}, False),
        ({"exclude": ("v",)}, False),
        ({"where": "v > 1"}, False),
        ({"key": ("v",)}, False),
    ],
)
def test_a_lake_tells_rows_by_their_values_where_nothing_is_done_to_them(
    chosen: dict[str, Any], expected: bool
) -> None:
    lake = SinkConfig(type="delta", settings={"path": "/lake", "tables": (("c.child", tuple(chosen.items())),)})
    child, other = TableName("c", "child"), TableName("c", "other")

    assert expected == tells_rows((lake,), child)
    assert tells_rows((lake,), other)
    assert not tells_rows((lake, lake), other)
    assert not tells_rows((SinkConfig(type="console", settings={}),), other)
