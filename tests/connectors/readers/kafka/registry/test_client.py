"""A registry's client: what is asked of it, how often, and what its answers are."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from certificates import own_certificate
from connectors.readers.kafka.registry.client import RegisteredSchema, RegistryDown, RegistrySettings, SchemaRegistry
from historian.errors import SourceError, SourceNotLetIn

NOT_FOUND = (404, {"error_code": 40403, "message": "Schema not found"})


class Answers:
    """A registry that answers as it is told, encrypted with a *certificate*; ``asked``: path and authorization of each request."""

    def __init__(self, answers: dict[str, tuple[int, Any]], certificate: Path | None = None) -> None:
        self.asked: list[tuple[str, str]] = []
        answering = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answering.asked.append((self.path, self.headers.get("Authorization", "")))
                status, body = answers.get(self.path, NOT_FOUND)
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def answering(answers: dict[str, tuple[int, Any]], **more: str) -> Iterator[tuple[Answers, SchemaRegistry]]:
    with closing(Answers(answers)) as server:
        yield server, SchemaRegistry(RegistrySettings(url=server.url + "/", **more))


def test_a_schema_is_asked_for_once_with_user_and_password() -> None:
    with answering({"/schemas/ids/7": (200, {"schema": '"int"'})}, user="me", password="a:b") as (server, registry):
        found = [registry.schema(7), registry.schema(7)]

    assert [RegisteredSchema(kind="AVRO", text='"int"')] * 2 == found
    assert [("/schemas/ids/7", "Basic bWU6YTpi")] == server.asked
    assert "a:b" not in repr(registry.settings)


def test_what_a_schema_refers_to_comes_with_it() -> None:
    answers = {
        "/schemas/ids/1": (200, {"schema": "one", "references": [{"name": "n", "subject": "a/b", "version": 3}]}),
        "/subjects/a%2Fb/versions/3": (200, {"schema": "two", "schemaType": "AVRO"}),
    }

    with answering(answers) as (_, registry):
        found = registry.schema(1)

    assert (
        RegisteredSchema(kind="AVRO", text="one", references=(RegisteredSchema(kind="AVRO", text="two", name="n"),))
        == found
    )


def test_an_id_that_is_not_there_is_none_and_asked_for_again() -> None:
    with answering({}) as (server, registry):
        assert [None, None] == [registry.schema(5), registry.schema(5)]

    assert 2 == len(server.asked)


@pytest.mark.parametrize(
    "answer,error,part",
    [
        ((401, b""), SourceNotLetIn, "source.registry.user"),
        ((403, b""), SourceNotLetIn, "source.registry.user"),
        ((503, b""), RegistryDown, "HTTP status 503"),
        ((404, b"<html>"), SourceError, "/apis/ccompat/v7"),
        ((404, {"error_code": 0}), SourceError, "/apis/ccompat/v7"),
        ((302, b""), SourceError, "HTTP status 302"),
        ((200, b"<html>"), SourceError, "no JSON"),
        ((200, b"[" * 200_000), SourceError, "no JSON"),
        ((404, b"[" * 200_000), SourceError, "/apis/ccompat/v7"),
        ((200, {"id": 1}), SourceError, "contradicts itself"),
        ((200, [1]), SourceError, "contradicts itself"),
        ((200, {"schema": "x", "references": [{"subject": "gone", "version": 1}]}), SourceError, "gone version 1"),
        ((200, {"schema": "x", "references": [{"subject": "me", "version": 1}]}), SourceError, "refers to itself"),
    ],
)
def test_other_answers_are_errors_that_name_the_registry(answer: tuple[int, Any], error: type, part: str) -> None:
    me = (200, {"schema": "x", "references": [{"subject": "me", "version": 1}]})

    with answering({"/schemas/ids/1": answer, "/subjects/me/versions/1": me}) as (server, registry):
        with pytest.raises(SourceError) as caught:
            registry.schema(1)

        assert error is type(caught.value)
        assert part in str(caught.value)
        assert server.url in str(caught.value)
        assert "/elsewhere" not in [path for path, _ in server.asked]


def test_schemas_that_refer_to_ever_more_are_refused() -> None:
    chain = {
        f"/subjects/s{at}/versions/1": (200, {"schema": "x", "references": [{"subject": f"s{at + 1}", "version": 1}]})
        for at in range(300)
    }
    first = (200, {"schema": "x", "references": [{"subject": "s0", "version": 1}]})

    with answering({"/schemas/ids/1": first, **chain}) as (server, registry):
        with pytest.raises(SourceError, match="behind 100 other references"):
            registry.schema(1)

        assert 101 == len(server.asked)


def test_a_registry_that_is_not_there_may_come() -> None:
    with answering({}) as (server, registry):
        pass

    with pytest.raises(RegistryDown, match=server.url):
        registry.languages()
    assert RegistryDown.retryable


def test_it_says_in_which_languages_schemas_are() -> None:
    with answering({"/schemas/types": (200, ["JSON", "AVRO"])}) as (_, registry):
        assert ("AVRO", "JSON") == registry.languages()
    with answering({"/schemas/types": (200, {"a": 1})}) as (_, registry), pytest.raises(SourceError, match="no schema"):
        registry.languages()


def test_a_token_is_sent_and_not_shown() -> None:
    with answering({"/schemas/ids/7": (200, {"schema": "x"})}, token="s3cret") as (server, registry):
        registry.schema(7)

    assert [("/schemas/ids/7", "Bearer s3cret")] == server.asked
    assert "s3cret" not in repr(registry.settings)


def test_of_several_addresses_that_which_answers_is_asked_first_from_then_on() -> None:
    busy = {"/schemas/ids/1": (503, {}), "/schemas/ids/2": (503, {})}
    there = {"/schemas/ids/1": (200, {"schema": "one"}), "/schemas/ids/2": (200, {"schema": "two"})}
    with closing(Answers(busy)) as first, closing(Answers(there)) as second:
        registry = SchemaRegistry(RegistrySettings(url=f"http://127.0.0.1:1, {first.url}/, {second.url}"))

        found = [registry.schema(1), registry.schema(2)]

        assert ["one", "two"] == [each.text for each in found if each]
        assert (["/schemas/ids/1"], ["/schemas/ids/1", "/schemas/ids/2"]) == (
            [path for path, _ in first.asked],
            [path for path, _ in second.asked],
        )
        nobody = SchemaRegistry(RegistrySettings(url=f"http://127.0.0.1:1,{first.url}"))
        with pytest.raises(RegistryDown, match="HTTP status 503"):
            nobody.schema(1)


def test_a_certificate_is_verified_by_the_given_authority(tmp_path: Path) -> None:
    path = own_certificate(tmp_path / "registry.pem")
    with closing(Answers({"/schemas/ids/1": (200, {"schema": "one"})}, path)) as server:
        trusting = SchemaRegistry(RegistrySettings(url=server.url, ca=str(path)))
        wary = SchemaRegistry(RegistrySettings(url=server.url))

        assert RegisteredSchema(kind="AVRO", text="one") == trusting.schema(1)
        with pytest.raises(RegistryDown, match="CERTIFICATE_VERIFY_FAILED"):
            wary.schema(1)
    assert [("/schemas/ids/1", "")] == server.asked
