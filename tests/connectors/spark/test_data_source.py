"""What the data source tells Spark before it reads a byte."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql.streaming.datasource import ReadMaxBytes
from pyspark.sql.types import StructType

from connectors.spark.data_source import HistorianSource
from historian.store import Store

RECORDING = Path(__file__).parents[3] / "examples/shop/binlog"
CONFIG = """
name: shop
source: {type: binlog-files, flavor: mysql, directory: binlog}
history: {store: "sqlite:///shop.db"}
run: {checkpoint: checkpoint, max_batch_bytes: 3 MB}
"""


def test_a_batch_is_limited_to_the_configured_bytes_of_log(tmp_path: Path) -> None:
    config = tmp_path / "shop.yaml"
    config.write_text(CONFIG)
    (tmp_path / "binlog").mkdir()
    reader = HistorianSource({"config": str(config)}).streamReader(StructType())

    assert ReadMaxBytes(3_000_000) == reader.getDefaultReadLimit()


def test_finding_a_typed_streams_schema_plans_no_more_than_a_batch_at_a_time(tmp_path: Path) -> None:
    """The plans are the stream's own: it begins with those that the search for its table made."""
    config = tmp_path / "shop.yaml"
    config.write_text(CONFIG.replace("directory: binlog", f"directory: {RECORDING}").replace("3 MB", "1 MB"))
    options = {"config": str(config), "table": "shop.coupons", "name": "coupons", "store": f"sqlite:///{tmp_path}/s.db"}
    HistorianSource(options).schema()

    (first, *_) = Store.open(options["store"]).plans()
    assert sum(planned.end - planned.start for planned in first.ranges) < 2_000_000
