"""Which key a table is gone through by, and its ranges in SQL."""

from __future__ import annotations

import pytest

from connectors.backfill.keys.predicates import where
from connectors.backfill.keys.split_key import SplitKey, obstacle
from historian.names import TableName
from historian.plans.key_ranges import Key, KeyRange
from historian.schema.snapshots import Column, ColumnType, Snapshot, UniqueKey

INT = ColumnType(name="int")
BIGINT = ColumnType(name="bigint", unsigned=True)
WORD = ColumnType(name="varchar", length=9, charset="utf8mb4", collation="utf8mb4_unicode_ci")
LABEL = ColumnType(name="enum", labels=("x", "y", "z"), charset="latin1", collation="latin1_swedish_ci")
FLOAT = ColumnType(name="float")
TEXT = ColumnType(name="text", charset="utf8mb4", collation="utf8mb4_bin")


def _table(
    *kinds: ColumnType, primary: tuple[int, ...] = (), unique: tuple[UniqueKey, ...] = (), nullable: bool = False
) -> Snapshot:
    columns = tuple(
        Column(id=number, name=f"c{number}", type=kind, nullable=nullable) for number, kind in enumerate(kinds, 1)
    )
    return Snapshot(
        table_id=1,
        name=TableName("d", "t"),
        columns=columns,
        primary_key=primary,
        unique_keys=unique,
        charset="utf8mb4",
        collation="utf8mb4_bin",
    )


def _unique(*columns: int, prefixes: tuple[int, ...] = ()) -> UniqueKey:
    return UniqueKey(name="u", columns=columns, prefixes=prefixes)


def _key(*kinds: ColumnType) -> SplitKey:
    key = SplitKey.of(_table(*kinds, primary=tuple(range(1, len(kinds) + 1))), "mysql")
    assert key is not None
    return key


def _found(snapshot: Snapshot) -> tuple[str, list[int]] | None:
    key = SplitKey.of(snapshot, "mysql")
    return None if key is None else (key.index, [column.id for column in key.columns])


def test_the_primary_key_comes_first_then_a_unique_key_without_nulls() -> None:
    assert ("PRIMARY", [2, 1]) == _found(_table(INT, WORD, primary=(2, 1), unique=(_unique(1),)))
    assert ("u", [2]) == _found(_table(FLOAT, INT, primary=(1,), unique=(_unique(2),)))
    assert ("u", [1]) == _found(_table(INT, unique=(_unique(1),)))
    assert None is _found(_table(INT, unique=(_unique(1),), nullable=True))
    assert None is _found(_table(WORD, unique=(_unique(1, prefixes=(4,)),)))
    assert None is _found(_table(TEXT, primary=(1,)))
    assert None is _found(_table(INT))


@pytest.mark.parametrize(
    "kind, flavor",
    [
        (FLOAT, "mysql"),
        (ColumnType(name="double"), "mysql"),
        (TEXT, "mysql"),
        (ColumnType(name="blob"), "mysql"),
        (ColumnType(name="set", labels=("a",)), "mysql"),
        (ColumnType(name="json"), "mysql"),
        (ColumnType(name="enum", labels=("", "a")), "mysql"),
        (ColumnType(name="varchar", charset="sjis", collation="sjis_bin"), "mysql"),
        (ColumnType(name="char", charset="latin1", collation="latin1_nopad_bin"), "mariadb"),
        (ColumnType(name="char", charset="utf8mb4", collation="utf8mb4_0900_ai_ci"), "mariadb"),
    ],
)
def test_types_without_a_searched_and_exact_order_have_an_obstacle(kind: ColumnType, flavor: str) -> None:
    assert obstacle(kind, flavor)


def test_mysqls_char_without_padding_is_no_obstacle() -> None:
    assert None is obstacle(ColumnType(name="char", charset="utf8mb4", collation="utf8mb4_0900_ai_ci"), "mysql")


@pytest.mark.parametrize(
    "kinds, after, upto, expected",
    [
        ((INT,), None, None, "1"),
        ((INT,), (-5,), (7,), "`c1` > -5 AND `c1` <= 7"),
        ((BIGINT,), (2**63,), None, "`c1` > 9223372036854775808"),
        (
            (INT, INT, INT),
            (1, 2, 3),
            None,
            "(`c1` > 1 OR (`c1` = 1 AND (`c2` > 2 OR (`c2` = 2 AND `c3` > 3)))) AND `c1` >= 1",
        ),
        ((INT, WORD), None, (1, "C3A4"), "(`c1` < 1 OR (`c1` = 1 AND `c2` <= _utf8mb4 x'C3A4')) AND `c1` <= 1"),
        ((LABEL,), (1,), (2,), "`c1` IN (2, 3) AND `c1` IN (0, 1, 2)"),
        ((LABEL, INT), (3, 5), None, "(0 OR (`c1` IN (3, 3) AND `c2` > 5))"),
        ((ColumnType(name="varbinary", length=9),), ("00FF",), None, "`c1` > x'00FF'"),
        ((ColumnType(name="decimal", precision=9, scale=2),), ("-1.50",), None, "`c1` > -1.50"),
        ((ColumnType(name="year"),), (0,), None, "`c1` > '0000'"),
        ((ColumnType(name="timestamp"),), ("2020-01-01 00:00:01",), None, "`c1` > TIMESTAMP'2020-01-01 00:00:01'"),
        ((ColumnType(name="uuid"),), ("00-ff",), None, "`c1` > CAST('00-ff' AS UUID)"),
    ],
)
def test_a_range_in_sql(kinds: tuple[ColumnType, ...], after: Key | None, upto: Key | None, expected: str) -> None:
    assert expected == where(_key(*kinds), KeyRange(after=after, upto=upto))


@pytest.mark.parametrize("value", ["1; DROP TABLE t", "", "1e5", "'"])
def test_a_value_that_is_none_never_becomes_sql(value: str) -> None:
    with pytest.raises(ValueError, match="not a key's value"):
        where(_key(ColumnType(name="decimal", precision=9, scale=2)), KeyRange(after=(value,)))


def test_a_key_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match="a key of 2 columns, and 1 values"):
        where(_key(INT, INT), KeyRange(after=(1,)))


@pytest.mark.parametrize(
    "old, new, kept",
    [
        (INT, BIGINT, True),
        (INT, WORD, False),
        (WORD, ColumnType(name="varchar", length=99, charset="utf8mb4", collation="utf8mb4_unicode_ci"), True),
        (WORD, ColumnType(name="varchar", length=9, charset="utf8mb4", collation="utf8mb4_bin"), False),
        (LABEL, ColumnType(name="enum", labels=("x", "y", "z", "a")), True),
        (LABEL, ColumnType(name="enum", labels=("a", "x", "y", "z")), False),
        (ColumnType(name="binary", length=4), ColumnType(name="binary", length=5), False),
        (ColumnType(name="datetime"), ColumnType(name="datetime", fraction=6), True),
        (ColumnType(name="datetime"), ColumnType(name="timestamp"), False),
    ],
)
def test_ranges_outlive_statements_that_keep_the_order(old: ColumnType, new: ColumnType, kept: bool) -> None:
    assert kept is _key(new).keeps_order(_key(old))


def test_ranges_do_not_outlive_another_key() -> None:
    assert not _key(INT, INT).keeps_order(_key(INT))
