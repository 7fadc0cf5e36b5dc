"""An endpoint of webhooks: what it was told, and what it refused first."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Receiver", "receiving"]


class Receiver:
    """An endpoint of webhooks that refuses the first requests; ``places``: path and authorization of each that it took."""

    def __init__(self, refusals: int = 0, status: int = 503) -> None:
        self.taken: list[dict[str, Any]] = []
        self.places: list[tuple[str, str]] = []
        self.refused = 0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if receiver.refused < refusals:
                    receiver.refused += 1
                    self.send_response(status)
                    self.send_header("Location", "/elsewhere")
                else:
                    receiver.taken.append(body)
                    receiver.places.append((self.path, self.headers.get("Authorization", "")))
                    self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/secret-path"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def receiving(**options: int) -> Iterator[Receiver]:
    """One for the time of the ``with``; it refuses the first *refusals* requests with *status*."""
    with closing(Receiver(**options)) as receiver:
        yield receiver
