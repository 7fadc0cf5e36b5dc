"""The schema computed from the log of random DDL against what the server says of itself, statement by statement."""

from collections.abc import Callable

import pytest

from ddl_oracle import Oracle
from servers import Server

STATEMENTS = 150


@pytest.mark.parametrize(
    "name,seed", [("mysql9", 3), ("mysql8", 5), ("mysql57", 4), ("mariadb1011", 5), ("mariadb118", 4)]
)
def test_the_computed_schema_is_the_servers_after_each_statement(
    name: str, seed: int, fresh_server: Callable[..., Server]
) -> None:
    print(f"{name}, seed {seed}")
    oracle = Oracle(fresh_server(name), seed)
    findings: list[str] = []
    for _ in range(STATEMENTS):
        findings += oracle.step()
    oracle.close()
    assert findings == []
    assert oracle.accepted > STATEMENTS // 4
    assert oracle.values > 0
