"""The HTTP endpoint of a run: the page at ``/``, ``/metrics``, ``/health``, ``/ready``, ``/status`` and ``/status/all``.

``/metrics`` is Prometheus' text format, or OpenMetrics where that is asked for; the page is HTML. The others are JSON. ``/health`` and ``/ready``
answer 200 or 503, and tell no names but those of limits. The others want the token, where there is one, as a bearer's or as a password.
"""

from __future__ import annotations

import binascii
import hmac
import json
import socket
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

from prometheus_client.exposition import choose_encoder

from connectors.config import PipelineConfig
from connectors.config.settings import HttpConfig
from connectors.monitoring.health import Health
from connectors.monitoring.looking import HeldStore, Looks
from connectors.monitoring.metrics import Metrics
from connectors.monitoring.observer import Observer, Observers
from connectors.monitoring.process import joined, process_registry
from connectors.monitoring.retention import KeptLog
from connectors.monitoring.store_metrics import StoreMetrics
from connectors.page.html import security_policy
from connectors.page.page import MOST_LISTED, Page
from historian.errors import ConfigError, HistorianError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["Answer", "Answers", "Pages", "Watched", "listening", "served", "verdict"]

T = TypeVar("T")
Answers: TypeAlias = Callable[[str, str, str, str], "Answer"]
"""What is answered to path, Accept, Authorization and Host."""


class _Closes(Protocol):
    """What has something open."""

    def close(self) -> None:
        """Closes it."""


_JSON = "application/json; charset=utf-8"
_HTML = "text/html; charset=utf-8"
_REALM = (("WWW-Authenticate", 'Basic realm="historian", charset="UTF-8"'),)
_STATE_AGE_S = 2.0
_POLL_S = 0.05
_SOCKET_LIMIT_S = 10.0


@contextmanager
def served(config: PipelineConfig) -> Iterator[Observer]:
    """Serves what the observer is told at ``run.http``, inside of the ``with``.

    Raises:
        ConfigError: nobody can listen there.
    """
    limits = config.run.http
    assert limits is not None  # noqa: S101 the caller has looked
    watched = Watched.of(config, limits)
    with closing(watched), listening(limits, watched.pages.answer, config):
        yield watched.observer


@dataclass(frozen=True, slots=True)
class Watched:
    """A connector that an endpoint tells of: its pages, its own series, who is told what its run does, and what is open for that."""

    pages: Pages
    observer: Observer
    own: CollectorRegistry
    opened: tuple[_Closes, ...] = ()

    @classmethod
    def of(cls, config: PipelineConfig, limits: HttpConfig, process: CollectorRegistry | None = None) -> Watched:
        """With notes that are empty yet. *process*: what tells of the process, where several share it."""
        kinds = tuple(sink.type for sink in config.sinks)
        metrics = Metrics(config.name, config.source.place, kinds, tables=limits.max_tables)
        store, kept_s = HeldStore(config), KeptLog.of(config)
        metrics.registry.register(StoreMetrics(config, tables=limits.max_tables, kept_s=kept_s, store=store))
        health = Health.of(limits, metrics)
        page = Page(config, live=True, most=MOST_LISTED)
        looks = Looks(config, store, kept_s)
        state, whole = _Remembered(looks.state), _Remembered(partial(looks.state, lists_all=True))
        shown = _Remembered(lambda: _page(store, page, whole()))
        registry = joined(metrics.registry, process_registry() if process is None else process)
        pages = Pages(registry, health, state, whole, shown, limits)
        return cls(pages, Observers(metrics, health), metrics.registry, (looks, store, kept_s))

    def close(self) -> None:
        """Closes connections to source and store, behind the last answer."""
        for each in self.opened:
            each.close()


@contextmanager
def listening(limits: HttpConfig, answers: Answers, config: PipelineConfig) -> Iterator[None]:
    """An HTTP server inside of the ``with``; *answers* are called from several threads.

    Args:
        limits: where it listens.
        answers: what stands under a path.
        config: that says so, for the error.

    Raises:
        ConfigError: nobody can listen there.
    """
    try:
        server = _Server((limits.host, limits.port), answers)
    except OSError as error:
        problem = f"{error.strerror or error} @ $.run.http (got {limits.host}:{limits.port})"
        raise ConfigError("the endpoint cannot listen", problems=(problem,), where=str(config.path)) from None
    # A run that ends waits for this.
    serve = partial(server.serve_forever, poll_interval=_POLL_S)
    thread = threading.Thread(target=serve, name="historian http", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _page(held: HeldStore, page: Page, state: dict[str, Any]) -> str:
    with held.looked_at() as store:
        return page.html(store, state)


class _Remembered(Generic[T]):
    """An answer that many may ask for, but that is made once in :data:`_STATE_AGE_S`."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made_s = 0.0
        self._answer: T | None = None

    def __call__(self) -> T:
        with self._lock:
            if self._answer is None or time.monotonic() - self._made_s > _STATE_AGE_S:
                self._answer = self._make()
                self._made_s = time.monotonic()
            return self._answer


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered to one request."""

    status: HTTPStatus
    kind: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, value: object, status: HTTPStatus = HTTPStatus.OK, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
        """*value* as JSON."""
        return cls(status, _JSON, json.dumps(value, indent=2).encode() + b"\n", headers)


@dataclass(frozen=True, slots=True)
class Pages:
    """What stands under which path."""

    registry: CollectorRegistry
    health: Health
    state: Callable[[], dict[str, Any]]
    whole_state: Callable[[], dict[str, Any]]
    page: Callable[[], str]
    limits: HttpConfig

    def answer(self, path: str, accept: str, authorization: str, host: str) -> Answer:
        """What stands under *path* for who asks with these headers; "" where there is none."""
        match path:
            case "/health":
                return verdict(self.health.dead())
            case "/ready":
                return verdict(self.health.not_ready())
            case "/" | "/metrics" | "/status" | "/status/all" if not self._lets_in(authorization):
                return Answer.of(
                    {"error": "expected Authorization: Bearer with run.http.token, or that as a password"},
                    HTTPStatus.UNAUTHORIZED,
                    _REALM,
                )
            case "/" | "/status" | "/status/all" if not (self.limits.token or _is_own(host, self.limits.host)):
                return Answer.of(
                    {
                        "error": f"asked as {host[:100]!r}, which may be a name of someone else's that leads here",
                        "next": "ask by its address or as localhost, or set run.http.token",
                    },
                    HTTPStatus.MISDIRECTED_REQUEST,
                )
            case "/":
                return self._page()
            case "/metrics":
                encode, kind = choose_encoder(accept)
                return Answer(HTTPStatus.OK, kind, encode(self.registry))
            case "/status":
                return self._status(self.state)
            case "/status/all":
                return self._status(self.whole_state)
        known = ["/", "/metrics", "/health", "/ready", "/status", "/status/all"]
        return Answer.of({"error": "not found", "known": known}, HTTPStatus.NOT_FOUND)

    def _lets_in(self, authorization: str) -> bool:
        expected = f"Bearer {self.limits.token}"
        # Headers come as Latin-1, whatever their bytes are.
        given = authorization.encode("latin-1")
        if not self.limits.token or hmac.compare_digest(given, expected.encode()):
            return True
        return hmac.compare_digest(_password(given), self.limits.token.encode())

    def _page(self) -> Answer:
        try:
            body = self.page().encode()
        except HistorianError as error:
            return Answer.of({"error": str(error)}, HTTPStatus.SERVICE_UNAVAILABLE)
        policy = f"{security_policy()}; frame-ancestors 'none'"
        return Answer(HTTPStatus.OK, _HTML, body, (("Content-Security-Policy", policy),))

    def _status(self, state: Callable[[], dict[str, Any]]) -> Answer:
        try:
            return Answer.of(state() | {"ready": not self.health.not_ready()})
        except HistorianError as error:
            return Answer.of({"error": str(error)}, HTTPStatus.SERVICE_UNAVAILABLE)


def _is_own(host: str, listens: str) -> bool:
    """Whether a browser that asked for *host* cannot have been led here by another site's name."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name not in ("", "localhost", listens):
            ip_address(name)
    except ValueError:
        return False
    return True


def _password(authorization: bytes) -> bytes:
    """Of HTTP's basic scheme, whoever the user is; b"": another scheme, or none."""
    scheme, _, credentials = authorization.partition(b" ")
    if scheme.lower() != b"basic":
        return b""
    try:
        return b64decode(credentials, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


def verdict(reasons: Sequence[str]) -> Answer:
    """200 where there are no *reasons*, else 503 with them."""
    status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
    return Answer.of({"ok": not reasons, "reasons": list(reasons)}, status)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], answers: Answers) -> None:
        self.answers = answers
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: whoever asked has gone."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout: ClassVar[float] = _SOCKET_LIMIT_S
    server_version = "historian"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        headers = self.headers
        answer = self.server.answers(
            urlsplit(self.path).path,
            headers.get("Accept", ""),
            headers.get("Authorization", ""),
            headers.get("Host", ""),
        )
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in answer.headers:
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 http.server's own name
        """Says nothing: a scrape every few seconds is no news."""
