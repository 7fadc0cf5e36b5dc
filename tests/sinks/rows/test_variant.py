"""JSON texts become the bytes that Spark's own parse_json makes of them, or an error where those would lose something."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.variant_utils import VariantUtils

from historian.errors import ValueUnrepresentable
from historian.values.variant import MAX_BYTES, encoded
from sinks.rows.variant import VARIANT, fitted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENTS = [
    *("null", "true", "false", "0", "-0", "[]", "{}", '""', " [ 1 , 2 ] "),
    # Where the width of integers changes, and where they become decimals and doubles.
    *(str(sign * 2**bits + off) for bits in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (1, -1) for off in (-1, 0, 1)),
    *(digit * count for digit in "19" for count in (9, 10, 18, 19, 38, 39, 60, 308)),
    *(f"-{'9' * 38}", f"-{'9' * 39}"),
    # Decimals: kept zeros, digits and scale at their bounds, and beyond.
    *("1.10", "-1.10", "0.0", "-0.0", "0.00", "100.00", "0.000000001", "0.0000000001", "123456789.1", "1234567.890"),
    *(f"0.{'0' * 37}1", f"0.{'0' * 38}1", f"{'9' * 37}.9", f"{'9' * 38}.9", f"{'1' * 9}.{'2' * 9}", f"0.{'3' * 18}"),
    *("1e0", "1E2", "1.5e-3", "1e20", "-1e-320", "5e-324", "1.7976931348623157e308", "3.141592653589793", "1e-400"),
    # Text: where the length changes its form, escapes, letters outside the first plane.
    *(json.dumps("a" * count) for count in (63, 64, 255, 256, 65_536)),
    *(
        json.dumps("é" * 31),
        json.dumps("é" * 32),
        '"\\u0000\\b\\f\\n\\r\\t\\"\\\\\\/\\ud83d\\ude00"',
        '"😀  \u2028 \x7f"',
    ),
    # Keys: as they sort in UTF-16 and not by code point, shared by objects, empty, many.
    '{"\\uffff": 1, "😀": 2, "z": 3, "": 4, "é": 5, "Z": 6, "aa": 7, "a": 8}',
    '[{"b": 1, "a": 2}, {"a": {"c": 3, "b": 4}}, {}, {"c": null}]',
    json.dumps({f"key {at}": at for at in range(255)}),
    json.dumps({f"key {at}": [at] for at in range(256)}),
    json.dumps({chr(0x1F600 + at) if at % 2 else chr(0xFF00 + at): at for at in range(64)}, ensure_ascii=False),
    json.dumps({f"{at:0300}": at for at in range(300)}),
    # Arrays: where their number of elements and their size change the header.
    *(json.dumps(list(range(count))) for count in (255, 256, 257, 5_000, 70_000)),
    *(json.dumps([["x" * size]]) for size in (245, 250, 255, 65_525, 65_530, 65_535)),
    # As deep as MySQL lets them be.
    "[" * 100 + "1" + "]" * 100,
    '{"a":' * 100 + "1.5" + "}" * 100,
    '{"a": 1, "b": {"d": [1, 2.50, "x", null, true, {"e": 18446744073709551615}], "c": "2024-01-01 00:00:00.000000"}}',
]


def test_the_bytes_are_those_of_sparks_parse_json(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    frame = spark.createDataFrame(pa.table({"text": DOCUMENTS, "at": range(len(DOCUMENTS))}))
    rows = frame.select("at", F.parse_json("text").alias("v")).collect()

    found = {row.at: (bytes(row.v.metadata), bytes(row.v.value)) for row in rows}
    different = [DOCUMENTS[at][:60] for at, expected in found.items() if encoded(DOCUMENTS[at]) != expected]
    assert (len(DOCUMENTS), []) == (len(found), different)


_LEAVES = st.none() | st.booleans() | st.integers(-(10**37), 10**37) | st.floats(allow_nan=False, allow_infinity=False)
_VALUES = st.recursive(
    _LEAVES | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


@given(_VALUES)
@settings(max_examples=200, deadline=None)
def test_pysparks_reader_reads_what_was_written(value: object) -> None:
    metadata, data = encoded(json.dumps(value))

    read = VariantUtils.to_python(data, metadata)
    assert _plain(value) == _plain(read)


def _plain(value: object) -> object:
    """Numbers as floats, since a text with a point is read as a decimal."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (str, bool)) else float(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text,why",
    [
        ('{"a": 1, "a": 1}', "repeats a key"),
        ('[{"b": {"a": 1, "c": 2, "\\u0061": 3}}]', "repeats a key"),
        ("1e400", "beyond all doubles"),
        ("-1e309", "beyond all doubles"),
        ("9" * 400, "beyond all doubles"),
        ("9" * 5000, "4300"),
        ("NaN", "NaN"),
        ("[-Infinity]", "Infinity"),
        ('"\\ud800"', "surrogates"),
        ("[" * 100_000 + "]" * 100_000, "deep"),
        ("", "Expecting"),
        ("{'a': 1}", "Expecting"),
        ("[1] x", "Extra"),
        (json.dumps("x" * MAX_BYTES), "16 MiB"),
        (json.dumps(["x" * (MAX_BYTES - 1), "y"]), "16 MiB"),
        (json.dumps({"k" * MAX_BYTES: 1}), "16 MiB"),
    ],
)
def test_what_variant_would_lose_is_an_error(text: str, why: str) -> None:
    with pytest.raises(ValueUnrepresentable, match=why) as found:
        encoded(text, "shop.t.doc")
    assert found.value.where == "shop.t.doc"
    assert len(str(found.value)) < 500


def test_the_longest_values_are_taken() -> None:
    metadata, value = encoded(json.dumps("x" * (MAX_BYTES - 5)))
    assert (3, MAX_BYTES) == (len(metadata), len(value))


def test_null_is_not_the_documents_null() -> None:
    texts = pa.chunked_array([["1", None, "null"], [], [None], ["1", "1"]], pa.string())
    found = fitted(texts, VARIANT)

    one, null = ({"metadata": m, "value": v} for m, v in (encoded("1"), encoded("null")))
    assert [one, None, null, None, one, one] == found.to_pylist()
    assert VARIANT == found.type
    none = fitted(pa.nulls(2), VARIANT)
    assert [None, None] == none.to_pylist()
    pq.write_table(pa.table([none], schema=pa.schema([pa.field("doc", VARIANT)])), pa.BufferOutputStream())


def test_values_in_sparks_order_of_fields_are_put_into_ours() -> None:
    m, v = encoded('{"a": 1}')
    sparks = pa.array(
        [{"value": v, "metadata": m}, None], pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    )

    assert fitted(sparks, VARIANT).to_pylist() == [{"metadata": m, "value": v}, None]
    assert fitted(pa.chunked_array([sparks]), VARIANT).type == VARIANT
    shredded = pa.array([{"metadata": m, "value": None, "typed_value": 1}])
    with pytest.raises(ValueUnrepresentable, match="typed_value"):
        fitted(shredded, VARIANT)


def test_other_types_are_cast() -> None:
    assert fitted(pa.array([1], pa.int8()), pa.int64()).type == pa.int64()
