"""Texts of MariaDB's INET4, INET6 and UUID: what a literal may look like, and the one form in which servers print it."""

from __future__ import annotations

import ipaddress
import re

__all__ = ["address_text"]

_WORDS = 8
_MAPPED = 0xFFFF
"""The word in front of an IPv4 address that stands in an IPv6 one."""
_INET4 = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})", re.ASCII)
_UUID = re.compile(r"(?:[0-9a-f]-?){31}[0-9a-f]", re.IGNORECASE | re.ASCII)
_SIZES_BYTES = {"inet4": 4, "inet6": 16, "uuid": 16}


def address_text(kind: str, literal: str | bytes) -> str | None:
    """The server's text of a literal, or of the bytes of one; None where it is no value of that type.

    >>> address_text("inet6", "1.2.3.4"), address_text("inet6", "1:0:2::7"), address_text("inet4", "001.2.3.4")
    ('::ffff:1.2.3.4', '1:0:2::7', '1.2.3.4')
    """
    raw = literal if isinstance(literal, bytes) else _READ[kind](literal)
    if raw is None or len(raw) != _SIZES_BYTES[kind]:
        return None
    return _PRINTED[kind](raw)


def _inet4(text: str) -> bytes | None:
    found = _INET4.fullmatch(text)
    numbers = [int(number) for number in found.groups()] if found else [256]
    return bytes(numbers) if max(numbers) < 256 else None


def _inet6(text: str) -> bytes | None:
    inner = _inet4(text)
    if inner is not None:
        return bytes(10) + _MAPPED.to_bytes(2, "big") + inner
    try:
        return ipaddress.IPv6Address(text).packed if "%" not in text else None
    except ValueError:
        return None


def _uuid(text: str) -> bytes | None:
    return bytes.fromhex(text.replace("-", "")) if _UUID.fullmatch(text) else None


def _inet4_text(raw: bytes) -> str:
    return ".".join(map(str, raw))


def _inet6_text(raw: bytes) -> str:
    """Words in hexadecimal, the first longest run of zeros left out; IPv4 where the address holds one."""
    words = [int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw), 2)]
    zeros = [next((end for end in range(at, _WORDS) if words[end]), _WORDS) - at for at in range(_WORDS)]
    most = max(zeros)
    if not most:
        return ":".join(f"{word:x}" for word in words)
    first = zeros.index(most)
    before, behind = words[:first], words[first + most :]
    if not before and (most == 6 or (most == 5 and behind[0] == _MAPPED)):
        return f"::{'ffff:' if most == 5 else ''}{_inet4_text(raw[-4:])}"
    return "::".join(":".join(f"{word:x}" for word in part) for part in (before, behind))


def _uuid_text(raw: bytes) -> str:
    digits = raw.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


_READ = {"inet4": _inet4, "inet6": _inet6, "uuid": _uuid}
_PRINTED = {"inet4": _inet4_text, "inet6": _inet6_text, "uuid": _uuid_text}
