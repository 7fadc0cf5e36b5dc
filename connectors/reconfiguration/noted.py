"""A configuration as a run notes it in the store: what it says, without its secrets, to be compared with another one."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from connectors.config import PipelineConfig, SinkConfig, TableFilter
from historian.secret import Secret, mark_of

__all__ = ["NotedConfig"]

_BESIDE = ("path", "name", "sinks", "history", "document")
"""Fields of a configuration that are compared otherwise, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedConfig:
    """What a configuration says.

    Attributes:
        path: of its file.
        mark: two configurations of the same mark say the same, but for how the server lets us in.
        settings: all but the sinks, as JSON has it; fields that are never printed are left out.
        sinks: with a mark in the place of each secret.
        salt: of these marks, which differ from one to the next; "": an earlier release noted it, whose marks have none.
    """

    path: str
    mark: str
    settings: Mapping[str, Any]
    sinks: tuple[SinkConfig, ...]
    salt: str = ""

    @classmethod
    def of(cls, config: PipelineConfig, salt: str | None = None) -> NotedConfig:
        """What *config* says; with the *salt* of what it is compared with, else with one of its own."""
        salt = secrets.token_hex(16) if salt is None else salt
        settings = {f.name: _plain(getattr(config, f.name), salt) for f in fields(config) if f.name not in _BESIDE}
        sinks = [{"type": sink.type, "settings": _plain(sink.settings, salt)} for sink in config.sinks]
        return cls._of({"path": str(config.path), "settings": settings, "sinks": sinks, "salt": salt})

    @classmethod
    def parse(cls, text: str) -> NotedConfig | None:
        """What :meth:`text` gave; None for "" alone."""
        return cls._of(json.loads(text)) if text else None

    @classmethod
    def _of(cls, noted: Mapping[str, Any]) -> NotedConfig:
        said = json.dumps([noted["settings"], noted["sinks"]], sort_keys=True)
        return cls(
            path=noted["path"],
            mark=hashlib.sha256(said.encode()).hexdigest()[:16],
            settings=json.loads(said)[0],
            sinks=tuple(SinkConfig(type=each["type"], settings=_frozen(each["settings"])) for each in noted["sinks"]),
            salt=noted.get("salt", ""),
        )

    def text(self) -> str:
        """As a store keeps it: JSON, without secrets."""
        sinks = [{"type": sink.type, "settings": _plain(sink.settings, self.salt)} for sink in self.sinks]
        noted = {"path": self.path, "settings": self.settings, "sinks": sinks, "salt": self.salt}
        return json.dumps(noted, sort_keys=True)

    def differences(self, former: NotedConfig) -> list[str]:
        """Settings that say something else than in *former*, but for sinks and the tables that are taken in."""
        now, before = dict(_leaves(self.settings)), dict(_leaves(former.settings))
        names = sorted(name for name in {*now, *before} if now.get(name) != before.get(name))
        return [
            f"{name}: {_shown(now.get(name))}, was {_shown(before.get(name))}"
            for name in names
            if name != "source.tables"
        ]


def _mark(secret: str, salt: str) -> str:
    if not salt:
        return f"secret {hashlib.sha256(b'noted' + secret.encode()).hexdigest()[:8]}"
    return f"secret {mark_of(secret, bytes.fromhex(salt))}"


def _plain(value: Any, salt: str) -> Any:
    if isinstance(value, Secret):
        return _mark(value.text, salt)
    if isinstance(value, TableFilter):
        return value.text()
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name), salt) for f in fields(value) if f.repr}
    if isinstance(value, Mapping):
        return {str(key): _plain(each, salt) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each, salt) for each in value]
    return str(value) if isinstance(value, Path) else value


def _frozen(value: Any) -> Any:
    """Lists as the tuples that settings have."""
    if isinstance(value, dict):
        return {key: _frozen(each) for key, each in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _leaves(each, f"{path}.{key}" if path else key)
    else:
        yield path, value


def _shown(value: Any) -> str:
    return "none" if value is None else json.dumps(value)
