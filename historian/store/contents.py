"""Texts as the store keeps them: long ones squeezed, and plans without the snapshots that most of them share."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from historian import codec
from historian.history.stored_timeline import digest_of
from historian.plans.plans import Plan, PlanHead
from historian.positions import LogPosition
from historian.schema.snapshots import Snapshot

__all__ = ["head", "loosened", "pack", "references", "squeezed", "unpack"]

_LONG = 512
_MARK = "z:"


def squeezed(text: str) -> str:
    """*text*, JSON, as it is stored: from some length on deflated and in base64 behind ``z:``, which begins no JSON."""
    if len(text) < _LONG:
        return text
    return _MARK + b64encode(zlib.compress(text.encode())).decode()


def loosened(text: str) -> str:
    """The text that :func:`squeezed` made."""
    return zlib.decompress(b64decode(text[len(_MARK) :])).decode() if text.startswith(_MARK) else text


def pack(plan: Plan) -> tuple[str, dict[str, str]]:
    """The plan's JSON with digests for snapshots, and the snapshots' JSON by digest."""
    value = json.loads(codec.dump(Plan, plan))
    snapshots: dict[str, str] = {}
    planned = (version for table in plan.tables for version in table.versions)
    for version, packed in zip(planned, _versions(value), strict=True):
        if version.snapshot is not None:
            text = codec.dump_short(Snapshot, version.snapshot)
            packed["snapshot"] = digest_of(text)
            snapshots[packed["snapshot"]] = text
    return _text(value), snapshots


def references(body: str) -> set[str]:
    """Digests of the snapshots that a packed plan needs."""
    return {version["snapshot"] for version in _versions(json.loads(body)) if version["snapshot"] is not None}


def unpack(body: str, snapshots: Mapping[str, str]) -> Plan:
    """The plan that :func:`pack` took apart."""
    value = json.loads(body)
    for version in _versions(value):
        if version["snapshot"] is not None:
            version["snapshot"] = json.loads(snapshots[version["snapshot"]])
    return codec.load(Plan, _text(value))


def head(body: str) -> PlanHead:
    """The head of a plan that :func:`pack` took apart."""
    value = json.loads(body)
    return PlanHead(
        number=value["number"],
        end=codec.load(LogPosition, _text(value["end"])),
        version=value["version"],
        system_time_us=value["system_time_us"],
        tables=len(value["tables"]),
    )


def _versions(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [version for table in plan["tables"] for version in table["versions"]]


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
