"""``historian changelog merge``: each strategy, batch after batch, and what it refuses."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from connectors.cli import app
from connectors.cli.changelogs.merge import STRATEGIES
from connectors.cli.terminal.outcome import ExitCode
from historian.changelog import validation
from historian.changelog.validation import Profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = {name: ["--key", "id"] if "key" in takes else [] for name, (_, takes) in STRATEGIES.items()}
MS = pa.timestamp("ms", tz="UTC")
# Two batches of each strategy as (id, v), with op and order behind them, and the rows that they give as (offset, op, id, v).
BATCHES: dict[str, tuple[list[Any], list[Any], list[Any], list[Any]]] = {
    "snapshot": (
        [(1, "a"), (2, "b"), (3, None)],
        [(2, "c"), (3, None), (4, "d")],
        [(0, 0, 1, "a"), (1, 0, 2, "b"), (2, 0, 3, None)],
        [(3, 1, 1, "a"), (4, 2, 2, "b"), (5, 3, 2, "c"), (6, 0, 4, "d")],
    ),
    "upsert": (
        [(1, "a", 0, 1), (1, "b", 0, 2), (2, "c", 0, 3)],
        [(1, None, 1, 4), (2, "d", 0, 5), (9, None, 1, 6)],
        [(0, 0, 1, "b"), (1, 0, 2, "c")],
        [(2, 1, 1, "b"), (3, 2, 2, "c"), (4, 3, 2, "d")],
    ),
    "changelog": (
        [(1, "a", 0, 1), (1, "a", 2, 2), (1, "b", 3, 3)],
        [(1, "b", 1, 4), (2, "c", 0, 5)],
        [(0, 0, 1, "a"), (1, 2, 1, "a"), (2, 3, 1, "b")],
        [(3, 1, 1, "b"), (4, 0, 2, "c")],
    ),
    "ledger": (
        [(1, "a"), (2, "b")],
        [(2, "z"), (3, "c")],
        [(0, 0, 1, "a"), (1, 0, 2, "b")],
        [(2, 0, 3, "c")],
    ),
    "append": (
        [(1, "a")],
        [(1, "a")],
        [(0, 0, 1, "a")],
        [(1, 0, 1, "a")],
    ),
}


def _run(strategy: str, *words: str | Path) -> Result:
    return CliRunner().invoke(app, ["changelog", "merge", strategy, *map(str, words)])


def _batch(path: Path, rows: list[Any], *names: str) -> Path:
    """Parquet files of *rows*; columns behind id and v are op and at."""
    names = names or ("id", "v", "op", "at")[: len(rows[0])]
    kinds = {"id": pa.int64(), "op": pa.int32(), "at": pa.int64()}
    columns = [
        pa.array(values, kinds.get(name, pa.string()))
        for name, values in zip(names, zip(*rows, strict=True), strict=True)
    ]
    path.mkdir()
    pq.write_table(pa.table(columns, names=list(names)), path / "0.parquet")
    return path


def _rows(path: Path) -> list[Any]:
    found = pq.read_table(path).sort_by("offset").to_pylist()
    return [(row["offset"], row["op"], row["id"], row["v"]) for row in found]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_strategy_merges_batch_after_batch(spark: SparkSession, strategy: str, tmp_path: Path) -> None:
    first, second, expected, then = BATCHES[strategy]
    options = [*KEYS[strategy], *(["--order", "at"] if len(first[0]) == 4 else [])]
    changes = tmp_path / "changes"

    began = _run(
        strategy, "--new", _batch(tmp_path / "1", first), *options, "--source-time", "2026-01-01", "--out", changes
    )
    went_on = _run(
        strategy, "--new", _batch(tmp_path / "2", second), "--into", changes, *options, "--out", tmp_path / "more"
    )

    assert (0, 0) == (began.exit_code, went_on.exit_code), began.output + went_on.output
    assert (expected, then) == (_rows(changes), _rows(tmp_path / "more"))
    both = [pq.read_table(path).sort_by("offset") for path in (changes, tmp_path / "more")]
    assert {datetime(2026, 1, 1, tzinfo=timezone.utc)} == set(both[0].column("event_time").to_pylist())
    assert [MS, MS] == [both[0].schema.field(name).type for name in ("system_time", "event_time")]
    key = ("id",) if KEYS[strategy] else ()
    assert () == validation.check(pa.concat_tables(both), key, profile=Profile.ODF, first_offset=0)


def test_columns_that_are_not_compared_make_no_change(spark: SparkSession, tmp_path: Path) -> None:
    first = _batch(tmp_path / "1", [(1, "a", "x"), (2, "b", "x")], "id", "v", "w")
    second = _batch(tmp_path / "2", [(1, "a", "y"), (2, "c", "y")], "id", "v", "w")

    began = _run("snapshot", "--new", first, "--key", "id", "--out", tmp_path / "changes")
    went_on = _run(
        "snapshot",
        "--new",
        second,
        "--into",
        tmp_path / "changes",
        "--key",
        "id",
        "--compare",
        "v",
        "--out",
        tmp_path / "more",
    )
    nothing = _run(
        "snapshot", "--new", first, "--into", tmp_path / "changes", "--key", "id", "--out", tmp_path / "nothing"
    )

    assert (0, 0, 0) == (began.exit_code, went_on.exit_code, nothing.exit_code), went_on.output + nothing.output
    assert [(2, 2, 2, "b"), (3, 3, 2, "c")] == _rows(tmp_path / "more")
    found = pq.read_table(tmp_path / "nothing")
    assert (0, pq.read_table(tmp_path / "more").schema.types) == (found.num_rows, found.schema.types)


def test_a_delta_changelog_takes_a_batch_with_a_column_more(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("select 1L as id, 'a' as v").write.format("delta").save(str(tmp_path / "1"))
    wider = _batch(tmp_path / "2", [(1, "a", "n")], "id", "v", "n")

    began = _run("snapshot", "--new", tmp_path / "1", "--key", "id", "--out", tmp_path / "changes")
    went_on = _run(
        "snapshot", "--new", wider, "--into", tmp_path / "changes", "--key", "id", "--out", tmp_path / "more"
    )

    assert (0, 0) == (began.exit_code, went_on.exit_code), began.output + went_on.output
    rows = spark.read.format("delta").load(str(tmp_path / "more")).orderBy("offset").collect()
    assert [(1, 2, None), (2, 3, "n")] == [(row.offset, row.op, row.n) for row in rows]


def test_a_changelog_that_a_log_made_is_not_gone_on_with(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(
        "select 0L as offset, 0 as op, timestamp '2026-01-01' as system_time, timestamp '2026-01-01' as event_time,"
        " 1L as schema_version, 1L as id, 'a' as v"
    ).write.format("delta").save(str(tmp_path / "changes"))
    batch = _batch(tmp_path / "batch", [(1, "b")], "id", "v")

    refused = _run(
        "snapshot", "--new", batch, "--into", tmp_path / "changes", "--key", "id", "--out", tmp_path / "more"
    )

    assert (ExitCode.SOURCE, True) == (refused.exit_code, "convert --to odf" in refused.stderr), refused.output
    assert not (tmp_path / "more").exists()


@pytest.mark.parametrize(
    "strategy, rows, options, code, said",
    [
        ("snapshot", [(1, "a"), (1, "b")], ["--key", "id"], ExitCode.SOURCE, "a key is in the batch twice"),
        ("snapshot", [(1, "a"), (None, "b")], ["--key", "v,id"], ExitCode.SOURCE, "a key of the batch is NULL"),
        ("snapshot", [(1, "a")], ["--key", "nope"], ExitCode.SOURCE, "columns are missing from the batch"),
        ("snapshot", [(1, "a")], ["--key", "id", "--compare", "x"], ExitCode.SOURCE, "columns are missing"),
        ("ledger", [(1, "a"), (1, "b")], ["--key", "id"], ExitCode.SOURCE, "two records that differ"),
        ("upsert", [(1, "a", 2, 1)], ["--key", "id", "--order", "at"], ExitCode.SOURCE, "an upsert has another operation"),
        ("upsert", [(1, "a", 0, 1)], ["--key", "id", "--order", "x"], ExitCode.SOURCE, "which record comes later"),
        ("changelog", [(1, "a", 1, 1)], ["--key", "id", "--order", "at"], ExitCode.SOURCE, "a row to take back"),
        ("snapshot", [(1, "a")], [], ExitCode.USAGE, "snapshot needs --key"),
        ("upsert", [(1, "a")], ["--key", "id"], ExitCode.USAGE, "upsert needs --order"),
        ("append", [(1, "a")], ["--key", "id"], ExitCode.USAGE, "append takes no --key"),
        ("ledger", [(1, "a")], ["--key", "id", "--compare", "v"], ExitCode.USAGE, "ledger takes no --compare"),
        ("replace", [(1, "a")], [], ExitCode.USAGE, "replace is not one of snapshot"),
    ],
)  # fmt: skip
def test_what_a_strategy_refuses_is_said(
    spark: SparkSession, tmp_path: Path, strategy: str, rows: list[Any], options: list[str], code: ExitCode, said: str
) -> None:
    refused = _run(strategy, "--new", _batch(tmp_path / "new", rows), *options, "--out", tmp_path / "out")

    text = " ".join(refused.stderr.replace("│", " ").split())
    assert (code, True) == (refused.exit_code, said in text), refused.output
    assert not (tmp_path / "out").exists()


def test_a_changelog_that_cannot_be_gone_on_with_is_said(spark: SparkSession, tmp_path: Path) -> None:
    batch = _batch(tmp_path / "new", [(1, "a")])
    options = ["--new", batch, "--key", "id", "--out", tmp_path / "out"]

    strange = _run("snapshot", "--into", batch, *options)
    nowhere = _run("snapshot", "--into", tmp_path / "none", *options)
    taken = _run("snapshot", "--new", batch, "--key", "id", "--out", batch)

    assert (ExitCode.SOURCE, True) == (strange.exit_code, "offset, op, event_time" in strange.stderr), strange.output
    assert (ExitCode.SOURCE, True) == (nowhere.exit_code, "no table is there" in nowhere.stderr), nowhere.output
    assert (ExitCode.SINK, True) == (taken.exit_code, "the result cannot be written" in taken.stderr), taken.output
