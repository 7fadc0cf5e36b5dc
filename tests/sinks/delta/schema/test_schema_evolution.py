"""Schemas of targets follow snapshots by column id."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from historian.errors import TableStopped
from historian.names import TableName
from historian.schema.snapshots import Column, ColumnType, Snapshot
from sinks.delta.log.columns import DeltaSchema, widens
from sinks.delta.schema.schema_evolution import changelog_schema, mirror_schema

INT = ColumnType(name="int")
BIGINT = ColumnType(name="bigint")
TEXT = ColumnType(name="text", charset="utf8mb4")


def _snapshot(*columns: tuple[int, str, ColumnType]) -> Snapshot:
    return Snapshot(
        table_id=1,
        name=TableName("shop", "t"),
        columns=tuple(Column(id=i, name=n, type=t) for i, n, t in columns),
        charset="utf8mb4",
        collation="utf8mb4_0900_ai_ci",
    )


def _told(schema: DeltaSchema) -> list[str]:
    return [f"{f.name} {f.type} {f.physical}" for f in schema.fields]


def test_a_mirror_has_the_columns_of_its_table_in_order() -> None:
    first = mirror_schema(None, _snapshot((1, "id", INT), (2, "a", TEXT)))
    second = mirror_schema(first, _snapshot((3, "a", INT), (2, "b", TEXT), (1, "id", BIGINT)))

    assert ["id integer h1", "a string h2"] == _told(first)
    assert ["a integer h3", "b string h2", "id long h1"] == _told(second)
    assert [3, 2, 1] == [f.column_id for f in second.fields]


def test_a_changelog_keeps_columns_that_are_gone_and_calls_them_aside() -> None:
    first = changelog_schema(None, _snapshot((1, "id", INT), (2, "a", TEXT), (3, "c", INT)), 0)
    second = changelog_schema(first, _snapshot((4, "A", INT), (1, "id", INT)), 9)

    system = ["offset long offset", "op integer op", "system_time timestamp system_time"]
    system += ["event_time timestamp event_time", "schema_version long schema_version"]
    assert [*system, "id integer h1", "a string h2", "c integer h3"] == _told(first)
    assert [*system, "A integer h4", "id integer h1", "a__h2 string h2", "c integer h3"] == _told(second)
    assert [9, 0] == [f.since for f in second.fields[5:7]]


def test_what_delta_noted_on_a_column_is_kept() -> None:
    text = mirror_schema(None, _snapshot((1, "id", INT))).json()
    noted = json.loads(text)
    noted["fields"][0]["metadata"]["delta.typeChanges"] = [{"fromType": "short", "toType": "integer"}]
    schema = mirror_schema(DeltaSchema.parse(json.dumps(noted)), _snapshot((1, "renamed", INT)))

    assert [{"fromType": "short", "toType": "integer"}] == schema.fields[0].metadata["delta.typeChanges"]


def test_files_have_physical_names_and_field_ids() -> None:
    schema = mirror_schema(None, _snapshot((7, "id", INT))).arrow()

    assert ["h7"] == schema.names
    assert pa.int32() == schema.field(0).type
    assert {b"PARQUET:field_id": b"1052"} == schema.field(0).metadata


def test_a_type_that_does_not_widen_stops_the_table() -> None:
    first = mirror_schema(None, _snapshot((1, "id", BIGINT)))

    with pytest.raises(TableStopped, match=r"no widening.*shop.t.id.*long widens to.*integer for int"):
        mirror_schema(first, _snapshot((1, "id", INT)))


def test_text_does_not_become_variant_nor_back() -> None:
    forms = [_snapshot((1, "doc", ColumnType(name="json", options=form))) for form in ("", "variant")]

    assert ["doc string h1", "doc variant h1"] == [_told(mirror_schema(None, s))[0] for s in forms]
    for old, new in (forms, forms[::-1]):
        with pytest.raises(TableStopped, match=r"no widening.*shop.t.doc"):
            mirror_schema(mirror_schema(None, old), new)


def test_a_changelog_refuses_a_column_named_like_its_own() -> None:
    with pytest.raises(TableStopped, match=r"named like a column of the changelog.*\['Offset'\]"):
        changelog_schema(None, _snapshot((1, "Offset", INT)), 0)


def test_of_names_that_delta_does_not_tell_apart_the_newer_column_has_its_id_behind_it() -> None:
    both = mirror_schema(None, _snapshot((2, "Straße", INT), (1, "straße", INT)))
    alone = mirror_schema(both, _snapshot((2, "Straße", INT)))
    log = changelog_schema(None, _snapshot((2, "Straße", INT), (1, "straße", INT)), 0)

    assert ["Straße__h2 integer h2", "straße integer h1"] == _told(both)
    assert ["Straße integer h2"] == _told(alone)
    assert ["Straße__h2", "straße"] == log.names()[5:]


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ("byte", "short", True),
        ("byte", "long", True),
        ("byte", "double", True),
        ("byte", "float", False),
        ("short", "decimal(10,0)", True),
        ("short", "decimal(5,0)", False),
        ("integer", "decimal(12,2)", True),
        ("integer", "decimal(11,2)", False),
        ("long", "decimal(20,0)", True),
        ("long", "decimal(19,0)", False),
        ("long", "double", False),
        ("long", "integer", False),
        ("float", "double", True),
        ("double", "float", False),
        ("decimal(5,2)", "decimal(7,4)", True),
        ("decimal(5,2)", "decimal(6,4)", False),
        ("decimal(5,2)", "double", False),
        ("date", "timestamp_ntz", True),
        ("date", "timestamp", False),
        ("boolean", "byte", False),
        ("integer", "string", False),
    ],
)
def test_widening_is_deltas(old: str, new: str, expected: bool) -> None:
    assert expected == widens(old, new)
