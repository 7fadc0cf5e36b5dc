"""What the data source tells Spark before it reads a byte."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql.streaming.datasource import ReadMaxBytes
from pyspark.sql.types import StructType

from connectors.spark import HistorianSource

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
