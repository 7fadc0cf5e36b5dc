"""Which formats messages look like: of every golden's messages its own is among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from connectors.readers.kafka.messages.sniffing import is_envelope, likely_formats
from logs.topic_messages import body

GOLDENS = sorted((Path(__file__).parent / "goldens").glob("*.json"))
CASES = [path for path in GOLDENS if '"refused"' not in path.read_text(encoding="utf-8")]
UNTOLD = {"ticdc_simple_avro"}
"""Formats whose messages nothing tells from other bytes."""


def messages(case: dict[str, Any]) -> list[tuple[bytes | None, bytes | None]]:
    found = []
    for message in case["messages"]:
        is_whole = isinstance(message, dict) and message.keys() <= {"key", "value", "partition"}
        whole = message if is_whole else {"value": message}
        key, value = (body(whole.get(part), case.get("registry", {})) for part in ("key", "value"))
        found.append((key, value))
    return found


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_messages_look_like_what_they_are(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))

    likely = likely_formats(messages(case))

    assert case["format"] in likely or (case["format"] in UNTOLD and not likely)


def test_nothing_is_told_of_other_bytes() -> None:
    assert () == likely_formats([(None, None), (None, b"\xff\xfe"), (b"k", b"[1]"), (None, b"")])


@pytest.mark.parametrize(
    "record,expected",
    [
        ({"before": None, "after": {"id": 1}, "source": {"db": "shop"}, "op": "c"}, True),
        ({"id": 1, "source": "web", "op": "c"}, False),
        ({"id": 1, "after": None}, False),
    ],
)
def test_a_record_of_avro_is_a_row_or_an_envelope_of_rows(record: dict[str, Any], expected: bool) -> None:
    assert is_envelope(record) == expected
