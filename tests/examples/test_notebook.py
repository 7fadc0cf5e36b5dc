"""examples/changes.ipynb runs from top to bottom, and what it finds is what the recorded server held."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FOUND = ("operations", "orphans", "rewound", "between", "once", "streamed", "finally")
# Cells share one process, as in Jupyter; what they made is printed before the session ends.
AT_THE_END = """
streamed = customers.count()
last_orders, last_customers = (state(rows, ["id"], f"{server}:1-100000") for rows in (orders, customers))
orphans = last_orders.join(last_customers, last_orders.customer == last_customers.id, "left_anti").count()
finally_ = state(orders, ["id"], f"{server}:1-100000").orderBy("id").select("id", "amount").toArrow().to_pydict()
import json
print("FOUND " + json.dumps([operations, orphans, rewound, between, once, streamed, finally_], default=str))
"""


@pytest.mark.slow
def test_the_notebook_runs_and_finds_what_the_server_held() -> None:
    notebook = json.loads((EXAMPLES / "changes.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [] == [cell["outputs"] for cell in notebook["cells"] if cell.get("outputs")]
    assert "spark.stop()" == cells[-1]
    script = "\n".join([*cells[:-1], AT_THE_END, cells[-1]])
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("FOUND "))
    found: dict[str, Any] = dict(zip(FOUND, json.loads(line.removeprefix("FOUND ")), strict=True))

    assert {"0", "1", "2", "3"} == set(found["operations"])
    assert found["operations"]["2"] == found["operations"]["3"]
    assert found["once"] == 0
    assert [*found["rewound"].values()] == sorted(found["rewound"].values())
    assert found["between"] > 0 < found["streamed"]
    last = pq.read_table(EXAMPLES / "shop/final/orders.parquet")
    customers = set(pq.read_table(EXAMPLES / "shop/final/customers.parquet")["id"].to_pylist())
    assert sum(customer not in customers for customer in last["customer"].to_pylist()) == found["orphans"]
    # The server printed its rows as text.
    held = dict(zip(last["id"].to_pylist(), last["amount"].to_pylist(), strict=True))
    assert held == dict(zip(map(str, found["finally"]["id"]), found["finally"]["amount"], strict=True))
