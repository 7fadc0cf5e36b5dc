"""Diffs of JSON documents applied to documents; what servers log is in ``test_row_images``."""

from __future__ import annotations

import json
import struct
from typing import Any

import pyarrow as pa
import pytest

from connectors.readers.binlog.columns.arrays import Cells
from connectors.readers.binlog.columns.json import json_finish
from connectors.readers.binlog.rows.json_diffs import patched
from historian.errors import LogCorrupt, ValueUnrepresentable

REPLACE, INSERT, REMOVE = range(3)


def binary(value: Any, *, large: bool = False) -> bytes:
    """A document in MySQL's form, its containers small or large."""
    kind, data = node(value, large)
    return bytes([kind]) + data


def node(value: Any, large: bool) -> tuple[int, bytes]:
    if value is None or isinstance(value, bool):
        return 4, bytes([{None: 0, True: 1, False: 2}[value], 0])
    if isinstance(value, int):
        return (5, struct.pack("<h", value)) if -(2**15) <= value < 2**15 else (7, struct.pack("<i", value))
    if isinstance(value, str):
        return 12, bytes([len(value.encode())]) + value.encode()
    form, width = ("<I", 4) if large else ("<H", 2)
    keys = sorted((key.encode() for key in value), key=lambda key: (len(key), key)) if isinstance(value, dict) else None
    values = [node(value[key.decode()], large) for key in keys] if keys is not None else [node(v, large) for v in value]
    place = 2 * width + (1 + width) * len(values) + (2 + width) * len(keys or ())
    head = b""
    for key in keys or ():
        head += struct.pack(form, place) + struct.pack("<H", len(key))
        place += len(key)
    entries, bodies = b"", b""
    for kind, data in values:
        if kind in (4, 5) or (kind == 7 and large):
            entries += bytes([kind]) + data.ljust(width, b"\xff" if kind == 5 and data[1] & 0x80 else b"\0")
        else:
            entries += bytes([kind]) + struct.pack(form, place + len(bodies))
            bodies += data
    body = struct.pack(form, len(values)) + struct.pack(form, place + len(bodies)) + head + entries
    return (0 if keys is not None else 2) + large, body + b"".join(keys or ()) + bodies


def diff(operation: int, path: str, *value: Any) -> bytes:
    out = bytes([operation, len(path.encode())]) + path.encode()
    if value:
        out += bytes([len(binary(value[0]))]) + binary(value[0])
    return out


def text(document: bytes) -> str:
    cells = Cells(
        arrow=pa.string(),
        rows=1,
        validity=None,
        nulls=0,
        values=pa.py_buffer(struct.pack("<ii", 0, len(document))),
        data=pa.py_buffer(document),
        place=str,
    )
    return str(json_finish(bare=False)(cells)[0].as_py())


DOCUMENT = {"b": [1, [2, -70000], "t"], "aa": {"x": None, "y z": True}, "c": -5, "s": "ß"}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    "diffs,after",
    [
        ([], DOCUMENT),
        ([(REPLACE, "$.c", 7)], {**DOCUMENT, "c": 7}),
        ([(REPLACE, "$.c[0]", 7)], {**DOCUMENT, "c": 7}),
        ([(REPLACE, "$.c[last]", "w")], {**DOCUMENT, "c": "w"}),
        ([(REPLACE, "$.b[1][1]", -5)], {**DOCUMENT, "b": [1, [2, -5], "t"]}),
        ([(REPLACE, "$.b[last-1]", None)], {**DOCUMENT, "b": [1, None, "t"]}),
        ([(INSERT, "$.b[1]", 9)], {**DOCUMENT, "b": [1, 9, [2, -70000], "t"]}),
        ([(INSERT, "$.b[50]", 9)], {**DOCUMENT, "b": [1, [2, -70000], "t", 9]}),
        ([(INSERT, "$.ab", {"k": [1]})], {**DOCUMENT, "ab": {"k": [1]}}),
        ([(INSERT, '$.aa."q\\"\\u00e4"', 1)], {**DOCUMENT, "aa": {"x": None, "y z": True, 'q"ä': 1}}),
        ([(REMOVE, '$.aa."y z"')], {**DOCUMENT, "aa": {"x": None}}),
        ([(REMOVE, "$.b[0]"), (REMOVE, "$.b[0]"), (INSERT, "$.b[0]", 0)], {**DOCUMENT, "b": [0, "t"]}),
        ([(REPLACE, "$", [1, "x"])], [1, "x"]),
    ],
)
def test_a_diff_does_what_it_says(diffs: list[tuple[Any, ...]], after: Any, large: bool) -> None:
    document = patched(binary(DOCUMENT, large=large), b"".join(diff(*each) for each in diffs))
    assert text(document) == text(binary(after))
    assert json.loads(text(document)) == after


@pytest.mark.parametrize(
    "each",
    [
        (REPLACE, "$.nothing", 1),
        (REPLACE, "$.b[3]", 1),
        (REPLACE, "$.c[1]", 1),
        (REPLACE, "$.b.c", 1),
        (INSERT, "$.c", 1),
        (INSERT, "$.c.d", 1),
        (INSERT, "$.aa[1]", 1),
        (INSERT, "$.b.x", 1),
        (INSERT, "$", 1),
        (REMOVE, "$"),
        (REMOVE, "$.aa.z"),
        (REMOVE, "$.*"),
        (REMOVE, "c"),
    ],
)
def test_a_path_that_is_not_in_the_document_is_refused(each: tuple[Any, ...]) -> None:
    with pytest.raises(ValueUnrepresentable, match="does not fit the document") as caught:
        patched(binary(DOCUMENT), diff(*each))
    assert caught.value.found == f"path {each[1]}"


def test_bytes_that_are_no_diffs_are_damage() -> None:
    whole = diff(REPLACE, "$.c", 7)
    for end in range(1, len(whole)):
        with pytest.raises(LogCorrupt, match="does not fit its length"):
            patched(binary(DOCUMENT), whole[:end])
    with pytest.raises(LogCorrupt):
        patched(binary(DOCUMENT), b"\3" + whole[1:])
