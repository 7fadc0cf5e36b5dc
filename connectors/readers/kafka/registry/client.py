"""What a schema registry is asked: a schema by its id, with the schemas that it refers to. What it said is kept: ids never change their meaning."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from historian.errors import SourceError

__all__ = ["RegisteredSchema", "RegistryDown", "RegistrySettings", "SchemaRegistry"]

_TIMEOUT_S = 30.0
_LONGEST_BYTES = 16 * 1024 * 1024
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
        url: of Confluent's interface; Apicurio has it under ``/apis/ccompat/v7``.
        user: "" where none is wanted.
        ca: path of the PEM file of authorities to verify with; None: the system's.
    """

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    ca: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """A schema.

    Attributes:
        kind: "AVRO", "JSON" or "PROTOBUF"; ``text``: in that language.
        references: schemas that it refers to by name, each behind those that it refers to itself.
    """

    kind: str
    text: str
    references: tuple[RegisteredSchema, ...] = ()


class SchemaRegistry:
    """Asks a registry, and asks for each schema once."""

    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self._schemas: dict[int, RegisteredSchema] = {}
        context = ssl.create_default_context(cafile=settings.ca) if settings.url.startswith("https:") else None
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

    def languages(self) -> tuple[str, ...]:
        """In which languages it takes schemas; raises as :meth:`schema` does."""
        found = self._asked("/schemas/types")
        if not isinstance(found, list):
            raise self._strange(f"an answer that is none: {str(found)[:80]}")
        return tuple(sorted(map(str, found)))

    def _read(self, found: Any, what: str, within: frozenset[tuple[str, int]]) -> RegisteredSchema:
        try:
            text, kind = str(found["schema"]), str(found.get("schemaType") or "AVRO")
            named = [(str(each["subject"]), int(each["version"])) for each in found.get("references") or ()]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._strange(f"an answer that is none: {what}") from None
        references = list[RegisteredSchema]()
        for subject, version in named:
            if (subject, version) in within:
                raise self._strange(f"{what} refers to itself by {subject} version {version}")
            quoted = urllib.parse.quote(subject, safe="")
            answer = self._asked(f"/subjects/{quoted}/versions/{version}")
            if answer is None:
                raise self._strange(f"{what} refers to {subject} version {version}, which it does not have")
            references.append(
                self._read(answer, f"{subject} version {version}", within | {(subject, version)}),
            )
        return RegisteredSchema(kind=kind, text=text, references=tuple(references))

    def _asked(self, path: str) -> Any:
        """The answer; None where the registry has no such thing."""
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self.settings.user:
            pair = f"{self.settings.user}:{self.settings.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        request = urllib.request.Request(self.settings.url.rstrip("/") + path, headers=headers)  # noqa: S310 checked with the configuration
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                body = answer.read(_LONGEST_BYTES + 1)
        except urllib.error.HTTPError as error:
            return self._refused(error, path)
        except (OSError, ValueError, http.client.HTTPException) as error:
            found = getattr(error, "reason", None) or error
            raise RegistryDown(
                "the schema registry does not answer",
                where=self.settings.url,
                found=f"{type(found).__name__}: {found}",
                next_step="start it, or correct source.registry",
            ) from None
        try:
            return json.loads(body)
        except ValueError:
            raise self._strange(f"no JSON at {path}") from None

    def _refused(self, error: urllib.error.HTTPError, path: str) -> None:
        with error:
            try:
                code = json.loads(error.read(_LONGEST_BYTES))["error_code"]
            except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
                code = None
        if error.code == 404 and code in _NO_SUCH:
            return
        if error.code in _PASSING:
            raise RegistryDown(
                "the schema registry cannot answer now", where=self.settings.url, found=f"HTTP status {error.code}"
            )
        if error.code in (401, 403):
            raise SourceError(
                "the schema registry refuses to be asked",
                where=self.settings.url,
                found=f"HTTP status {error.code} for {path}",
                next_step="correct source.registry.user and password, or have them let in to read schemas",
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
