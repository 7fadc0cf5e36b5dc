"""How Delta Kernel writes the files of local paths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab
from sinks.delta.log.local_files import with_local_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS, RAW = "historian.LocalFiles", "org.apache.hadoop.fs.RawLocalFileSystem"


def test_a_log_has_the_rights_and_the_checksums_that_hadoop_gives(spark: SparkSession, tmp_path: Path) -> None:
    """In a directory that gives its group on."""
    tmp_path.chmod(0o2755)
    lake = HeldLake(spark, tmp_path / "lake", Lab())
    lake.lab.create("shop.t", {"id": INT})
    lake.lab.insert("shop.t", {"id": 1})
    lake.cut()

    log = lake.path / "shop_t" / "_delta_log"
    files = [path for path in log.iterdir() if path.is_file()]
    assert log.stat().st_mode & 0o7777 == 0o2755
    assert {path.stat().st_mode & 0o7777 for path in files} == {0o644}
    names = {path.name for path in files}
    assert {f".{name}.crc" for name in names if name.endswith(".json")} <= names


def test_sparks_settings_reach_local_paths_by_our_class_unless_they_name_another(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    context: Any = spark._jsc
    for chosen, expected in (("", OURS), (RAW, RAW)):
        configuration = jvm.org.apache.hadoop.conf.Configuration(context.hadoopConfiguration())
        if chosen:
            configuration.set("fs.file.impl", chosen)
            configuration.set("fs.file.impl.disable.cache", "true")
        local = with_local_files(jvm, configuration)
        assert jvm.org.apache.hadoop.fs.Path("/tmp").getFileSystem(local).getClass().getName() == expected
