"""A proxy before an endpoint of S3 that answers as networks and object stores do on a bad day, and credentials that expire."""

from __future__ import annotations

import itertools
import json
import math
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request, urlopen

import pyarrow.fs as pafs

__all__ = [
    "BUSY",
    "DENIED",
    "EXPIRED",
    "LOST",
    "PASSING",
    "REGION",
    "RESET",
    "SLOW",
    "TRUNCATED",
    "Asked",
    "Faults",
    "Rule",
    "behind_entry",
    "faulty_s3",
    "mixed",
    "of_each",
    "stored_in_s3",
    "with_bucket",
]

BUSY, SLOW, TRUNCATED, RESET, LOST = "busy", "slow", "truncated", "reset", "lost"
"""503 instead of an answer; an answer after a while; half a body; a connection that is reset before anything is done; a write that
is done and not answered."""
PASSING = frozenset({BUSY, SLOW, TRUNCATED, RESET, LOST})
EXPIRED, DENIED, REGION = "expired", "denied", "region"
"""Credentials that are not valid any more, that may not do it, that are of another region than the bucket."""

_SLOW_S = 1.5
_LOG = re.compile(r"/_delta_log/\d{20}\.json$")
_KEY = re.compile(r"Credential=([^/,]+)/")
_OF_A_CONNECTION = frozenset({"connection", "transfer-encoding", "content-length", "expect", "keep-alive"})
_ERROR = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{message}</Message>{more}<RequestId>1</RequestId></Error>'
_REFUSALS = {
    BUSY: (503, "SlowDown", "Please reduce your request rate.", ""),
    EXPIRED: (400, "ExpiredToken", "The provided token has expired.", ""),
    DENIED: (403, "AccessDenied", "Access Denied", ""),
    REGION: (
        400,
        "AuthorizationHeaderMalformed",
        "The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-central-1'",
        "<Region>eu-central-1</Region>",
    ),
}


class Asked:
    """What is known of a request before it is passed on.

    Attributes:
        number: of this request among all, from 1.
        path: without parameters.
        key: the access key that signed it.
    """

    def __init__(self, number: int, method: str, target: str, headers: Mapping[str, str]) -> None:
        self.number = number
        self.method = method
        self.path, _, self.parameters = target.partition("?")
        signed = _KEY.search(headers.get("Authorization", ""))
        self.key = signed[1] if signed else ""

    @property
    def is_entry(self) -> bool:
        """Whether it puts an entry into a Delta log."""
        return self.method == "PUT" and _LOG.search(self.path) is not None


Rule = Callable[[Asked], str | None]
"""Which fault a request meets; called by one thread at a time."""


class Faults:
    """Which faults there are, and which there were.

    Attributes:
        rule: may be changed at any time.
        met: how many of each kind.
    """

    def __init__(self, host: str, port: int, rule: Rule) -> None:
        self.upstream = host, port
        self.rule = rule
        self.met: Counter[str] = Counter()
        self._turn = threading.Lock()
        self._requests = 0
        self._ends: dict[str, float] = {}

    def of(self, method: str, target: str, headers: Mapping[str, str]) -> str | None:
        """The fault of a request; an access key that has come to its end is refused, whatever the rule."""
        with self._turn:
            self._requests += 1
            request = Asked(self._requests, method, target, headers)
            found = EXPIRED if self._ends.get(request.key, math.inf) < time.time() else self.rule(request)
            if found is not None:
                self.met[found] += 1
            return found

    def credentials(self, seconds: float) -> dict[str, str]:
        """New ones, as a machine's role gives them, that are refused after so many seconds."""
        with self._turn:
            key = f"key{len(self._ends)}"
            self._ends[key] = time.time() + seconds
        ends = datetime.now(timezone.utc) + timedelta(seconds=seconds)
        return {
            "AccessKeyId": key,
            "SecretAccessKey": "secret",
            "Token": "token",
            "Expiration": ends.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }

    @property
    def given(self) -> int:
        """How many credentials were given."""
        return len(self._ends)


def mixed() -> Rule:
    """Of all that passes: each entry of a log loses its first answer, and each sixth request or soon after meets something else."""
    lost: set[str] = set()
    kinds = itertools.cycle((TRUNCATED, BUSY, RESET, TRUNCATED, BUSY, BUSY, RESET, SLOW))
    waiting: list[str] = []

    def rule(request: Asked) -> str | None:
        if request.is_entry and request.path not in lost:
            lost.add(request.path)
            return LOST
        if request.number % 6 == 0 and not waiting:
            waiting.append(next(kinds))
        return waiting.pop() if waiting and fitting(waiting[0], request) else None

    return rule


def of_each(kind: str, every: int) -> Rule:
    """That one, which each *every*-th request meets that can; of entries of logs, each."""
    met: set[str] = set()

    def rule(request: Asked) -> str | None:
        first = request.is_entry and request.path not in met
        met.add(request.path)
        return fitting(kind, request) if first or request.number % every == 0 else None

    return rule


def behind_entry(kind: str, number: int) -> Rule:
    """That one, which everything meets from the entry of that number on that is put into a log."""
    left = itertools.count(number, -1)
    begun: list[bool] = []

    def rule(request: Asked) -> str | None:
        if request.is_entry and next(left) <= 1:
            begun.append(True)
        return kind if begun else None

    return rule


def fitting(kind: str | None, request: Asked) -> str | None:
    """*kind* where the request can meet it: a body is cut that is one, and a write's answer is lost that can be made again."""
    if kind == TRUNCATED and request.method != "GET":
        return None
    return None if kind == LOST and request.method != "PUT" else kind


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, faults: Faults, life_s: float, *arguments: object) -> None:
        self.faults, self.life_s = faults, life_s
        super().__init__(*arguments)  # type: ignore[arg-type]

    def answer(self) -> None:
        if self.path == "/credentials":
            self._send(200, json.dumps(self.faults.credentials(self.life_s)).encode(), {})
            return
        body = self._body()
        fault = self.faults.of(self.command, self.path, self.headers)
        if fault == RESET:
            self._reset()
            return
        if fault in _REFUSALS:
            status, code, message, more = _REFUSALS[fault]
            text = _ERROR.format(code=code, message=message, more=more).encode()
            self._send(status, b"" if self.command == "HEAD" else text, {"Content-Type": "application/xml"})
            return
        if fault == SLOW:
            time.sleep(_SLOW_S)
        connection = HTTPConnection(*self.faults.upstream, timeout=60)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_A_CONNECTION}
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            self._pass_on(answer, answer.read(), fault)
        finally:
            connection.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815 names of the base class

    def _body(self) -> bytes | None:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(parts)
        size = self.headers.get("Content-Length")
        return None if size is None else self.rfile.read(int(size))

    def _pass_on(self, answer: HTTPResponse, body: bytes, fault: str | None) -> None:
        if fault == LOST:
            self._reset()
            return
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in _OF_A_CONNECTION}
        size = answer.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(body))
        cut = fault == TRUNCATED and len(body) > 1
        self._send(answer.status, body[: len(body) // 2] if cut else body, headers, size)
        self.close_connection = self.close_connection or cut

    def _send(self, status: int, body: bytes, headers: Mapping[str, str], size: str | None = None) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)) if size is None else size)
        self.end_headers()
        self.wfile.write(body)

    def _reset(self) -> None:
        # A connection that is closed with nothing to linger for is reset.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def stored_in_s3() -> Iterator[tuple[str, pafs.S3FileSystem]]:
    """The address of an S3 endpoint with an empty ``bucket``, and the endpoint as a file system."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        # What other tests of this process put there is gone.
        urlopen(Request(f"http://127.0.0.1:{port}/moto-api/reset", method="POST")).close()
        yield f"http://127.0.0.1:{port}", with_bucket(port)
    finally:
        server.stop()


def with_bucket(port: int) -> pafs.S3FileSystem:
    """The endpoint at that port as a file system, with an empty ``bucket``."""
    files = pafs.S3FileSystem(
        access_key="key",
        secret_key="secret",
        region="us-east-1",
        scheme="http",
        endpoint_override=f"127.0.0.1:{port}",
        allow_bucket_creation=True,
    )
    files.create_dir("bucket")
    return files


@contextmanager
def faulty_s3(endpoint: str, rule: Rule, *, life_s: float = 3600.0) -> Iterator[tuple[str, Faults]]:
    """The address of a proxy before *endpoint*, which is ``http://HOST:PORT``, and its faults.

    Under ``/credentials`` it gives what ``AWS_CONTAINER_CREDENTIALS_FULL_URI`` asks for: an access key, valid for *life_s* seconds.
    """
    host, _, port = endpoint.removeprefix("http://").partition(":")
    faults = Faults(host, int(port), rule)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, faults, life_s))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", faults
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
