"""DataFrame functions do what the Arrow functions of the same name do, on one big changelog or many small cases at once."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from historian.changelog import conversions, state, validation
from historian.changelog.merging import batches
from historian.changelog.merging.strategies import Append, ChangelogStream, Ledger, Snapshot, Strategy, UpsertStream
from historian.changelog.operations import Op
from historian.changelog.state import AddedColumn
from historian.changelog.validation import Profile
from historian.errors import HistorianError
from historian.positions import parse_position
from models.changelogs import random_changelog
from models.changes import KEY
from models.merge_cases import CASES, COLUMNS, DEFAULT, SYSTEM, strategies, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
ROWS, FORMER = random_changelog(11, 120, before=6)
ROWS = ROWS.set_column(1, "op", ROWS.column("op").cast(pa.int32()))
# Columns may be called anything.
NAMES = {"v": "v.v", "w": "w `w`"}
ROWS, FORMER = (rows.rename_columns([NAMES.get(name, name) for name in rows.schema.names]) for rows in (ROWS, FORMER))


def _frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """A DataFrame of *rows* in another order, over two partitions."""
    order = list(range(rows.num_rows))
    Random(5).shuffle(order)
    return spark.createDataFrame(rows.take(pa.array(order, pa.int64()))).repartition(2)


def _plain(rows: pa.Table, by: str | None = "offset") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.to_pylist()
    return sorted(found, key=lambda row: row[by]) if by else sorted(found, key=repr)


def test_conversions_are_those_of_arrow(spark: SparkSession) -> None:
    from pyspark_historian import conversions as df

    rows, former = _frame(spark, ROWS), _frame(spark, FORMER)
    forms = {
        "retract": (conversions.to_retract_stream(ROWS), df.to_retract_stream(rows)),
        "upsert": (conversions.to_upsert_stream(ROWS), df.to_upsert_stream(rows)),
        "events": (conversions.to_single_events(ROWS), df.to_single_events(rows)),
        "kinds": (conversions.to_row_kinds(ROWS), df.to_row_kinds(rows)),
    }
    frames = {name: made for name, (_, made) in forms.items()}
    arrow = {name: made for name, (made, _) in forms.items()}
    back = {
        "from retract": (
            conversions.from_retract_stream(arrow["retract"], KEY),
            df.from_retract_stream(frames["retract"], KEY),
        ),
        "from upsert": (
            conversions.from_upsert_stream(arrow["upsert"], KEY, FORMER, first_offset=65_500),
            df.from_upsert_stream(frames["upsert"], KEY, former, first_offset=65_500),
        ),
        "from events": (conversions.from_single_events(arrow["events"]), df.from_single_events(frames["events"])),
        "from kinds": (ROWS, df.from_row_kinds(frames["kinds"])),
        "odf": (conversions.to_odf(ROWS, KEY, FORMER), df.to_odf(rows, KEY, former)),
    }

    for name, (expected, made) in {**forms, **back}.items():
        found = made.toArrow()
        assert expected.schema.names == found.schema.names, name
        assert _plain(expected) == _plain(found), name
        if "op" in found.schema.names:
            assert pa.int32() == found.schema.field("op").type, name


def test_an_append_stream_has_added_rows_alone(spark: SparkSession) -> None:
    from pyspark_historian import conversions as df

    added = ROWS.filter(pc.equal(ROWS.column("op"), 0))
    stream = df.to_append_stream(_frame(spark, added))

    assert "op" not in stream.columns
    assert _plain(added) == _plain(df.from_append_stream(stream).toArrow())


@pytest.mark.parametrize(
    "convert, message",
    [
        (lambda df, rows: df.to_append_stream(rows), "takes rows back is no append stream: expected op 0"),
        (lambda df, rows: df.to_single_events(rows.where("op <> 3")), "-C and .C do not pair"),
        (lambda df, rows: df.from_row_kinds(rows.withColumnRenamed("op", "row_kind")), "not a row kind of Flink"),
        (lambda df, rows: df.to_odf(rows, KEY), "did not come before"),
        (
            lambda df, rows: df.to_row_kinds(rows.selectExpr("*", "op").drop("op").selectExpr("9 as op", "offset")),
            "found 9",
        ),
    ],
)
def test_what_a_form_cannot_say_stops_the_query(spark: SparkSession, convert: Any, message: str) -> None:
    from pyspark.errors import PySparkException

    from pyspark_historian import conversions as df

    with pytest.raises(PySparkException, match=message):
        convert(df, spark.createDataFrame(ROWS)).collect()


def test_projections_are_those_of_arrow(spark: SparkSession) -> None:
    from pyspark_historian.state import project_changelog

    half = [r["offset"] for r in ROWS.to_pylist() if r["op"] in (Op.APPEND, Op.CORRECT_TO)][40]
    gtids = pa.array([f"{UUID}:{n // 4 + 1}" for n in range(ROWS.num_rows)])
    added = {NAMES["w"]: AddedColumn(since=2, initial=7.5)}
    whole, _ = random_changelog(12, 60)
    whole = whole.set_column(1, "op", whole.column("op").cast(pa.int32()))
    cut = [r["offset"] for r in whole.to_pylist() if r["op"] != Op.CORRECT_FROM][-2]
    cases: list[tuple[pa.Table, tuple[str, ...], dict[str, Any]]] = [
        (ROWS, KEY, {}),
        (ROWS, KEY, {"until": half, "added": added}),
        (whole, (), {"until": cut}),
        (
            ROWS.append_column("_position", gtids).drop(["system_time"]),
            KEY,
            {"until": parse_position(f"{UUID}:1-20:23", "mysql")},
        ),
    ]

    for rows, key, options in cases:
        try:
            expected = state.project_changelog(rows, key, **options)
        except HistorianError:
            pytest.fail(f"choose another cut than {options}")
        found = project_changelog(_frame(spark, rows), key, **options).toArrow()
        assert expected.schema.names == found.schema.names
        assert _plain(expected, by=None) == _plain(found, by=None), options


CHANGES: list[tuple[str, Any]] = [
    *(("op", code) for code in (0, 1, 2, 3, 9, None)),
    *(("v", value) for value in (b"?", b"x")),
    *((name, None) for name in ("k", "offset", "event_time")),
    ("w", 9.5),
    ("k", "?"),
]


def _broken(profile: Profile) -> pa.Table:
    """Many changelogs of a few rows behind each other, each of other keys and with one cell changed."""
    random = Random(3)
    parts = []
    start = 65_536 - 7  # so that neighbours stand on both sides of a boundary between tasks
    for case in range(40):
        rows, _ = random_changelog(case, 6, profile)
        changed = rows.set_column(1, "op", rows.column("op").cast(pa.int32())).to_pylist()
        for row in changed:
            row["offset"] += start
            row["k"] = f"{case} {row['k']}"
        start += len(changed)
        name, value = random.choice([*CHANGES, ("offset", start + 1), ("k", f"{case} a")])
        random.choice(changed)[name] = value
        parts += changed
    fields = [pa.field(f.name, pa.int32() if f.name == "op" else f.type) for f in rows.schema]
    table = pa.Table.from_pylist(parts, pa.schema(fields))
    return table.sort_by("offset")


@pytest.mark.parametrize("profile, key", [(Profile.BINLOG, KEY), (Profile.ODF, KEY), (Profile.ODF, ())])
def test_findings_are_those_of_arrow(spark: SparkSession, profile: Profile, key: tuple[str, ...]) -> None:
    from pyspark_historian.validation import check, findings_of

    rows = _broken(profile)
    expected = validation.check(rows, key, profile=profile, first_offset=65_536)
    found = findings_of(check(_frame(spark, rows), key, profile=profile, first_offset=65_536))

    assert len({f.rule for f in expected}) >= 5
    assert sorted(map(str, expected)) == sorted(map(str, found))


def test_rows_that_lack_columns_are_told_and_are_no_state(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    from pyspark_historian.state import project_changelog
    from pyspark_historian.validation import check, findings_of

    lists = pa.array([["k"], *[None] * (ROWS.num_rows - 1)], pa.list_(pa.string()))
    rows = spark.createDataFrame(ROWS.append_column("absent", lists))

    assert ["image at offset 0: expected every column of the row, found absent: k"] == [
        str(finding) for finding in findings_of(check(rows, KEY))
    ]
    with pytest.raises(PySparkException, match="rows lack columns"):
        project_changelog(rows, KEY).collect()


def test_a_sound_changelog_has_no_findings(spark: SparkSession) -> None:
    from pyspark_historian.validation import check, findings_of

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    try:
        assert () == findings_of(check(_frame(spark, ROWS), KEY, former=_frame(spark, FORMER)), limit=3)
        assert () == findings_of(check(_frame(spark, ROWS)))
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    missing = check(_frame(spark, ROWS.drop(["schema_version"])), ("id",))
    assert ["columns", "columns"] == [finding.rule.value for finding in findings_of(missing)]


@pytest.mark.parametrize("strategy", strategies(), ids=lambda strategy: f"{type(strategy).__name__}")
def test_a_strategy_does_what_its_table_says(spark: SparkSession, strategy: Strategy) -> None:
    from pyspark_historian.merging import merge

    cases = [case for case in CASES if case.strategy == strategy]
    former = pa.concat_tables([table(case, case.former) for case in cases])
    batch = pa.concat_tables([table(case, case.batch) for case in cases])
    order = "at" if isinstance(strategy, UpsertStream | ChangelogStream) else None
    news = batch if order is None else batch.append_column(order, pa.array(range(batch.num_rows)))

    made = (
        merge(
            strategy,
            _frame(spark, news),
            _frame(spark, former),
            order=order,
            first_offset=7,
            system_time=SYSTEM,
            source_time=DEFAULT,
        )
        .toArrow()
        .sort_by("offset")
    )

    assert ["offset", "op", "system_time", *COLUMNS] == made.schema.names
    expected = pa.concat_tables([table(case, case.expected, default=DEFAULT) for case in cases])
    assert _plain(expected, by=None) == _plain(made.select(expected.schema.names), by=None)
    assert [*range(7, 7 + made.num_rows)] == made.column("offset").to_pylist()
    if not isinstance(strategy, Append):
        exact = made.set_column(2, "system_time", made.column("system_time").cast(batches.MS))
        exact = exact.set_column(3, "event_time", made.column("event_time").cast(batches.MS))
        assert () == validation.check(exact, ("case", "id", "part"), profile=Profile.ODF, former=former)
    if isinstance(strategy, ChangelogStream | Ledger | Append):
        ordered = batches.merge(strategy, batch, former, system_time=SYSTEM, source_time=DEFAULT)
        by = "id" if isinstance(strategy, ChangelogStream) else "event_time"
        assert ordered.column(by).to_pylist() == made.column(by).to_pylist()


@pytest.mark.parametrize(
    "strategy, batch, order, message",
    [
        (Snapshot(key=("id",)), "(1, 'a'), (1, 'b') as t(id, v)", None, "a key is in the batch twice.*found .*id.*1"),
        (Snapshot(key=("v", "id")), "(1, 'a'), (null, 'b') as t(id, v)", None, "a key of the batch is NULL"),
        (Ledger(key=("id",)), "(1, 'a'), (1, 'b') as t(id, v)", None, "two records that differ"),
        (UpsertStream(key=("id",)), "(1, 2, 1L) as t(id, op, at)", "at", "an upsert has another operation.*found 2"),
        (UpsertStream(key=("id",)), "(1, 0, null), (2, 0, 1L) as t(id, op, at)", "at", "a record has no order"),
        (UpsertStream(key=("id",)), "(1, 0, 1L) as t(id, op, at)", None, "a strategy and an order that do not fit"),
        (ChangelogStream(key=("id",)), "(1, 1, 1L) as t(id, op, at)", "at", "presence at offset 0: expected a row to take back"),
        (ChangelogStream(key=("id",)), "(1, 1, 'x') as t(id, op, at)", "at", "order is a whole number"),
        (Append(), "(1, timestamp'2026-01-01 00:00:00.000001Z') as t(id, event_time)", None, "finer than milliseconds"),
        (Append(), "(1, 'x') as t(id, event_time)", None, "an event time is a moment or a date"),
    ],
)  # fmt: skip
def test_a_batch_that_breaks_a_rule_is_refused(
    spark: SparkSession, strategy: Strategy, batch: str, order: str | None, message: str
) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from pyspark_historian.merging import merge

    with pytest.raises((HistorianError, PySparkException, Py4JJavaError), match=message):
        merge(strategy, spark.sql(f"select * from values {batch}"), order=order).collect()


def test_columns_come_and_go(spark: SparkSession) -> None:
    from pyspark_historian.merging import merge
    from pyspark_historian.state import project_changelog

    strategy = Snapshot(key=("id",))
    first = merge(strategy, spark.sql("select * from values (1, 'a'), (2, null) as t(id, v)"), system_time=SYSTEM)
    state = project_changelog(first, ("id",))
    news = spark.sql("select * from values (1, 5L), (2, null), (3, 6L) as t(id, n)")

    changes = merge(strategy, news, state, system_time=SYSTEM).toArrow()

    assert ["event_time", "id", "v", "n"] == changes.schema.names[3:]
    assert [(0, 3, None, 6), (2, 1, "a", None), (3, 1, None, 5)] == sorted(
        (row["op"], row["id"], row["v"], row["n"]) for row in changes.to_pylist()
    )
