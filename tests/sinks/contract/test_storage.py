"""Spark's settings of S3 are Arrow's too, on the driver and in Python workers."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.fs as pafs
import pytest

from historian.errors import SinkError
from lakes.faulty_s3 import BUSY, Asked, faulty_s3, stored_in_s3
from sinks.contract import storage
from sinks.contract.refusals import is_bare, next_step_for
from sinks.contract.storage import is_local, located, reading, share_settings, writing

SECRETS = {"access.key": "key", "secret.key": "secret"}
OF_SECRETS = {"access_key": "key", "secret_key": "secret"}


@pytest.mark.parametrize(
    "said, expected",
    [
        ({}, {}),
        (SECRETS | {"session.token": "token"}, OF_SECRETS | {"session_token": "token"}),
        ({"endpoint.region": "eu-north-1"}, {"region": "eu-north-1"}),
        ({"assumed.role.arn": "arn:aws:iam::1:role/r"}, {"role_arn": "arn:aws:iam::1:role/r"}),
        (
            {"endpoint": "http://127.0.0.1:9000/", "path.style.access": "true", "connection.ssl.enabled": "true"},
            {
                "endpoint_override": "127.0.0.1:9000",
                "region": "us-east-1",
                "force_virtual_addressing": False,
                "scheme": "http",
            },
        ),
        (
            {"endpoint": "https://s3.example.com", "path.style.access": "false"},
            {"endpoint_override": "s3.example.com", "region": "us-east-1", "force_virtual_addressing": True},
        ),
        (
            {"endpoint": "minio:9000", "connection.ssl.enabled": "false", "endpoint.region": "here"},
            {
                "endpoint_override": "minio:9000",
                "region": "here",
                "force_virtual_addressing": False,
                "scheme": "http",
            },
        ),
    ],
)
def test_what_hadoop_is_told_arrow_is_told(said: dict[str, str], expected: dict[str, Any]) -> None:
    assert storage._arguments(said) == expected


def test_settings_of_a_bucket_go_before_those_of_all_and_workers_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HISTORIAN_S3A", '{"other": {"access.key": "else"}}')
    said = {"fs.s3a.access.key": "all", "fs.s3a.bucket.b.access.key": "own", "fs.s3a.secret.key": "secret"}
    hadoop = SimpleNamespace(getTrimmed=said.get)
    context = SimpleNamespace(environment={})
    spark: Any = SimpleNamespace(sparkContext=context, _jsc=SimpleNamespace(hadoopConfiguration=lambda: hadoop))

    share_settings(spark, "s3a://b/lake")
    assert json.loads(context.environment["HISTORIAN_S3A"]) == {
        "b": {"access.key": "own", "secret.key": "secret"},
        "other": {"access.key": "else"},
    }
    system, place = located("s3a://b/lake/shop t/part.parquet")
    assert isinstance(system, pafs.S3FileSystem)
    assert place == "b/lake/shop t/part.parquet"


def test_a_role_beside_keys_is_an_error_of_the_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hadoop takes such settings, Arrow does not."""
    monkeypatch.setenv("HISTORIAN_S3A", json.dumps({"b": SECRETS | {"assumed.role.arn": "arn"}}))

    with pytest.raises(SinkError, match=r"do not go together.*Cannot provide role_arn.*Next: correct fs.s3a"):
        located("s3a://b/lake")


def test_a_request_is_tried_again_however_many_others_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request of many threads is refused twice. Strategies that share a budget of tries among requests fail at some tens of them."""
    asked: Counter[tuple[str, str, str]] = Counter()

    def refused_twice(request: Asked) -> str | None:
        what = request.method, request.path, request.parameters
        asked[what] += 1
        return BUSY if asked[what] <= 2 else None

    with stored_in_s3() as (endpoint, files), faulty_s3(endpoint, refused_twice) as (through, faults):
        monkeypatch.setenv("HISTORIAN_S3A", json.dumps({"bucket": SECRETS | {"endpoint": through}}))

        def write(number: int) -> None:
            system, place = located(f"s3a://bucket/lake/{number}")
            with system.open_output_stream(place) as file:
                file.write(b"rows")

        with ThreadPoolExecutor(16) as threads:
            list(threads.map(write, range(60)))
        written = files.get_file_info(pafs.FileSelector("bucket/lake"))

    assert {(f"{number}", 4) for number in range(60)} == {(file.base_name, file.size) for file in written}
    assert faults.met[BUSY] >= 120


def test_a_path_on_a_disk_needs_no_settings(tmp_path: Path) -> None:
    spark: Any = None
    share_settings(spark, str(tmp_path))
    system, place = located(str(tmp_path / "a b"))
    assert isinstance(system, pafs.LocalFileSystem)
    assert place == str(tmp_path / "a b")


@pytest.mark.parametrize("access,what", [(writing, "written"), (reading, "read")])
def test_a_path_that_cannot_be_reached_is_said(tmp_path: Path, access: Any, what: str) -> None:
    (tmp_path / "file").write_text("")
    path = str(tmp_path / "file" / "part.parquet")
    system, place = located(path)

    said = f"a file cannot be {what} .*{path}.*expected a path .*Next: mend the path"
    with pytest.raises(SinkError, match=said), access(path):
        (system.open_output_stream if access is writing else system.open_input_file)(place)


def test_paths_without_a_scheme_and_of_files_are_on_this_machine() -> None:
    assert all(map(is_local, ("/a b", "/a:b/c#d?e", "file:/x", "file:///x")))
    assert not any(map(is_local, ("s3a://b/x", "hdfs://n/x", "dbfs:/x", "abfss://c@a/x")))


@pytest.mark.parametrize(
    "found,said",
    [
        ("AWS Error ACCESS_DENIED during PutObject operation: Access Denied", "allow GetObject, PutObject"),
        ("S3Exception: Forbidden (Service: S3, Status Code: 403)", "mend the path"),
        ("(HTTP status 400) Unable to parse ExceptionName: ExpiredToken Message: The token", "renew the credentials"),
        ("AuthorizationHeaderMalformed: the region 'us-east-1' is wrong", "set fs.s3a.endpoint.region"),
        ("NoSuchBucketPolicy", "mend the path"),
    ],
)
def test_what_mends_a_refusal_follows_from_its_code(found: str, said: str) -> None:
    assert next_step_for(found).startswith(said)


def test_a_status_alone_tells_no_reason() -> None:
    assert is_bare("getFileStatus on s3a://b/x: S3Exception: Bad Request (Service: S3, Status Code: 400)")
    assert not is_bare("S3Exception: Access Denied (Service: S3, Status Code: 403) AccessDenied")
    assert not is_bare("S3Exception: (Service: S3, Status Code: 503)")


def test_workers_are_told_the_endpoint_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
    monkeypatch.setenv("HISTORIAN_S3A", "{}")
    hadoop = SimpleNamespace(getTrimmed={"fs.s3a.path.style.access": "true"}.get)
    context = SimpleNamespace(environment={})
    spark: Any = SimpleNamespace(sparkContext=context, _jsc=SimpleNamespace(hadoopConfiguration=lambda: hadoop))

    share_settings(spark, "s3a://b/lake")

    told = {"b": {"endpoint": "http://minio:9000", "path.style.access": "true"}}
    assert told == json.loads(context.environment["HISTORIAN_S3A"])
