"""A proxy before an endpoint of S3 that answers as networks and object stores do on a bad day."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

__all__ = ["BUSY", "EVERY_KIND", "LOST", "SLOW", "TRUNCATED", "FaultyS3", "faulty_s3"]

BUSY, SLOW, TRUNCATED, LOST, EXPIRED = "busy", "slow", "truncated", "lost", "expired"
"""503 instead of an answer; an answer after a while; half a body; a write that is done and not answered; credentials that are not valid any more."""
EVERY_KIND = frozenset({BUSY, SLOW, TRUNCATED, LOST})

_EVERY = 6
_SLOW_S = 1.5
_LOG = re.compile(r"/_delta_log/\d{20}\.json")
_OF_A_CONNECTION = frozenset({"connection", "transfer-encoding", "content-length", "expect", "keep-alive"})
_ERROR = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{message}</Message><RequestId>1</RequestId></Error>'


class FaultyS3:
    """Which faults there are, and which there were.

    Attributes:
        met: how many of each kind.
        expired: access keys that are refused.
    """

    def __init__(self, host: str, port: int) -> None:
        self.upstream = host, port
        self.met: Counter[str] = Counter()
        self.expired: set[str] = set()
        self._turn = threading.Lock()
        self._requests = 0
        self._lost: set[str] = set()

    def fault(self, method: str, path: str, authorization: str) -> str | None:
        """What happens to a request: each entry of a log loses its first answer, every few others meet something else."""
        with self._turn:
            found = self._fault(method, path, authorization)
            if found is not None:
                self.met[found] += 1
            return found

    def _fault(self, method: str, path: str, authorization: str) -> str | None:
        if any(f"Credential={key}/" in authorization for key in self.expired):
            return EXPIRED
        plain = path.partition("?")[0]
        if method == "PUT" and _LOG.search(plain) and plain not in self._lost:
            self._lost.add(plain)
            return LOST
        self._requests += 1
        if self._requests % _EVERY == 0:
            return BUSY
        if method == "GET" and self._requests % _EVERY == 3 and self.met[TRUNCATED] < 5 and "list-type" not in path:
            return TRUNCATED
        return SLOW if self._requests % 50 == 1 and self.met[SLOW] < 2 else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    faults: ClassVar[FaultyS3]

    def _answer(self) -> None:
        body = self._body()
        fault = self.faults.fault(self.command, self.path, self.headers.get("Authorization", ""))
        if fault == BUSY:
            self._refuse(503, "SlowDown", "Please reduce your request rate.")
            return
        if fault == EXPIRED:
            self._refuse(400, "ExpiredToken", "The provided token has expired.")
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

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815 names of the base class

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

    def _refuse(self, status: int, code: str, message: str) -> None:
        body = b"" if self.command == "HEAD" else _ERROR.format(code=code, message=message).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _pass_on(self, answer: HTTPResponse, body: bytes, fault: str | None) -> None:
        if fault == LOST:
            self.close_connection = True
            return
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in _OF_A_CONNECTION:
                self.send_header(name, value)
        size = answer.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(body))
        self.send_header("Content-Length", size)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if fault == TRUNCATED else body)
        if fault == TRUNCATED:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def faulty_s3(endpoint: str) -> Iterator[tuple[str, FaultyS3]]:
    """The address of a proxy before *endpoint*, which is ``http://HOST:PORT``, and its faults."""
    host, _, port = endpoint.removeprefix("http://").partition(":")
    faults = FaultyS3(host, int(port))
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"faults": faults}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", faults
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
