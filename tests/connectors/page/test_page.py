"""The page's data: lanes and versions as the history has them, and text that stays text. No server, no Spark, no browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from connectors.cli import app
from connectors.cli.terminal.outcome import ExitCode
from connectors.config import load_config
from connectors.monitoring.state import connector_state
from connectors.page.authors import Authors
from connectors.page.html import written_page
from connectors.page.page import Page
from connectors.page.timelines import timeline
from historian.errors import StoreError
from historian.history.explain import explained
from historian.history.history import History
from historian.history.timeline import Gap
from historian.names import TableName
from historian.schema.edits import DropTable, RenameColumn
from historian.store import Store
from models.timelines import A, capture, create, position, random_log, statement, table
from models.timelines import snapshot as snapshot_of

NASTY = "</script><script>alert(1)</script><!-- \u2028 \u2029 ]]> & \" ' \x00 \x1b[31m `x`"


@settings(max_examples=40)
@given(st.randoms(use_true_random=False))
def test_lanes_are_the_columns_of_each_version(random: Random) -> None:
    history = History.of(random_log(random, 25).entries)

    for table_id in history.table_ids:
        versions = history.versions_of(table_id)
        made = timeline(versions, lambda *_: "")

        for index, version in enumerate(versions):
            expected = () if version.snapshot is None else version.snapshot.columns
            found = {}
            for lane in made.lanes:
                reached = [part for part in lane.parts if part[0] <= index]
                if reached and reached[-1][1] is not None:
                    found[lane.column_id] = reached[-1][1:]
            assert {column.id: (column.name, str(column.type)) for column in expected} == found
            changes = [
                [each.change, each.column, each.before, each.after] for each in explained(history, version).changes
            ]
            if version.unknown is None:
                assert changes == made.versions[index][6]
        assert [version.number for version in versions] == [row[0] for row in made.versions]
        # A lane has a part where something changes, and nowhere else.
        assert all(a[1:] != b[1:] for lane in made.lanes for a, b in zip(lane.parts, lane.parts[1:], strict=False))


def test_each_table_that_ever_was_has_a_number() -> None:
    entries = random_log(Random(5), 40).entries
    history = History.of(entries)

    expected = {version.table_id for name in history.tables for version in history.versions(name)}

    assert expected <= set(history.table_ids)
    assert all(history.read_versions(table_id) == history.versions_of(table_id) for table_id in history.table_ids)
    assert all(history.versions_of(table_id) for table_id in history.table_ids)


class _Parsed(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: dict[str, str] = {}
        self._now = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._now = f"{tag} {dict(attrs).get('id', '')}"

    def handle_endtag(self, tag: str) -> None:
        self._now = f"behind {tag}"

    def handle_data(self, data: str) -> None:
        self.texts[self._now] = self.texts.get(self._now, "") + data


def test_what_stands_in_the_data_ends_no_element_and_names_no_part() -> None:
    plain, nasty = written_page({"tables": []}, []), written_page({"tables": [NASTY, "@@script@@"]}, [])

    assert _Parsed(plain).tags == _Parsed(nasty).tags
    assert "\u2028" not in nasty
    assert json.loads(_Parsed(nasty).texts["script data"]) == {"tables": [NASTY, "@@script@@"], "blobs": []}


def test_only_the_pages_own_script_and_style_are_let_in() -> None:
    text = written_page({"tables": []}, [])
    parsed = _Parsed(text)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)

    for element, kind in (("script ", "script-src"), ("style ", "style-src")):
        digest = base64.b64encode(hashlib.sha256(parsed.texts[element].encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", parsed.texts["script "])


KNOWN_PT = (TableName("shop", "t"), TableName("shop", "_t_new"), TableName("shop", "pt_osc_shop_t_ins"))
KNOWN_SPIRIT = (TableName("shop", "t"), TableName("shop", "_t_new"), TableName("shop", "_t_chkpnt"))


@pytest.mark.parametrize(
    "text, known, expected",
    [
        ("ALTER TABLE t ADD a INT", (), ""),
        ("rename /* gh-ost */ table `shop`.`t` to `shop`.`_t_del`, `shop`.`_t_gho` to `shop`.`t`", (), "gh-ost"),
        ("RENAME TABLE t TO _t_del, _t_gho TO t", (), "gh-ost"),
        ("RENAME TABLE `shop`.`t` TO `shop`.`_t_old`, `shop`.`_t_new` TO `shop`.`t`", KNOWN_PT, "pt-online-schema-change"),
        ("RENAME TABLE `t` TO `_t_old`, `_t_new` TO `t`", KNOWN_SPIRIT, "spirit"),
        ("RENAME TABLE `t` TO `_t_old`, `_t_new` TO `t`", (), "pt-online-schema-change or spirit"),
        (f"RENAME TABLE t TO _vt_hld_{'0' * 32}_20260102030405_", (), "vitess"),
        ("CREATE TABLE new_old (is_new INT, is_old INT)", (), ""),
        ("ALTER TABLE t ADD `" + NASTY.replace("`", "``") + "` INT", (), ""),
    ],
)  # fmt: skip
def test_a_tool_is_known_by_what_it_writes(text: str, known: tuple[TableName, ...], expected: str) -> None:
    assert Authors(known)(text, "shop") == expected


def _config(directory: Path) -> Path:
    path = directory / "shop.yaml"
    path.write_text(
        f"""
name: shop
source: {{type: mysql, host: 127.0.0.1, port: 1, user: cdc, tables: ["shop.*"]}}
history: {{store: "sqlite:///{directory}/store.db"}}
sinks: [{{type: delta, path: "{directory}/lake"}}]
"""
    )
    return path


def _read(text: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    data = json.loads(_Parsed(text).texts["script data"])
    return data, [json.loads(zlib.decompress(base64.b64decode(blob))) for blob in data["blobs"]]


def test_a_page_grows_with_its_history_and_says_what_is_stopped(tmp_path: Path) -> None:
    config = load_config(_config(tmp_path))
    page = Page(config)
    with closing(Store.open(config.history.store)) as store:
        first = capture(create(1, "t", "a", "b"), create(2, "other", "x", first=11))
        store.record([first], position(f"{A}:1"))
        before, _ = _read(page.html(store, connector_state(config, store)))
        renamed = statement(2, f"{A}:2", RenameColumn(table=table("t"), column_id=2, old="b", new=NASTY))
        store.record([renamed], position(f"{A}:1-2"))
        after, timelines = _read(page.html(store, connector_state(config, store)))

    assert [("shop.t", 1), ("shop.other", 1)] == [(each["name"], each["versions"]) for each in before["tables"]]
    assert [("shop.t", 2), ("shop.other", 1)] == [(each["name"], each["versions"]) for each in after["tables"]]
    assert ["no targets", "no targets"] == [each["state"] for each in after["tables"]]
    assert [[1, [0, "a", "int"]], [2, [0, "b", "int"], [1, NASTY, "int"]]] == timelines[0]["lanes"]
    assert [["renamed", NASTY, "b", NASTY]] == timelines[0]["versions"][1][6]
    assert after["lag"].startswith("not known: ")
    assert (2, snapshot_of(1, "t", "a", "b").name.table) == (after["entries"], "t")


def test_of_many_tables_those_are_listed_that_are_not_up_to_date_and_those_that_changed_last(tmp_path: Path) -> None:
    config = load_config(_config(tmp_path))
    page, whole = Page(config, most=3), Page(config)
    with closing(Store.open(config.history.store)) as store:
        store.record([capture(*(create(i, f"t{i}", "a", first=i) for i in range(1, 8)))], position(f"{A}:1"))
        changes = [
            statement(number, f"{A}:{number}", RenameColumn(table=table(f"t{i}"), column_id=i, old="a", new="b"))
            for number, i in enumerate((6, 1, 5, 3), 2)
        ]
        store.record(changes, position(f"{A}:1-5"))
        state = connector_state(config, store)
        targets = [_target(f"shop.t{i}", f"{tmp_path}/lake/shop_t{i}") for i in range(1, 8)]
        quiet, _ = _read(page.html(store, state | {"targets": targets}))
        targets[6]["plan"] -= 1
        behind, blobs = _read(page.html(store, state | {"targets": targets}))
        stopped = [{"table": "shop.t2", "position": "", "reason": "a test"}]
        also, _ = _read(page.html(store, state | {"targets": targets, "stopped": stopped}))
        everything, _ = _read(whole.html(store, state | {"targets": targets}))

    names = [[each["name"] for each in data["tables"]] for data in (quiet, behind, also, everything)]
    assert [
        ["shop.t1", "shop.t3", "shop.t5"],
        ["shop.t3", "shop.t5", "shop.t7"],
        ["shop.t2", "shop.t3", "shop.t7"],
    ] == names[:3]
    assert [f"shop.t{i}" for i in range(1, 8)] == names[3]
    assert [4, 4, 4, 0] == [data["left_out"] for data in (quiet, behind, also, everything)]
    assert [2, 2, 1] == [len(blob["versions"]) for blob in blobs]
    # What all hold is told of all.
    assert 7 == quiet["cut"]["targets"]


def test_a_table_that_is_behind_again_is_listed_without_another_look_at_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config(_config(tmp_path))
    page = Page(config, most=2)
    looks: list[int] = []
    read = Store.history

    def counted(store: Store) -> History:
        looks.append(1)
        return read(store)

    monkeypatch.setattr(Store, "history", counted)

    def listed(*behind: int) -> list[tuple[str, int]]:
        """The tables that the page lists, and how many versions each has."""
        targets = [_target(f"shop.t{i}", f"{tmp_path}/lake/shop_t{i}") for i in range(1, 7)]
        for i in behind:
            targets[i - 1]["plan"] -= 1
        data, _ = _read(page.html(store, state | {"targets": targets}))
        return [(each["name"], each["versions"]) for each in data["tables"]]

    with closing(Store.open(config.history.store)) as store:
        store.record([capture(*(create(i, f"t{i}", "a", first=i) for i in range(1, 7)))], position(f"{A}:1"))
        state = connector_state(config, store)
        looks.clear()
        quiet = listed()
        first = [listed(1), listed(2)]
        assert 3 == len(looks)
        again = [listed(1), listed(2), listed(1, 2)]
        assert 3 == len(looks)
        renamed = statement(2, f"{A}:2", RenameColumn(table=table("t1"), column_id=1, old="a", new="b"))
        store.record([renamed], position(f"{A}:1-2"))
        grown = [listed(2), listed(1)]

    assert [("shop.t5", 1), ("shop.t6", 1)] == quiet
    assert [[("shop.t1", 1), ("shop.t6", 1)], [("shop.t2", 1), ("shop.t6", 1)]] == first == again[:2]
    assert [("shop.t1", 1), ("shop.t2", 1)] == again[2]
    assert [[("shop.t1", 2), ("shop.t2", 1)], [("shop.t1", 2), ("shop.t6", 1)]] == grown


def test_a_page_is_made_again_after_a_look_at_the_history_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config(_config(tmp_path))
    page = Page(config, most=1)
    with closing(Store.open(config.history.store)) as store:
        store.record([capture(*(create(i, f"t{i}", "a", first=i) for i in range(1, 4)))], position(f"{A}:1"))
        state = connector_state(config, store)
        targets = [_target(f"shop.t{i}", f"{tmp_path}/lake/shop_t{i}") for i in range(1, 4)]
        quiet, _ = _read(page.html(store, state | {"targets": targets}))
        targets[0]["plan"] -= 1
        with monkeypatch.context() as patch:
            patch.setattr(Store, "history", _raising(StoreError("away")))
            with pytest.raises(StoreError, match="away"):
                page.html(store, state | {"targets": targets})
        behind, _ = _read(page.html(store, state | {"targets": targets}))

    assert [["shop.t3"], ["shop.t1"]] == [[each["name"] for each in data["tables"]] for data in (quiet, behind)]


def _raising(error: Exception) -> Callable[..., Any]:
    def raised(*_: object) -> Any:
        raise error

    return raised


def test_what_changed_last_is_told_without_its_versions() -> None:
    log = random_log(Random(9), 40)
    history = History.of(log.entries)
    with closing(Store.open("sqlite://")) as store:
        store.record(log.entries[:20], log.entries[19].position)
        read = store.history()
    for entry in log.entries[20:]:
        read.record(entry)

    for known in (history, read):
        assert [
            (i, versions[-1].number, versions[-1].name, {version.name for version in versions})
            for i in history.table_ids
            for versions in [history.versions_of(i)]
        ] == [(i, number, names[-1], {*names}) for i, number, names in known.changed()]


def test_versions_that_are_read_once_are_the_same_and_not_kept(tmp_path: Path) -> None:
    entries = random_log(Random(5), 40).entries
    with closing(Store.open(f"sqlite:///{tmp_path}/store.db")) as store:
        store.record(entries, entries[-1].position)
        once, often = store.history(), store.history()

    for table_id in often.table_ids:
        assert once.read_versions(table_id) == often.versions_of(table_id)
    assert once.read_versions(1)[0] is not once.read_versions(1)[0]


def test_a_page_before_the_first_run_says_so(tmp_path: Path) -> None:
    config = load_config(_config(tmp_path))

    data, timelines = _read(Page(config).html(None, connector_state(config, None)))

    assert ([], [], None, 0) == (data["tables"], timelines, data["plan"], data["entries"])


def test_a_lake_that_cannot_be_read_or_found_is_named(tmp_path: Path) -> None:
    path = _config(tmp_path)
    path.write_text(path.read_text().replace(f'path: "{tmp_path}/lake"', "catalog: spark_catalog.lake"))
    config = load_config(path)

    data, _ = _read(Page(config).html(None, connector_state(config, None)))

    assert data["unread"] == "where the lake of catalog spark_catalog.lake is was not noted yet; the next run does"


@contextmanager
def _in_s3(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The lake below *directory* in a bucket too; gives the endpoint, which nobody is told of yet."""
    from moto.server import ThreadedMotoServer

    _write_table(directory / "lake" / "shop_t", {"id": 1})
    _write_table(directory / "lake" / "historian_tables", _recorded(1, "ignore"))
    monkeypatch.setenv("HISTORIAN_S3A", "{}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        endpoint = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        files = pafs.S3FileSystem(
            access_key="key", secret_key="secret", endpoint_override=endpoint, allow_bucket_creation=True
        )
        files.create_dir("page-lake")
        pafs.copy_files(str(directory / "lake"), "page-lake/lake", destination_filesystem=files)
        yield endpoint
    finally:
        server.stop()


@pytest.mark.parametrize("sink", ["path: s3a://page-lake/lake", "catalog: spark_catalog.lake"])
def test_a_lake_in_s3_and_one_of_a_catalog_tell_what_one_on_a_disk_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: str
) -> None:
    path = _config(tmp_path)
    path.write_text(path.read_text().replace(f'path: "{tmp_path}/lake"', sink))
    config = load_config(path)
    with _in_s3(tmp_path, monkeypatch) as endpoint, closing(Store.open(config.history.store)) as store:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        store.record([capture(create(1, "t", "a"))], position(f"{A}:1"))
        state = connector_state(config, store) | {"targets": [_target("shop.t", "s3a://page-lake/lake/shop_t")]}
        data, _ = _read(Page(config).html(store, state))

    (row,) = data["tables"]
    assert ("", [[1, 2, "add_column", "ignore"]]) == (data["unread"], row["decisions"])
    assert [(0, 1, 1)] == [(each["version"], each["files"], each["rows"]) for each in row["targets"]]


def test_the_command_finds_a_lake_in_s3_by_the_settings_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _config(tmp_path)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with _in_s3(tmp_path, monkeypatch) as endpoint:
        conf = f"run: {{spark: {{conf: {{spark.hadoop.fs.s3a.endpoint: '{endpoint}'}}}}}}\n"
        path.write_text(path.read_text().replace(f"{tmp_path}/lake", "s3a://page-lake/lake") + conf)
        with closing(Store.open(load_config(path).history.store)) as store:
            store.record([capture(create(1, "t", "a"))], position(f"{A}:1"))
        done = CliRunner().invoke(app, ["page", str(path), "--out", str(tmp_path)])

    assert 0 == done.exit_code, done.output
    data, _ = _read((tmp_path / "index.html").read_text(encoding="utf-8"))
    (row,) = data["tables"]
    assert ("", [[1, 2, "add_column", "ignore"]]) == (data["unread"], row["decisions"])


def test_a_dropped_table_keeps_its_own_targets_and_decisions_beside_one_of_its_name(tmp_path: Path) -> None:
    path = _config(tmp_path)
    config = load_config(path)
    lake = tmp_path / "lake"
    _write_table(
        lake / "historian_tables",
        _recorded(1, "keep") | {"dropped": 2, "changelog": "shop_t"},
        _recorded(2, "ignore") | {"changelog": "shop_t__t2"},
    )
    targets = [
        _target("shop.t", f"{lake}/shop_t", ended="dropped in plan 2"),
        _target("shop.t", f"{lake}/shop_t__t2"),
    ]
    with closing(Store.open(config.history.store)) as store:
        store.record([capture(create(1, "t", "a"))], position(f"{A}:1"))
        dropped = statement(2, f"{A}:2", DropTable(table=table("t"), table_id=1))
        store.record([dropped, statement(3, f"{A}:3", create(2, "t", "a", first=2))], position(f"{A}:1-3"))
        state = connector_state(config, store) | {"targets": targets}
        data, _ = _read(Page(config).html(store, state))

    assert {
        1: (["shop_t"], [[1, 2, "add_column", "keep"]]),
        2: (["shop_t__t2"], [[1, 2, "add_column", "ignore"]]),
    } == {row["id"]: ([target["target"] for target in row["targets"]], row["decisions"]) for row in data["tables"]}


def _recorded(table_id: int, action: str) -> dict[str, Any]:
    """A row of `historian_tables`."""
    names = ("changelog", "mirror", "history", "former_mirror", "former_history")
    evolved = f'{{"upto":1,"made":[[1,2,"add_column","{action}"]]}}'
    row = {"table_id": table_id, "name": "shop.t", "dropped": 0, "stopped_in": 0, "evolved": evolved}
    return row | dict.fromkeys(names, "")


def _target(table: str, path: str, ended: str | None = None) -> dict[str, Any]:
    """A row of a connector's state."""
    facts = {
        "kind": "changelog",
        "plan": 1,
        "position": "",
        "made": None,
        "behind": None,
        "writer": "",
        "stopped": None,
    }
    return facts | {"table": table, "target": path.rpartition("/")[2], "path": path, "ended": ended}


def test_a_page_that_cannot_be_made_or_written_says_why(tmp_path: Path) -> None:
    path = _config(tmp_path)
    taken = tmp_path / "taken"
    taken.write_text("")

    early = CliRunner().invoke(app, ["page", str(path), "--out", str(tmp_path / "out")])
    with closing(Store.open(load_config(path).history.store)) as store:
        store.record([capture(create(1, "t", "a"))], position(f"{A}:1"))
    refused = CliRunner().invoke(app, ["page", str(path), "--out", str(taken)])
    written = CliRunner().invoke(app, ["page", str(path), "--out", str(tmp_path / "out")])

    assert (ExitCode.STORE, True) == (early.exit_code, "`historian run` starts it" in early.stderr)
    assert (ExitCode.USAGE, True) == (refused.exit_code, f"--out (got {taken})" in refused.stderr)
    assert (ExitCode.OK, ["index.html"]) == (written.exit_code, [file.name for file in (tmp_path / "out").iterdir()])


def test_repairs_gaps_and_decisions_are_told(tmp_path: Path) -> None:
    path = _config(tmp_path)
    config = load_config(path)
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    repair = dict.fromkeys(("rows_changed", "appended", "retracted", "corrected"), 1) | {"rows_read": 9, "plan": 3}
    repair |= {"table_id": 1, "table": "shop.t", "reason": NASTY, "position": "b.1:4", "system_time": when}
    _write_table(tmp_path / "lake" / "historian_repairs", repair)
    evolved = '{"upto":1,"made":[[1,2,"add_column","ignore"]]}'
    record = {"table_id": 1, "name": "shop.t", "stopped_in": 0, "evolved": evolved}
    _write_table(tmp_path / "lake" / "historian_tables", record)
    gap = Gap(start=position(f"{A}:1"), end=position(f"{A}:1-2"), reason=NASTY)
    with closing(Store.open(config.history.store)) as store:
        store.record([capture(create(1, "t", "a"))], position(f"{A}:1-2"), [gap])
        data, _ = _read(Page(config).html(store, connector_state(config, store)))
        (tmp_path / "lake" / "historian_tables" / "_delta_log" / f"{0:020}.json").rename(tmp_path / "away")
        broken, _ = _read(Page(config).html(store, connector_state(config, store)))

    assert [("shop.t", NASTY, 9, "2026-01-02T03:04:05+00:00")] == [
        (each["table"], each["reason"], each["rows_read"], each["system_time"]) for each in data["repairs"]
    ]
    assert [[str(gap.start), str(gap.end), NASTY]] == data["gaps"]
    (table_row,) = data["tables"]
    assert (1, [[1, 2, "add_column", "ignore"]]) == (table_row["decided_upto"], table_row["decisions"])
    assert ("", []) == (data["unread"], broken["tables"][0]["decisions"])


def _write_table(path: Path, *rows: dict[str, Any]) -> None:
    """A Delta table of some rows."""
    (path / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path / "a.parquet")
    add = {"path": "a.parquet", "size": (path / "a.parquet").stat().st_size, "stats": f'{{"numRecords": {len(rows)}}}'}
    (path / "_delta_log" / f"{0:020}.json").write_text(json.dumps({"add": add}))
