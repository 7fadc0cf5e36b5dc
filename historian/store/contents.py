"""Plans as the store keeps them: snapshots, which most plans share, stand aside under the digest of their JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from historian import codec
from historian.plans import Plan

__all__ = ["pack", "references", "unpack"]


def pack(plan: Plan) -> tuple[str, dict[str, str]]:
    """The plan's JSON with digests for snapshots, and the snapshots' JSON by digest."""
    value = json.loads(codec.dump(Plan, plan))
    snapshots: dict[str, str] = {}
    for version in _versions(value):
        if version["snapshot"] is not None:
            text = _text(version["snapshot"])
            digest = hashlib.sha256(text.encode()).hexdigest()
            snapshots[digest] = text
            version["snapshot"] = digest
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


def _versions(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [version for table in plan["tables"] for version in table["versions"]]


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
