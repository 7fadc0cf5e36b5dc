"""What a schema registry is asked: a schema by its id, with the schemas that it refers to. What it said is kept: ids never change their meaning."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field, replace
from typing import Any

from historian.errors import SourceError, SourceNotLetIn, UnsupportedEvent

__all__ = ["RegisteredSchema", "RegistryDown", "RegistrySettings", "SchemaRegistry"]

_TIMEOUT_S = 30.0
_LONGEST_BYTES = 16 * 1024 * 1024
_MOST_DEEP = 100
"""Schemas that refer to each other, one behind the other."""
_PASSING = (408, 429, 500, 502, 503, 504)
_NO_SUCH = (40401, 40402, 40403)
"""Codes of answers that know the question, but no such subject, version or schema."""


class RegistryDown(SourceError):
    """The registry does not answer, or not now."""

    retryable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """Which registry, and who asks.

    Attributes:
        url: of Confluent's interface; Apicurio has it under ``/apis/ccompat/v7``. Several of one registry, comma separated, are asked in turn.
        user: for basic authentication, "" where none is wanted; ``token``: for that of a bearer.
        ca: path of the PEM file of authorities to verify with; None: the system's.
    """

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    ca: str | None = None

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses, one by one."""
        return tuple(each.strip().rstrip("/") for each in self.url.split(","))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """A schema.

    Attributes:
        kind: "AVRO", "JSON" or "PROTOBUF"; ``text``: in that language.
        references: schemas that it refers to by name, each behind those that it refers to itself.
        name: by which the schema that refers to it does so; "" of one that nobody refers to.
    """

    kind: str
    text: str
    references: tuple[RegisteredSchema, ...] = ()
    name: str = ""


class SchemaRegistry:
    """Asks a registry, and asks for each schema once."""

    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self._schemas: dict[int, RegisteredSchema] = {}
        self._answers = 0
        is_encrypted = any(url.startswith("https:") for url in settings.urls)
        context = ssl.create_default_context(cafile=settings.ca) if is_encrypted else None
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if context is not None:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def schema(self, number: int) -> RegisteredSchema | None:
        """The schema of id *number*; None where the registry has none.

        Raises:
            RegistryDown: it does not answer. Retryable.
            SourceError: it refuses, or is no registry.
        """
        held = self._schemas.get(number)
        if held is None:
            found = self._asked(f"/schemas/ids/{number}")
            if found is None:
                return None
            held = self._schemas.setdefault(number, self._read(found, f"schema {number}", frozenset()))
        return held

    def schema_named(self, number: int, where: str) -> RegisteredSchema:
        """The schema that a message names; raises as :meth:`schema` does.

        Raises:
            UnsupportedEvent: the registry does not have it.
        """
        found = self.schema(number)
        if found is None:
            raise UnsupportedEvent(
                "a message names a schema that the registry does not have",
                where=where,
                expected=f"schema {number} at {self.settings.url}",
                found="no such id",
                next_step="correct source.registry.url: each registry has ids of its own",
            )
        return found

    def languages(self) -> tuple[str, ...]:
        """In which languages it takes schemas; raises as :meth:`schema` does."""
        found = self._asked("/schemas/types")
        if not isinstance(found, list):
            raise self._strange(f"an answer that is none: {str(found)[:80]}")
        return tuple(sorted(map(str, found)))

    def _read(self, found: Any, what: str, within: frozenset[tuple[str, int]]) -> RegisteredSchema:
        try:
            text, kind = str(found["schema"]), str(found.get("schemaType") or "AVRO")
            named = [
                (str(each.get("name") or ""), str(each["subject"]), int(each["version"]))
                for each in found.get("references") or ()
            ]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._strange(f"an answer that is none: {what}") from None
        references = list[RegisteredSchema]()
        for name, subject, version in named:
            if (subject, version) in within:
                raise self._strange(f"{what} refers to itself by {subject} version {version}")
            if len(within) == _MOST_DEEP:
                raise self._strange(f"{what} is behind {_MOST_DEEP} other references already")
            quoted = urllib.parse.quote(subject, safe="")
            answer = self._asked(f"/subjects/{quoted}/versions/{version}")
            if answer is None:
                raise self._strange(f"{what} refers to {subject} version {version}, which it does not have")
            held = self._read(answer, f"{subject} version {version}", within | {(subject, version)})
            references.append(replace(held, name=name))
        return RegisteredSchema(kind=kind, text=text, references=tuple(references))

    def _asked(self, path: str) -> Any:
        """The answer of the first address that gives one, that which gave the last one before others; None where the registry has no such thing."""
        urls = self.settings.urls
        for tried in range(len(urls)):
            number = (self._answers + tried) % len(urls)
            try:
                found = self._asked_at(urls[number], path)
            except RegistryDown:
                if tried == len(urls) - 1:
                    raise
            else:
                self._answers = number
                return found
        raise AssertionError("a registry has an address")

    def _asked_at(self, url: str, path: str) -> Any:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self.settings.token:
            headers["Authorization"] = f"Bearer {self.settings.token}"
        elif self.settings.user:
            pair = f"{self.settings.user}:{self.settings.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        request = urllib.request.Request(url + path, headers=headers)  # noqa: S310 checked with the configuration
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                body = answer.read(_LONGEST_BYTES + 1)
        except urllib.error.HTTPError as error:
            return self._refused(error, url, path)
        except (OSError, ValueError, http.client.HTTPException) as error:
            found = getattr(error, "reason", None) or error
            raise RegistryDown(
                "the schema registry does not answer",
                where=url,
                found=f"{type(found).__name__}: {found}",
                next_step="start it, or correct source.registry",
            ) from None
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise self._strange(f"no JSON at {path}") from None

    def _refused(self, error: urllib.error.HTTPError, url: str, path: str) -> None:
        with error:
            try:
                code = json.loads(error.read(_LONGEST_BYTES))["error_code"]
            except (OSError, ValueError, RecursionError, KeyError, TypeError, http.client.HTTPException):
                code = None
        if error.code == 404 and code in _NO_SUCH:
            return
        if error.code in _PASSING:
            raise RegistryDown("the schema registry cannot answer now", where=url, found=f"HTTP status {error.code}")
        if error.code in (401, 403):
            raise SourceNotLetIn(
                "the schema registry refuses to be asked",
                where=url,
                found=f"HTTP status {error.code} for {path}",
                next_step="correct source.registry.user and password, or token, or have them let in to read schemas",
            )
        raise self._strange(f"HTTP status {error.code} for {path}")

    def _strange(self, found: str) -> SourceError:
        return SourceError(
            "what answers is no schema registry, or one that contradicts itself",
            where=self.settings.url,
            expected="the interface of Confluent's (Apicurio: /apis/ccompat/v7)",
            found=found,
            next_step="correct source.registry.url",
        )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A password goes where the configuration says, or nowhere."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """None: the answer counts as an error."""
