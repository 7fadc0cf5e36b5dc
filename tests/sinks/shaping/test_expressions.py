"""Computed columns and filters: Spark SQL over the rows of chunks."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from historian.errors import ConfigError
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, decimal, text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"id": INT, "country": text(), "total": decimal(8, 2), "secret": text()}
RULES: dict[str, Any] = {
    "exclude": ("secret",),
    "compute": (("eur", "CAST(total * 2 AS DECIMAL(9,2))"), ("mark", "concat(country, '/', right(secret, 1))")),
    "where": "country = 'DE'",
}


def row(number: int, country: str | None, total: str = "1.50") -> dict[str, Any]:
    return {"id": number, "country": country, "total": Decimal(total), "secret": f"s{number}"}


def seen(row: dict[str, Any]) -> dict[str, Any]:
    shown = {name: value for name, value in row.items() if name != "secret"}
    return {**shown, "eur": row["total"] * 2, "mark": f"{row['country']}/{row['secret'][-1]}"}


def made(spark: SparkSession, path: Path, rules: dict[str, Any] = RULES, **settings: Any) -> HeldLake:
    return HeldLake(spark, path / "lake", Lab(), tables=(("shop.t", tuple(rules.items())),), **settings)


def mirror(lake: HeldLake) -> list[dict[str, Any]]:
    return sorted(lake.mirror("shop_t"), key=lambda found: found["id"])


@pytest.mark.parametrize(
    "on_executors", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["here", "on executors"]
)
def test_a_mirror_holds_what_the_filter_takes_with_computed_columns(
    spark: SparkSession,
    tmp_path: Path,
    on_executors: bool,
) -> None:
    lake = made(spark, tmp_path, history="{database}_{table}_history")
    lab = lake.lab
    lab.create("shop.other", {"id": INT})
    lab.create("shop.t", COLUMNS)
    rows = [row(n, country) for n, country in enumerate(("DE", "FR", None, "DE", "DE"))]
    lab.insert("shop.t", *rows)
    lab.insert("shop.other", {"id": 1})
    lake.cut(on_executors=on_executors)
    lab.update("shop.t", rows[0], country="FR")
    lab.update("shop.t", rows[1], country="DE")
    lab.update("shop.t", rows[2], total=Decimal("9.00"))
    lab.flush()
    lab.update("shop.t", rows[3], total=Decimal("2.00"))
    lab.update("shop.t", rows[4], id=40)
    lab.rename_column("shop.t", "total", "amount")
    lab.add("shop.t", "more", INT, after="country", initial="7")
    fresh = {"id": 50, "country": "DE", "more": 5, "amount": Decimal("1.00"), "secret": "s5"}
    lab.insert("shop.t", fresh)
    lake.catch_up()
    lake.cut(on_executors=on_executors)

    assert lake.stopped() == {}
    wanted = [
        seen(r) for r in ({**rows[1], "country": "DE"}, {**rows[3], "total": Decimal("2.00")}, {**rows[4], "id": 40})
    ]
    for found in wanted:
        found |= {"more": 7, "amount": found.pop("total")}
    fresh |= {"eur": Decimal("2.00"), "mark": "DE/5"}
    del fresh["secret"]
    assert mirror(lake) == [*wanted, fresh]
    lake.read_by_spark("shop_t", "shop_t_changes", "shop_t_history")
    assert lake.columns("shop_t")[-2:] == ["eur decimal(9,2)", "mark string"]
    log = [(r["op"], r["id"], r["amount"], r["eur"]) for r in lake.raw_log("shop_t_changes")]
    two = Decimal("1.50"), Decimal("3.00")
    assert log == [
        *((0, number, *two) for number in (0, 3, 4)),
        (1, 0, *two),
        (0, 1, *two),
        (2, 3, *two),
        (3, 3, Decimal("2.00"), Decimal("4.00")),
        (1, 4, *two),
        (0, 40, *two),
        (0, 50, Decimal("1.00"), Decimal("2.00")),
    ]
    assert [i.from_offset for i in lake.history("shop_t_history") if i.to_offset is None] == [4, 6, 8, 9]
    lab.truncate("shop.t")
    lake.cut()
    assert mirror(lake) == []
    assert [r["op"] for r in lake.raw_log("shop_t_changes")[len(log) :]] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "statement",
    [
        lambda lab: lab.drop_column("shop.t", "secret"),
        lambda lab: lab.retype("shop.t", "total", decimal(9, 2)),
    ],
    ids=["drop", "retype"],
)
def test_a_statement_that_an_expression_does_not_survive_stops_its_table(
    spark: SparkSession, tmp_path: Path, statement: Any
) -> None:
    lake = made(spark, tmp_path)
    lab = lake.lab
    lab.create("shop.t", COLUMNS)
    lab.create("shop.other", {"id": INT})
    lake.cut()
    lab.insert("shop.t", row(1, "DE"))
    statement(lab)
    lab.insert("shop.other", {"id": 1})
    lake.cut()

    assert list(lake.stopped()) == ["shop.t"]
    assert "ALTER TABLE shop.t" in lake.stopped()["shop.t"]
    assert lake.mirror("shop_other") == [{"id": 1}]
    lake.catch_up()


@pytest.mark.parametrize("on_executors", [False, True], ids=["here", "on executors"])
def test_a_row_for_which_an_expression_has_no_value_stops_its_table(
    spark: SparkSession,
    tmp_path: Path,
    on_executors: bool,
) -> None:
    rules = {"compute": (("ratio", "1 / total"), ("number", "CAST(country AS INT)"))}
    tables = tuple((name, tuple(rules.items())) for name in ("shop.t", "shop.u"))
    lake = HeldLake(spark, tmp_path / "lake", Lab(), tables=tables)
    lab = lake.lab
    for name in ("shop.t", "shop.u", "shop.other"):
        lab.create(name, COLUMNS)
    lake.cut()
    lab.insert("shop.t", row(1, "17"), row(2, "DE"))
    lab.insert("shop.u", row(1, "17"))
    lab.insert("shop.other", row(1, "DE"))
    plan = lake.cut(on_executors=on_executors)
    lake.reopen()
    lake.write(plan)

    assert list(lake.stopped()) == ["shop.t"]
    assert "CAST_INVALID_INPUT" in lake.stopped()["shop.t"]
    assert "'DE'" not in lake.stopped()["shop.t"]
    assert [r["number"] for r in lake.mirror("shop_u")] == [17]
    assert len(lake.mirror("shop_other")) == 1


def test_expressions_that_cannot_be_are_listed_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    expressions = {
        "nosuch + 1": "UNRESOLVED_COLUMN",
        "total +": "PARSE_SYNTAX_ERROR",
        "rand()": "whenever it is computed",
        "uuid()": "whenever it is computed",
        "current_timestamp()": "found CurrentTimestamp",
        "current_date()": "found CurrentDate",
        "unix_timestamp()": "found CurrentTimestamp",
        "(SELECT 1)": "found ScalarSubquery",
        "total IN (SELECT 1)": "Subquery",
        "sum(total)": "found Aggregate",
        "explode(array(1))": "for each row by itself, found Project of ",
        "row_number() OVER (ORDER BY id)": "for each row by itself, found Project of ",
        "input_file_name()": "whenever it is computed",
        "current_user()": "found Current",
        "array(1)": "found array<int>",
        "id": "has a column of that name",
    }
    names = {text: f"c{at}" if text != "id" else "Country" for at, text in enumerate(expressions)}
    rules = {"compute": tuple((name, text) for text, name in names.items()), "where": "total"}
    lake = made(spark, tmp_path, rules)
    lake.lab.create("shop.t", COLUMNS)
    with pytest.raises(ConfigError) as error:
        lake.cut()

    problems = {problem.rpartition(": ")[2]: problem for problem in error.value.problems}
    assert "expected a boolean, found decimal(8,2)" in problems.pop("where")
    said = {text: problems.get(f"compute.{name}", "") for text, name in names.items()}
    assert {} == {text: said[text] for text, reason in expressions.items() if reason not in said[text]}


def test_kinds_of_values_are_those_of_the_expressions(spark: SparkSession, tmp_path: Path) -> None:
    kinds = {
        "boolean": "total > 1",
        "tinyint": "CAST(1 AS TINYINT)",
        "smallint": "CAST(1 AS SMALLINT)",
        "int": "id",
        "bigint": "CAST(id AS BIGINT)",
        "float": "CAST(1.5 AS FLOAT)",
        "double": "CAST(total AS DOUBLE)",
        "decimal(20,3)": "CAST(total AS DECIMAL(20,3))",
        "string": "concat_ws(',', transform(split(country, ''), x -> upper(x)))",
        "binary": "CAST(country AS BINARY)",
        "date": "DATE'2024-02-29'",
        "timestamp": "TIMESTAMP'2024-02-29 01:02:03Z'",
        "timestamp_ntz": "TIMESTAMP_NTZ'2024-02-29 01:02:03'",
    }
    computed = tuple((f"c {at}", text) for at, text in enumerate(kinds.values()))
    lake = made(spark, tmp_path, {"compute": computed})
    lake.lab.create("shop.t", COLUMNS)
    lake.lab.insert("shop.t", row(1, "de"))
    lake.cut()

    assert lake.columns("shop_t")[4:] == [f"c {at} {kind}" for at, kind in enumerate(kinds)]
    lake.read_by_spark("shop_t")
    direct = spark.createDataFrame([(1, "de", Decimal("1.50"))], "id int, country string, total decimal(8,2)")
    expected = direct.selectExpr(*(f"{text} AS `{name}`" for name, text in computed)).toArrow().to_pylist()[0]
    assert {name: value for name, value in mirror(lake)[0].items() if name[:2] == "c "} == expected
