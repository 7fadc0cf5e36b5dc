"""How Delta Kernel writes the files of local paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from held_rows import HeldLake
from sinks.delta.local_files import with_local_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_log_has_the_rights_and_the_checksums_that_hadoop_gives(lake: HeldLake) -> None:
    log = lake.path / "shop_t" / "_delta_log"
    files = [path for path in log.iterdir() if path.is_file()]
    assert log.stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o777 for path in files} == {0o644}
    names = {path.name for path in files}
    assert {f".{name}.crc" for name in names if name.endswith(".json")} <= names


def test_a_file_system_that_was_chosen_for_local_paths_stays(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    for chosen, expected in ((None, "historian.LocalFiles"), ("org.apache.hadoop.fs.RawLocalFileSystem",) * 2):
        configuration = jvm.org.apache.hadoop.conf.Configuration(False)
        if chosen is not None:
            configuration.set("fs.file.impl", chosen)
        local = with_local_files(jvm, configuration)
        assert jvm.org.apache.hadoop.fs.Path("/tmp").getFileSystem(local).getClass().getName() == expected
