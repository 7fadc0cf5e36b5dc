"""A run whose mirrors apply rows later: at its end they are those of a run whose mirrors take them with every plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sinks
from connectors.config import PipelineConfig, load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.run import run
from historian.plans.plans import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("few_rows")
SHOP = Path(__file__).parents[2] / "examples" / "shop"


def _config(path: Path, mirror_every: str) -> PipelineConfig:
    path.mkdir()
    file = path / "shop.yaml"
    file.write_text(
        f"name: shop\nsource: {{type: binlog-files, directory: {SHOP / 'binlog'}, tables: ['shop.coupons', 'shop.orders']}}\n"
        f"history: {{store: 'sqlite:///{path}/store.db'}}\n"
        f"sinks: [{{type: delta, path: lake, mirror_every: {mirror_every}}}]\nrun: {{max_batch_bytes: 400 KB}}\n"
    )
    return load_config(file)


def _rows(spark: SparkSession, path: Path) -> dict[str, Any]:
    cut = sinks.consistent(spark, path)
    return {name: sorted(map(repr, frame.collect())) for name, frame in cut.mirror.items()}


def test_the_end_of_a_run_brings_every_mirror_to_one_position(spark: SparkSession, tmp_path: Path) -> None:
    made: dict[str, list[Plan]] = {"0": [], "1 hour": []}
    for said, plans in made.items():
        run(
            _config(tmp_path / said, said),
            once=True,
            spark=spark,
            observer=on_written(lambda plan, _, plans=plans: plans.append(plan)),
        )  # type: ignore[misc]

    plain, late = made.values()
    assert len(plain) + 1 == len(late) > 3
    assert (late[-1].start, late[-1].end) == (plain[-1].end, plain[-1].end)
    lakes = [tmp_path / said / "lake" for said in made]
    assert _rows(spark, lakes[0]) == _rows(spark, lakes[1])
    assert late[-1].number == sinks.consistent(spark, lakes[1]).plan
    commits = [len(list(lake.glob("shop_*/_delta_log/0*.json"))) for lake in lakes]
    assert commits[1] < commits[0]
