"""GTID_TAGGED events written in plain Python, as MySQL's serialization library writes them."""

from __future__ import annotations

from logs.row_events import UUID, event

__all__ = ["tagged_gtid", "unsigned"]


def unsigned(number: int) -> bytes:
    """As many bytes more as the first has ones at its low end, the number above them."""
    for more in range(8):
        if number < 1 << (7 * (more + 1)):
            return (number << (more + 1) | (1 << more) - 1).to_bytes(more + 1, "little")
    return b"\xff" + number.to_bytes(8, "little")


def signed(number: int) -> bytes:
    """The sign is the lowest bit."""
    return unsigned(number << 1 if number >= 0 else (~number << 1) | 1)


def tagged_gtid(
    number: int, *, tag: str = "tag", uuid: bytes = UUID, committed_us: int = 0, original_us: int = 0, more: bytes = b""
) -> bytes:
    """A GTID_TAGGED event of 9.7."""
    fields = [
        (0, unsigned(1)),
        (1, b"".join(map(unsigned, uuid))),
        (2, signed(number)),
        (3, unsigned(len(tag)) + tag.encode()),
        (4, signed(number - 1)),
        (5, signed(number)),
        (6, unsigned(committed_us)),
        *([(7, unsigned(original_us))] if original_us else []),
        (8, unsigned(313)),
        (9, unsigned(90704)),
    ]
    body = unsigned(0) + b"".join(unsigned(field) + value for field, value in fields) + more
    size = len(body) + 2
    size += 1 if size > 126 else 0
    return event(42, unsigned(1) + unsigned(size) + body)
