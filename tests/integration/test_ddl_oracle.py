"""The schema computed from the log of random DDL against what the server says of itself, statement by statement.

After each accepted statement every table is the one that ``information_schema`` shows, as we hold it and as we print it, and
the TABLE_MAPs of new rows, with all metadata that the server can write, fit it. ``DDL_STATEMENTS`` sets how many statements
a flavor gets in all, ``DDL_SEED`` where to begin.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pymysql
import pytest

from databases.servers import Server
from models.ddl_oracle import Oracle

STATEMENTS = int(os.environ.get("DDL_STATEMENTS", "500"))
SEED = int(os.environ.get("DDL_SEED", "1"))
SHARES = {"mysql9": 0.5, "mysql8": 0.3, "mysql57": 0.2, "mariadb118": 0.5, "mariadb1011": 0.3, "mariadb105": 0.2}
"""Of a flavor's statements."""
CONNECTION_LOST = (2006, 2013)
"""Errors of a client whose server has crashed, as MySQL 9.7.4 does about once in 15,000 of these statements."""
ROUND = 500
"""Statements between two new beginnings, so that no state grows old."""


@pytest.mark.parametrize("name", SHARES)
def test_the_computed_schema_is_the_servers_after_each_statement(
    name: str, fresh_server: Callable[..., Server], record_property: Callable[[str, object], None]
) -> None:
    server = fresh_server(name, "lower_case_table_names=1" if name == "mysql57" else "binlog_row_metadata=FULL")
    left = round(STATEMENTS * SHARES[name])
    seed = SEED
    crashes = 0
    findings: list[str] = []
    counts = dict.fromkeys(("accepted", "rejected", "refused", "compared", "mapped", "values"), 0)
    while left:
        oracle = Oracle(server, seed)
        try:
            for _ in range(min(left, ROUND)):
                for finding in oracle.step():
                    findings.append(f"seed {seed}: {finding}")
                    print(findings[-1], flush=True)
            oracle.close()
        except pymysql.OperationalError as error:
            if error.args[0] not in CONNECTION_LOST:
                raise
            crashes += 1
            print(f"seed {seed}: the server crashed", flush=True)
            server.restart()
        for what in counts:
            counts[what] += getattr(oracle, what)
        left -= min(left, ROUND)
        seed += 1
    record_property("counts", counts)
    print(f"{name}, seeds {SEED} to {seed - 1}: {counts}")
    assert findings == []
    assert crashes <= STATEMENTS // 10_000
    assert counts["accepted"] > STATEMENTS * SHARES[name] // 4
    assert min(counts["compared"], counts["mapped"], counts["values"]) > 0
