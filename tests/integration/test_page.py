"""The page of a real connector in a real browser: seen, clicked, typed into, and fed with names that want to be more than names."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import urllib.parse
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from browser.chromium import Tab, browsed
from connectors.cli import app
from connectors.config import load_config
from connectors.monitoring.endpoint import served
from connectors.pipeline.run import run
from databases.servers import free_port
from historian.schema.edits import RenameColumn
from historian.store import Store
from models.timelines import A, capture, create, position, statement, table
from replicas.first_copies import copying_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from databases.servers import Server

pytestmark = pytest.mark.server  # a browser is fetched with the servers

NASTY = "<img src=x onerror=alert(1)></script>'\"&"
WIDTHS = (320, 768, 1920)


@pytest.fixture(scope="module")
def connector(mysql9: Server, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a connector with a past."""
    mysql9.clear()
    mysql9.sql("CREATE DATABASE c")
    directory = tmp_path_factory.mktemp("page")
    path = copying_config(mysql9, directory)
    path.write_text(
        path.read_text().replace('lake"}', 'lake", tables: {"c.stops": {evolution: {change_type: quarantine}}}}')
    )
    mysql9.sql("CREATE TABLE c.orders (id INT PRIMARY KEY, total INT, note VARCHAR(20))")
    mysql9.sql("CREATE TABLE c.stops (id INT PRIMARY KEY, v INT)")
    mysql9.sql(f"CREATE TABLE c.`{NASTY.replace('/', '')}` (id INT PRIMARY KEY, `{NASTY}` INT)")
    assert {} == run(load_config(path), once=True, spark=spark)
    mysql9.sql("INSERT INTO c.orders VALUES (1, 1, 'a')")
    mysql9.sql("ALTER TABLE c.orders RENAME COLUMN total TO amount")
    mysql9.sql("ALTER TABLE c.orders MODIFY amount BIGINT, ADD added DATETIME")
    mysql9.sql("ALTER TABLE c.orders DROP COLUMN note")
    mysql9.sql(
        f"ALTER TABLE c.orders COMMENT '</script><script>alert(1)</script>', ADD extra INT COMMENT '{NASTY[:20]}'"
    )
    mysql9.sql("RENAME TABLE c.orders TO c.sales")
    mysql9.sql("INSERT INTO c.sales (id) VALUES (2)")
    mysql9.sql("INSERT INTO c.stops VALUES (1, 1)")
    mysql9.sql("ALTER TABLE c.stops MODIFY v SMALLINT")
    mysql9.sql("INSERT INTO c.stops VALUES (2, 2)")
    assert ["c.stops"] == list(run(load_config(path), once=True, spark=spark))
    return path


@pytest.fixture(scope="module")
def written(connector: Path) -> str:
    done = CliRunner().invoke(app, ["page", str(connector), "--out", str(connector.parent / "out" / "page")])
    assert (0, "") == (done.exit_code, done.stdout)
    file = connector.parent / "out" / "page" / "index.html"
    assert file.stat().st_mode & 0o077 == 0
    return file.as_uri()


@pytest.fixture
def tab() -> Iterator[Tab]:
    with browsed() as tab:
        tab.show(1280)
        yield tab
        assert [] == tab.complaints()


def test_it_is_found_clicked_and_typed_into(written: str, tab: Tab) -> None:
    tab.open(written)
    tab.until("document.querySelectorAll('#tables .row').length === 3")
    assert "3 tables" == tab.text("#count")
    assert "1 stopped, 2 up to date" in tab.text("main dl")
    assert tab.text("#tables .row").startswith("c.stops\nstopped")

    tab.press("/")
    tab.write("amount")  # a column
    tab.until("document.querySelector('#count').textContent.startsWith('1 of ')")
    tab.click("#tables .row")
    tab.until("document.querySelector('#detail h3')")
    assert "#table=c.sales" == tab.value("location.hash")
    assert "c.sales" == tab.text("main h2")
    assert "Formerly c.orders" in tab.text("main")
    rows = tab.value("[...document.querySelectorAll('#versions .name')].map((e) => e.textContent)")
    told = [row.partition(" · ")[2] for row in rows]
    assert told == [
        "renamed table",
        "added extra",
        "dropped note",
        "type of amount, added added",
        "renamed total to amount",
        "captured",
    ]
    did = tab.text("[aria-label='What targets did with this version']")
    assert 2 == did.count("holds what was written under it")
    kinds = tab.value(
        "[...document.querySelectorAll('.picture .mark, .picture .gone')].map((e) => e.classList.item(e.classList.length - 1))"
    )
    assert {"born": 5, "renamed": 1, "retyped": 1, "gone": 1} == {kind: kinds.count(kind) for kind in set(kinds)}

    # Keys alone.
    tab.press("v", "ArrowDown", "ArrowDown")
    tab.until("document.querySelector('#detail').innerText.includes('DROP COLUMN note')")
    number = tab.value("new URLSearchParams(location.hash.slice(1)).get('version')")
    assert f"Version {number}" == tab.text("#detail h3")
    tab.press("t", "End")
    tab.press("o")
    tab.until("document.querySelector('main h2').textContent === 'c'")
    tab.press("/")
    tab.value("document.activeElement.select()")
    tab.write("modify v smallint")
    tab.press("Enter")
    tab.until("document.querySelector('#count').textContent.endsWith('statements')")
    tab.press("ArrowDown")
    tab.until("document.querySelector('main h2').textContent === 'c.stops'")
    tab.until("document.querySelector('#detail pre').textContent.includes('MODIFY v SMALLINT')")
    did = tab.text("[aria-label='What targets did with this version']")
    assert 2 == did.count("stopped in plan 2, which brought this version: a column's values are rewritten")
    assert "change type of v: quarantine" in tab.text("#detail")

    # What was opened is found again by its address.
    tab.open(f"{written}?again#table=c.sales&version={number}")
    tab.until("document.querySelector('#detail h3')")
    assert f"Version {number}" == tab.text("#detail h3")
    tab.open(f"{written}?once#table=c.orders")  # by an earlier name
    tab.until("document.querySelector('main h2')?.textContent === 'c.sales'")
    tab.open(f"{written}?more#{urllib.parse.urlencode({'table': '<b>none</b>'})}")
    tab.until("document.querySelector('main').innerText.includes('There is no captured table <b>none</b>')")


def test_names_and_statements_are_text(written: str, tab: Tab) -> None:
    tab.open(f"{written}#{urllib.parse.urlencode({'table': 'c.' + NASTY.replace('/', '')})}")
    tab.until("document.querySelector('.picture svg')")

    assert f"c.{NASTY.replace('/', '')}" == tab.text("main h2")
    assert tab.value(
        f"[...document.querySelectorAll('.labels title')].some((e) => e.textContent.includes({json.dumps(NASTY)}))"
    )
    assert 2 == tab.value("document.scripts.length") + tab.value("Number(document.getElementById('data') === null)")
    assert 0 == tab.value("document.querySelectorAll('img, iframe, object, [onerror], [style*=javascript]').length")
    tab.open(f"{written}?2#table=c.sales")
    tab.until("document.querySelector('#detail pre')")  # all stands where it will be clicked
    tab.click("#versions .row", 1)
    tab.until("document.querySelector('#detail pre')?.textContent.includes('</script><script>alert(1)</script>')")


@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_narrow_and_wide_windows_and_dark_ones(written: str, tab: Tab, dark: bool) -> None:
    for place in ("", "#table=c.sales"):
        for width in WIDTHS:
            tab.show(width, dark=dark)
            tab.open(f"{written}?{width}{place}")
            tab.until("document.querySelector('main h2')")
            tab.until("document.querySelector('#detail pre')" if place else "true")
            assert width >= tab.value("document.documentElement.scrollWidth"), (place, width)
    colours = tab.value("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    assert (["rgb(20, 23, 28)", "rgb(230, 233, 238)"] if dark else ["rgb(255, 255, 255)", "rgb(27, 34, 48)"]) == colours
    unnamed = "[...document.querySelectorAll('button, input, select, [role=listbox], [role=region], svg[role=img]')].filter((e) => !(e.ariaLabel || e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).length"
    assert 0 == tab.value(unnamed)


def test_of_many_tables_and_versions_a_few_have_elements(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "many.yaml"
    source = '{type: mysql, host: 127.0.0.1, port: 1, user: cdc, tables: ["shop.*"]}'
    path.write_text(
        f'name: many\nsource: {source}\nhistory: {{store: "sqlite:///{tmp_path}/store.db"}}\nsinks: [{{type: console}}]\n'
    )
    config = load_config(path)
    with closing(Store.open(config.history.store)) as store:
        first = capture(*(create(i, f"t{i:04}", "a", first=1000 * i) for i in range(1, 1001)))
        names = ["a", *(f"name_{i}" for i in range(300))]
        renames = [
            statement(i + 2, f"{A}:{i + 2}", RenameColumn(table=table("t0007"), column_id=7000, old=old, new=new))
            for i, (old, new) in enumerate(pairwise(names))
        ]
        store.record([first, *renames], position(f"{A}:1-301"))
    assert 0 == CliRunner().invoke(app, ["page", str(path), "--out", str(tmp_path)]).exit_code

    tab.open((tmp_path / "index.html").as_uri())
    tab.until("document.querySelector('#tables .row')")
    assert "1,000 tables" == tab.text("#count")
    assert tab.value("document.querySelectorAll('#tables .row').length") < 40
    tab.click("#tables")
    tab.press("End")
    tab.until("document.querySelector('main h2').textContent === 'shop.t1000'")
    tab.press("/")
    tab.write("name_299")
    tab.press("ArrowDown")
    tab.until("document.querySelector('main h2').textContent === 'shop.t0007'")
    tab.until("document.querySelector('.picture svg')")
    assert "versions 301 to 301 of 301" in tab.text("main")
    assert tab.value("document.querySelectorAll('#versions .row').length") < 40
    tab.press("v", "End")
    tab.until("document.querySelector('main').innerText.includes('versions 1 to 60 of 301')")
    assert tab.value("document.querySelectorAll('.picture *').length") < 400


def test_a_run_serves_it_to_those_who_have_the_token(connector: Path, tab: Tab) -> None:
    port = free_port()
    path = connector.parent / "served.yaml"
    path.write_text(connector.read_text() + f"run: {{http: {{listen: {port}, token: s3cret}}}}\n")
    with served(load_config(path)):
        tab.open(
            f"http://127.0.0.1:{port}/#table=c.sales",
            Authorization="Basic " + base64.b64encode(b"anyone:s3cret").decode(),
        )
        tab.until("document.querySelector('#detail pre')")
        assert "Look again" in tab.text("header")


def test_no_spark_is_started_for_it(connector: Path) -> None:
    out = connector.parent / "without"
    code = f"import sys\nfrom connectors.cli import app\ntry:\n    app(['page', {str(connector)!r}, '--out', {str(out)!r}])\nfinally:\n    assert 'pyspark' not in sys.modules\n"

    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)

    assert (0, f"{out}/index.html") == (done.returncode, done.stderr.split(" (")[0]), done.stderr
