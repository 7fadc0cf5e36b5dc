"""Where a path is, for Arrow: on a file system of this machine, or in an object store that Spark's settings tell how to reach.

Spark reaches S3 through Hadoop's ``fs.s3a.*`` settings. The same ones hold here: the driver reads them once, and Spark hands
them to its Python workers as an environment variable. Credentials that they do not have are looked for where AWS's own tools
look: environment variables, profiles, the machine's role.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from historian.errors import SinkError
from sinks.contract.late_java import environment_of
from sinks.contract.refusals import is_bare, next_step_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "hurried",
    "is_local",
    "is_s3",
    "located",
    "reading",
    "refusal",
    "share_said_settings",
    "share_settings",
    "writing",
]

_VARIABLE = "HISTORIAN_S3A"
_TURN = threading.Lock()
_PREFIX = "fs.s3a."
_SCHEMES = ("s3a", "s3", "s3n")
_ATTEMPTS = 10
"""Of a request that storage does not answer, or answers with "later". Pauses between them double from 25 ms on: 26 seconds together."""
_NAMES = (
    "access.key",
    "secret.key",
    "session.token",
    "endpoint",
    "endpoint.region",
    "path.style.access",
    "connection.ssl.enabled",
    "assumed.role.arn",
)
_CONNECT_S = 3
_ANSWER_S = 10
_TRIES = 2


def is_s3(path: str) -> bool:
    """Whether *path* is in S3, or what speaks as it does."""
    return urlsplit(path).scheme in _SCHEMES


def is_local(path: str) -> bool:
    """Whether *path* is on a file system of this machine."""
    return urlsplit(path).scheme in ("", "file")


def share_settings(spark: SparkSession, path: str) -> None:
    """Makes the settings of *spark* known to :func:`located` here and in Python workers that start later.

    Costs nothing where *path* is not in S3.
    """
    if not is_s3(path):
        return
    context: Any = spark._jsc  # noqa: SLF001 there is no public way to Hadoop's settings
    bucket = urlsplit(path).netloc
    hadoop = context.hadoopConfiguration()
    # Spark takes the variable only where credentials stand beside it; Amazon's SDK for Java does always.
    found = {**_said_by_environment(), **_settings(lambda name: str(hadoop.getTrimmed(name, "")), bucket)}
    with _TURN:
        known = json.loads(os.environ.get(_VARIABLE, "{}"))
        known[bucket] = found
        os.environ[_VARIABLE] = environment_of(spark)[_VARIABLE] = json.dumps(known, sort_keys=True)


def share_said_settings(path: str, said: Mapping[str, str]) -> None:
    """The same for a process that starts no Spark, by what a session would be made with. What is known of the bucket already stays.

    Args:
        said: settings of Spark by their names, such as ``spark.hadoop.fs.s3a.endpoint``.
    """
    if not is_s3(path):
        return
    bucket = urlsplit(path).netloc
    found = _settings(lambda name: said.get(f"spark.hadoop.{name}", "").strip(), bucket)
    with _TURN:
        known = json.loads(os.environ.get(_VARIABLE, "{}"))
        known.setdefault(bucket, {**_said_by_environment(), **found})
        os.environ[_VARIABLE] = json.dumps(known, sort_keys=True)


def located(path: str) -> tuple[pafs.FileSystem, str]:
    """The file system of *path*, which is absolute or a URL, and its place there.

    Raises:
        SinkError: Arrow cannot reach S3 by such settings, or the path in S3 lacks a bucket or a name. Not worth a retry.
    """
    if not is_s3(path):
        found: tuple[pafs.FileSystem, str] = pafs.FileSystem.from_uri(path)
        return found
    bucket, place = _place(path)
    with _accepting(path):
        return _s3(json.dumps(_known(bucket), sort_keys=True)), place


def hurried(path: str) -> tuple[pafs.FileSystem, str]:
    """As :func:`located` for a path in S3, for who waits for an answer: it tries twice, and waits for seconds."""
    bucket, place = _place(path)
    with _accepting(path):
        system = pafs.S3FileSystem(
            **_arguments(_known(bucket)),
            connect_timeout=_CONNECT_S,
            request_timeout=_ANSWER_S,
            retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=_TRIES),
        )
    return system, place


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Raises :class:`SinkError` where what is done inside cannot write at *path*: no rights, no space, no such place."""
    with _accessing("a file cannot be written", path, "write to"):
        yield


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Raises :class:`SinkError` where what is done inside cannot read at *path*."""
    with _accessing("a file cannot be read", path, "read"):
        yield


def refusal(path: str, found: str) -> str:
    """*found*, an error of Java at *path*; where it tells a status alone, with what storage says when a list is asked for."""
    if not is_s3(path) or not is_bare(found):
        return found
    try:
        system, place = located(path)
        system.get_file_info(pafs.FileSelector(place, allow_not_found=True))
    except (OSError, ValueError, SinkError) as error:
        return f"{found}; {error}"
    return found


@contextmanager
def _accessing(what: str, path: str, do: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SinkError(
            what,
            where=path,
            expected=f"a path that the driver and every executor may {do}",
            found=f"{type(error).__name__}: {error}",
            next_step=next_step_for(str(error)),
        ) from error


@contextmanager
def _accepting(path: str) -> Iterator[None]:
    """Raises :class:`SinkError` where Arrow does not take the settings: a secret is missing, or a role stands beside keys."""
    try:
        yield
    except ValueError as error:
        raise SinkError(
            "settings of S3 do not go together",
            where=path,
            expected=(
                "fs.s3a.access.key with fs.s3a.secret.key, with or without fs.s3a.session.token; "
                "or fs.s3a.assumed.role.arn without them, the keys in the environment or in AWS's own files"
            ),
            found=str(error),
            next_step="correct fs.s3a.* in Spark's settings",
        ) from error


def _place(path: str) -> tuple[str, str]:
    """The bucket of a path in S3, and the path as Arrow names it."""
    bucket, _, key = path.partition("://")[2].partition("/")
    place = f"{bucket}/{key}".rstrip("/")
    if not all(place.split("/")):
        raise SinkError(
            "a path in S3 lacks a name",
            where=path,
            expected="s3a://BUCKET/DIRECTORY without empty names",
            found=path,
            next_step="correct the sink's path",
        )
    return bucket, place


def _settings(value: Callable[[str], str], bucket: str) -> dict[str, str]:
    """A bucket's own setting goes before that of all; one that is "" counts as none."""
    found = {name: value(f"{_PREFIX}bucket.{bucket}.{name}") or value(f"{_PREFIX}{name}") for name in _NAMES}
    return {name: value for name, value in found.items() if value}


def _known(bucket: str) -> dict[str, str]:
    """A bucket's settings of Spark. Without Spark the endpoint comes from the variables from which Spark takes it, and which Arrow does not know."""
    found: dict[str, str] | None = json.loads(os.environ.get(_VARIABLE, "{}")).get(bucket)
    if found is not None:
        return found
    return _said_by_environment()


def _said_by_environment() -> dict[str, str]:
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return {"endpoint": endpoint} if endpoint else {}


@lru_cache(maxsize=16)
def _s3(settings: str) -> pafs.S3FileSystem:
    # AWS's standard strategy has a budget that all requests share: where it is used up, the first "later" is an error.
    retries = pafs.AwsDefaultS3RetryStrategy(max_attempts=_ATTEMPTS)
    return pafs.S3FileSystem(retry_strategy=retries, **_arguments(json.loads(settings)))


def _arguments(values: Mapping[str, str]) -> dict[str, Any]:
    """What Arrow's constructor is told for Hadoop's settings; what nobody said is left to AWS's own defaults."""
    arguments: dict[str, Any] = {
        ours: values[theirs]
        for theirs, ours in (
            ("access.key", "access_key"),
            ("secret.key", "secret_key"),
            ("session.token", "session_token"),
            ("endpoint.region", "region"),
            ("assumed.role.arn", "role_arn"),
        )
        if theirs in values
    }
    scheme, _, host = values.get("endpoint", "").rpartition("://")
    if host:
        arguments["endpoint_override"] = host.rstrip("/")
        # Other stores than Amazon's have no regions, but every signature names one.
        arguments.setdefault("region", "us-east-1")
        arguments["force_virtual_addressing"] = "path.style.access" in values and values["path.style.access"] != "true"
    if scheme == "http" or (not scheme and values.get("connection.ssl.enabled") == "false"):
        arguments["scheme"] = "http"
    return arguments
