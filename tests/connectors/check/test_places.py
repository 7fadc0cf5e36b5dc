"""What a run would stumble on before its first row is found by `check`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.request import Request, urlopen

import pyarrow.fs as pafs
import pytest

from connectors.check import CheckResult, run_checks
from connectors.config import load_config

BINLOG = Path(__file__).parents[3] / "examples" / "shop" / "binlog"


def _failed(directory: Path, rest: str) -> dict[str, CheckResult]:
    return {name: result for name, result in _checked(directory, rest).items() if result.status == "failed"}


def _checked(directory: Path, rest: str) -> Mapping[str, CheckResult]:
    file = directory / "shop.yaml"
    source = f"{{type: binlog-files, flavor: mysql, directory: {BINLOG}}}"
    file.write_text(f"name: shop\nsource: {source}\n{rest}")
    return {result.name: result for result in run_checks(load_config(file))}


def test_places_that_can_be_made_are_not_told_of(tmp_path: Path) -> None:
    rest = "history: {store: 'sqlite:///new/state/x.db'}\nsinks: [{type: delta, path: new/lake}]"

    assert _failed(tmp_path, rest) == {}
    assert not (tmp_path / "new").exists()


def test_a_store_and_a_lake_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    rest = "history: {store: 'sqlite:///file/x.db'}\nsinks: [{type: console}, {type: delta, path: file/lake}]"

    found = _failed(tmp_path, rest)

    assert {name: (result.found, result.mend) for name, result in found.items()} == {
        "history store": (
            f"{tmp_path}/file is no directory",
            f"correct history.store, or the rights of {tmp_path}/file",
        ),
        "sinks[1]": (f"{tmp_path}/file is no directory", f"correct sinks[1].path, or the rights of {tmp_path}/file"),
    }


def test_a_place_where_nothing_can_be_written_is_told_to_root_too(tmp_path: Path) -> None:
    found = _failed(tmp_path, "history: {store: 'sqlite:////proc/historian/x.db'}\nsinks: [{type: console}]")

    assert list(found) == ["history store"]
    assert found["history store"].found.startswith("/proc cannot be written to: ")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An endpoint of S3 that asks nobody who he is, with a bucket; its address. What a process knows of buckets is forgotten before and behind."""
    from moto.server import ThreadedMotoServer

    monkeypatch.setenv("HISTORIAN_S3A", "{}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        endpoint = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        urlopen(Request(f"{endpoint}/moto-api/reset", method="POST")).close()
        _files(endpoint).create_dir("checked")
        yield endpoint
    finally:
        server.stop()


def test_a_lake_in_s3_is_asked_with_the_settings_of_the_configuration(s3: str, tmp_path: Path) -> None:
    results = _checked(tmp_path, _in_s3(s3, "s3a://checked/lake"))

    assert (results["sinks[0]"].status, results["sinks[0]"].found) == (
        "ok",
        "s3a://checked/lake: an object was written, listed, read and removed",
    )
    left = _files(s3).get_file_info(pafs.FileSelector("checked", recursive=True))
    assert [(found.path, found.is_file) for found in left] == [("checked/lake", False)]


def test_a_lake_in_s3_is_asked_with_what_spark_s_own_file_says(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"endpoint": s3, "bucket.checked.access.key": "key", "secret.key": "secret"}
    (tmp_path / "spark-defaults.conf").write_text("".join(f"spark.hadoop.fs.s3a.{k}  {v}\n" for k, v in said.items()))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    assert _checked(tmp_path, "sinks: [{type: delta, path: 's3a://checked/lake'}]")["sinks[0]"].status == "ok"


def test_a_lake_in_s3_that_cannot_be_written_is_told_with_the_answer(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moto import settings

    (none,) = _failed(tmp_path, _in_s3(s3, "s3a://none/lake")).values()
    monkeypatch.setattr(settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0.0)
    (refused,) = _failed(tmp_path, _in_s3(s3, "s3a://checked/lake")).values()
    (silent,) = _failed(tmp_path, _in_s3("http://127.0.0.1:1", "s3a://silent/lake")).values()

    assert none.found.startswith("s3a://none/lake: writing an object failed: ")
    assert "NO_SUCH_BUCKET" in none.found
    assert refused.found.startswith("s3a://checked/lake: writing an object failed: ")
    assert "INVALID_ACCESS_KEY_ID" in refused.found
    assert "secret-of-checks" not in "".join(map(str, (none, refused, silent)))
    assert silent.found.startswith("s3a://silent/lake: writing an object failed: ")
    assert refused.mend == "correct sinks[0].path, spark.hadoop.fs.s3a.* of run.spark.conf, or the rights of its user"


@pytest.mark.parametrize(
    "said,found",
    [
        ({"access.key": "key"}, "`secret_key` is not set"),
        ({"session.token": "token"}, "both secret_key and access_key must be provided"),
        (
            {"access.key": "key", "secret.key": "s", "assumed.role.arn": "arn"},
            "Cannot provide role_arn with access_key",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: dict[str, str], found: str
) -> None:
    monkeypatch.setenv("HISTORIAN_S3A", "{}")

    (told,) = _failed(tmp_path, _of_s3("s3a://checked/lake", said)).values()

    assert told.found.startswith("s3a://checked/lake: settings of S3 do not go together: ")
    assert found in told.found


@pytest.mark.parametrize("path", ["s3a:///lake", "s3a://", "s3a://bucket//lake"])
def test_a_path_in_s3_without_a_bucket_or_with_an_empty_name_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("HISTORIAN_S3A", "{}")

    (told,) = _failed(tmp_path, _in_s3("http://127.0.0.1:1", path)).values()

    assert told.found == f"{path}: a path in S3 lacks a name: {path}"


def test_a_lake_in_s3_that_hadoop_s_own_file_says_how_to_reach_is_not_asked(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "core-site.xml"
    file.write_text("<configuration/>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    rest = _in_s3(s3, "s3a://checked/lake")

    assert _checked(tmp_path, rest)["sinks[0]"].status == "ok"
    file.write_text("<configuration><property><name>fs.s3a.endpoint</name><value>x</value></property></configuration>")
    told = _checked(tmp_path, rest)["sinks[0]"]
    assert told.status == "warning"
    assert str(file) in told.found


def _in_s3(endpoint: str, path: str) -> str:
    return _of_s3(path, {"endpoint": endpoint, "access.key": "key-of-checks", "secret.key": "secret-of-checks"})


def _of_s3(path: str, said: Mapping[str, str]) -> str:
    conf = ", ".join(f"spark.hadoop.fs.s3a.{name}: '{value}'" for name, value in said.items())
    return f"sinks: [{{type: delta, path: '{path}'}}]\nrun: {{spark: {{conf: {{{conf}}}}}}}"


def _files(endpoint: str) -> pafs.S3FileSystem:
    return pafs.S3FileSystem(
        access_key="key", secret_key="secret", endpoint_override=endpoint, allow_bucket_creation=True
    )


@pytest.mark.spark
def test_expressions_that_spark_cannot_parse_are_told_with_their_place(tmp_path: Path) -> None:
    tables = "{'shop.*': {where: 'SELEC (', compute: {x: 'a + 1', y: 'a +'}}}"

    found = _failed(tmp_path, f"sinks: [{{type: delta, path: lake, tables: {tables}}}]")

    assert list(found) == ["sinks[0].tables['shop.*'].compute.y", "sinks[0].tables['shop.*'].where"]
    assert found["sinks[0].tables['shop.*'].where"].found.startswith("SELEC (: [PARSE_SYNTAX_ERROR] Syntax error")
