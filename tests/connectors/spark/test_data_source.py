"""What the data source tells Spark before it reads a byte."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxBytes
from pyspark.sql.types import StructType

from connectors.spark.data_source import HistorianSource
from connectors.spark.options import source_options
from historian.errors import ConfigError, LogPurged, SourceError
from historian.store import Store

RECORDING = Path(__file__).parents[3] / "examples/shop/binlog"
CONFIG = """
name: shop
source: {type: binlog-files, flavor: mysql, directory: binlog}
history: {store: "sqlite:///shop.db"}
run: {checkpoint: checkpoint, max_batch_bytes: 3 MB}
"""


SERVER = "4dcb5179-e59f-11f1-b7a4-02fc00000001"
OF_RECORDING = CONFIG.replace("directory: binlog", f"directory: {RECORDING}")


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


@pytest.mark.parametrize("history", ["", "history: {}", "# history: {store: x}"])
def test_a_stream_of_a_text_that_only_looks_as_if_it_named_a_store_is_refused(history: str) -> None:
    text = f"name: history_store\nsource: {{type: binlog-files, directory: history}}\n{history}\n"

    with pytest.raises(ConfigError, match=r"missing @ \$\.store"):
        source_options({"config_text": text}, streaming=True)


def test_a_stream_of_a_text_that_names_its_store_is_taken() -> None:
    assert CONFIG == source_options({"config_text": CONFIG}, streaming=True).document


@pytest.mark.parametrize(
    "key,is_stream,instead",
    [
        ("until", False, "say to"),
        ("after_plan", False, "say from"),
        ("name", False, "a batch has none"),
        ("to", True, "say until"),
    ],
)
def test_an_option_of_the_other_way_to_read_is_refused(key: str, is_stream: bool, instead: str) -> None:
    source = HistorianSource({"config_text": CONFIG, key: "7"})

    with pytest.raises(ConfigError, match=rf"only @ \$\.{key} \({instead}\)"):
        _ = source.streamReader(StructType()) if is_stream else source.reader(StructType())


def test_the_name_of_a_stream_gets_its_schema_when_the_stream_starts_and_from_no_batch(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/s.db"
    options = {"config_text": OF_RECORDING, "table": "shop.coupons", "name": "coupons", "store": store}
    source = HistorianSource(options)
    schema = source.schema()
    with pytest.raises(ConfigError, match="a batch has none"):
        source.reader(schema)
    with closing(Store.open(store)) as opened:
        assert opened.stream("coupons") is None

        stream = source.streamReader(schema)
        stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())
        stream.stop()
        assert opened.stream("coupons") is not None


@pytest.mark.parametrize("place", ["3e11fa47-71ca-11e1-9e33-c80aa9429562:4", "binlog.000009:4"])
def test_a_batch_from_a_place_that_the_files_do_not_hold_is_refused(place: str) -> None:
    with pytest.raises(LogPurged):
        HistorianSource({"config_text": OF_RECORDING, "table": "shop.coupons", "from": place}).schema()


@pytest.mark.parametrize(
    "place",
    [
        "3e11fa47-71ca-11e1-9e33-c80aa9429562:4",
        f"{SERVER}:1-99999",
        f"{SERVER}:99999",
        "binlog.000009:4",
        "other.000001:4",
    ],
)
@pytest.mark.parametrize("table", ["", "shop.coupons"])
def test_a_batch_to_a_place_that_the_log_does_not_hold_is_refused_with_where_the_log_ends(
    place: str, table: str
) -> None:
    source = HistorianSource({"config_text": OF_RECORDING, "to": place, **({"table": table} if table else {})})

    with pytest.raises(SourceError) as raised:
        source.reader(source.schema()).partitions()
    assert f'the log does not hold the position of the option "to" ({place})' in str(raised.value)
    assert f"found a log that ends at {SERVER}:1-" in str(raised.value)


@pytest.mark.parametrize("behind", [0, 1])
def test_a_batch_may_end_anywhere_in_the_log_and_at_its_last_byte(behind: int) -> None:
    last = max(RECORDING.glob("binlog.0*"))
    bounds = {"from": f"{SERVER}:1-4000", "to": f"{last.name}:{last.stat().st_size + behind}"}
    source = HistorianSource({"config_text": OF_RECORDING, **bounds})

    if behind:
        with pytest.raises(SourceError, match=f"which is {last.name}:"):
            source.reader(source.schema()).partitions()
    else:
        assert source.reader(source.schema()).partitions()
