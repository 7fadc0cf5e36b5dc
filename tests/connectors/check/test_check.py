"""Preflight without a server: grants are read, and binlog files are looked at."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from connectors.check import CheckResult, require, run_checks
from connectors.check.privileges import Grants, parse_grants
from connectors.check.rules import rule_checks
from connectors.check.shards import shard_checks
from connectors.config import PipelineConfig, SinkConfig, load_config
from connectors.tracking.sources import make_tracker
from historian.errors import SourceError
from historian.names import TableName
from historian.schema.snapshots import Column, ColumnType, Snapshot
from lakes.sink_lab import INT

ROOT = Path(__file__).parents[3]
SHOP = ROOT / "examples" / "shop" / "binlog"


@pytest.mark.parametrize(
    "lines, expected",
    [
        (
            ["GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `cdc`@`%`"],
            Grants(everywhere=frozenset(("SELECT", "REPLICATION SLAVE", "REPLICATION CLIENT")), select_on=()),
        ),
        (
            ["GRANT ALL PRIVILEGES ON *.* TO 'cdc'@'%' IDENTIFIED BY PASSWORD '*A' WITH GRANT OPTION"],
            Grants(everywhere=frozenset(("ALL PRIVILEGES",)), select_on=()),
        ),
        (
            ["GRANT USAGE ON *.* TO `a b`@`%`", "GRANT SELECT ON `shop`.* TO `a b`@`%`", "GRANT `r`@`%` TO `a b`@`%`"],
            Grants(everywhere=frozenset(("USAGE",)), select_on=("shop.*",)),
        ),
        (
            ["GRANT SELECT (`a`, `b`), INSERT ON `shop`.`t` TO `c`@`%`", "GRANT INSERT ON `log`.* TO `c`@`%`"],
            Grants(everywhere=frozenset(), select_on=("shop.t",)),
        ),
        (
            ["GRANT SELECT ON *.* TO `c`@`%`", "REVOKE SELECT ON `secret`.* FROM `c`@`%`"],
            Grants(everywhere=frozenset(("SELECT",)), select_on=(), select_not_on=("secret",)),
        ),
        (["GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `c`@`%`"], Grants(everywhere=frozenset(), select_on=())),
    ],
)
def test_grants_are_read_as_servers_print_them(lines: list[str], expected: Grants) -> None:
    assert parse_grants(lines) == expected


def test_all_privileges_hold_every_privilege() -> None:
    assert parse_grants(["GRANT ALL PRIVILEGES ON *.* TO `a`@`%`"]).has("BINLOG MONITOR")
    assert not parse_grants(["GRANT ALL PRIVILEGES ON `shop`.* TO `a`@`%`"]).has("BINLOG MONITOR")


def _files(directory: Path, numbers: Sequence[int], more: str = "") -> PipelineConfig:
    """A configuration of copies of the example's first binlog file under these numbers."""
    (directory / "log").mkdir()
    first = min(SHOP.glob("*.0*"))
    for number in numbers:
        shutil.copy(first, directory / "log" / f"binlog.{number:06d}")
    file = directory / "pipeline.yaml"
    file.write_text(f"name: shop\nsource:\n  type: binlog-files\n  directory: log\n{more}")
    return load_config(file)


def _one(results: Sequence[CheckResult], name: str) -> CheckResult:
    (found,) = [result for result in results if result.name == name]
    return found


def test_files_that_make_a_log_pass(tmp_path: Path) -> None:
    results = run_checks(_files(tmp_path, [1]))

    assert [(result.name, result.status) for result in results] == [("binlog files", "ok"), ("start position", "ok")]
    require(_load_again(tmp_path))


def _load_again(directory: Path) -> PipelineConfig:
    return load_config(directory / "pipeline.yaml")


def test_a_gap_between_files_is_named(tmp_path: Path) -> None:
    config = _files(tmp_path, [1, 3])

    gap = _one(run_checks(config), "gaps")

    assert gap == CheckResult(
        name="gaps",
        status="failed",
        found="binlog.000003 follows binlog.000001",
        expected="consecutive numbers",
        mend="add the files between them",
    )


def test_files_of_another_flavor_are_named(tmp_path: Path) -> None:
    found = _one(run_checks(_files(tmp_path, [1], "  flavor: mariadb\n")), "flavor")

    assert (found.status, found.expected, found.mend) == ("failed", "mariadb", "source.flavor: mysql")


def test_a_file_that_is_no_binlog_is_named(tmp_path: Path) -> None:
    (tmp_path / "binlog.000001").write_bytes(b"no binlog at all")
    file = tmp_path / "pipeline.yaml"
    file.write_text("name: shop\nsource: {type: binlog-files, files: [binlog.000001]}\n")

    (found,) = run_checks(load_config(file))

    assert (found.name, found.status) == ("binlog files", "failed")
    assert found.found.startswith(f"not a binlog file ({tmp_path}/binlog.000001, offset 0); expected fe 62 69 6e")


def test_a_start_that_is_not_in_the_files_is_named(tmp_path: Path) -> None:
    found = _one(run_checks(_files(tmp_path, [1], "  start: binlog.000009:4\n")), "start position")

    assert (found.status, found.mend) == ("failed", "choose another source.start")
    assert "binlog.000009" in found.found
    assert "heal" not in found.found  # there is no connector yet that could be healed


def test_a_run_is_refused_with_every_failed_check(tmp_path: Path) -> None:
    config = _files(tmp_path, [1, 3], "  flavor: mariadb\n")

    with pytest.raises(SourceError) as caught:
        require(config)

    text = str(caught.value)
    assert text.startswith(
        "the source does not meet what a right copy needs (shop); found \n  flavor: binlog.000001 is of"
    )
    assert (
        "\n  gaps: binlog.000003 follows binlog.000001\n    expected consecutive numbers\n    mend: add the files"
        in text
    )
    assert text.endswith("Next: mend it, then look again with `historian check`")


def test_a_server_that_does_not_answer_is_one_failed_check(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text("name: shop\nsource: {type: mysql, host: 127.0.0.1, port: 1, user: cdc}\n")

    (found,) = run_checks(load_config(file))

    assert (found.name, found.status) == ("server", "failed")
    assert found.found.startswith("the server cannot be reached (cdc@127.0.0.1:1)")
    with pytest.raises(SourceError) as caught:
        require(load_config(file))
    assert caught.value.retryable


def test_rules_that_do_not_fit_the_tables_fail_and_names_of_no_column_are_told() -> None:
    tables_settings = (
        ("shop.*", (("mask", (("n", "x"), ("card", "*"))), ("exclude", ("ID",)))),
        ("shop.log", (("mirror", None), ("truncate", (("n", 3), ("nope", 3))))),
        ("other.*", (("mask", (("nowhere", "*"),)),)),
    )
    sink = SinkConfig(type="delta", settings={"path": "lake", "tables": tables_settings})
    columns = (Column(id=1, name="id", type=INT), Column(id=2, name="n", type=INT))
    tables = [
        Snapshot(table_id=at, name=TableName("shop", name), columns=columns, primary_key=(1,), charset="", collation="")
        for at, name in enumerate(("t", "log"), 1)
    ]

    found = list(rule_checks([SinkConfig(type="console"), sink], tables))

    assert [(r.status, r.name, r.found) for r in found] == [
        ("failed", "columns of shop.t", "columns.exclude.id: a mirror and a history need the key; it can be hashed"),
        ("failed", "columns of shop.t", "mask.n: 'x' is no int"),
        ("failed", "columns of shop.log", "mask.n: 'x' is no int"),
        ("warning", "sinks[1].tables['shop.*'].mask", "no table that matches has card"),
        ("warning", "sinks[1].tables['shop.log'].truncate", "no table that matches has nope"),
    ]


def test_shards_that_are_not_alike_are_told() -> None:
    def table(at: int, database: str, kind: ColumnType = INT, *, key: bool = True) -> Snapshot:
        column = Column(id=at, name="id", type=kind)
        name = TableName(database, "t")
        return Snapshot(
            table_id=at, name=name, columns=(column,), primary_key=(at,) if key else (), charset="", collation=""
        )

    into = ("into", ("shop.t", (("shard", "{database}"),)))
    tables_settings = (("shop_*.t", (into,)), ("shop_e.*", (("mirror_deletes", "soft"),)))
    sink = SinkConfig(type="delta", settings={"path": "lake", "tables": tables_settings})
    alike = [table(1, "shop_a"), table(2, "shop_b", ColumnType(name="bigint")), table(3, "other", key=False)]
    others = [table(4, "shop_c", key=False), table(5, "shop_d", ColumnType(name="date")), table(6, "shop_e")]

    found = list(shard_checks([SinkConfig(type="console"), sink], alike))
    wrong = list(shard_checks([sink], [*alike, *others]))

    assert [(r.status, r.name, r.found) for r in found] == [("ok", "shards of shop.t", "2")]
    assert [(r.status, r.found) for r in wrong] == [
        ("warning", "a shard has no primary key: shard shop_c.t"),
        (
            "warning",
            "a column has different types in the shards, and neither holds every value of the other: shard shop_d.t.id",
        ),
        ("warning", "sinks[].tables has other settings for shop_e.t"),
    ]


def test_log_of_plans_that_were_made_and_not_written_has_to_be_there(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    shutil.copytree(SHOP, directory)
    file = tmp_path / "pipeline.yaml"
    file.write_text("name: shop\nsource: {type: binlog-files, directory: log}\nhistory: {store: 'sqlite:///s.db'}\n")
    config = load_config(file)
    with closing(make_tracker(config)) as tracker:
        plans = list(tracker.plans_until(None, limit_bytes=100_000))
        tracker.done_with("", plans[0].number)
    files = sorted(directory.glob("*.0*"))
    assert plans[0].end.file == files[0].name != plans[-1].end.file
    files[0].unlink()

    found = _one(run_checks(config), "start position")

    assert (found.status, "historian heal" in found.mend) == ("failed", True), found
