"""The rules of rooms: how big they are, who imports whom, what their faces say, and that tests stand where the code does."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from structure import House, circles

ROOT = Path(__file__).parent.parent
HOUSE = House(ROOT)
MOST_MODULES = 20
MOST_FLOORS = 8
SUITES = {"attack", "contract", "docs", "examples", "integration", "support", "workload"}
"""Folders of tests that are of no one room."""
LIGHT = ("pyspark", "delta", "pymysql", "pymysqlreplication", "psycopg", "confluent_kafka")


def test_circles_are_found() -> None:
    assert [["a", "b", "c"]] == circles({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set()})


def test_imports_for_types_and_inside_functions_count(tmp_path: Path) -> None:
    (tmp_path / "house" / "room").mkdir(parents=True)
    texts = {
        "__init__": "",
        "a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.b import B",
        "b": "def f():\n    from house import a",
        "room/__init__": '"""A room.\n\nOpen to other rooms: ``c``.\n"""',
        "room/c": "from house.a import A",
    }
    for name, text in texts.items():
        (tmp_path / "house" / f"{name}.py").write_text(text)

    house = House(tmp_path, ["house"])

    assert [["house.a", "house.b"]] == house.module_circles()
    assert {"house.room.c"} == house.named_by_face("house.room")
    assert (2, 1) == (len(house.modules("house")), house.floors("house.room"))


def test_rooms_are_small() -> None:
    assert {} == {room: count for room in HOUSE.rooms if (count := len(HOUSE.modules(room))) > MOST_MODULES}


def test_modules_do_not_import_each_other_in_circles() -> None:
    assert [] == HOUSE.module_circles()


def test_rooms_do_not_import_each_other_in_circles() -> None:
    assert [] == HOUSE.room_circles()


def test_rooms_have_few_floors() -> None:
    assert {} == {room: floors for room in HOUSE.rooms if (floors := HOUSE.floors(room)) > MOST_FLOORS}


def test_other_rooms_come_in_by_the_face() -> None:
    passing = {
        (each.importer, each.imported)
        for each in HOUSE.imports
        if each.imported not in HOUSE.rooms and HOUSE.room(each.importer) != HOUSE.room(each.imported)
        if each.imported not in HOUSE.named_by_face(HOUSE.room(each.imported))
    }

    assert set() == passing


def test_a_face_names_only_what_is_there() -> None:
    named = {module for room in HOUSE.rooms for module in HOUSE.named_by_face(room)}

    assert set() == named - set(HOUSE.files)


@pytest.mark.parametrize("room", sorted(HOUSE.rooms))
def test_a_face_says_what_belongs_and_what_does_not(room: str) -> None:
    text = ast.get_docstring(ast.parse(HOUSE.files[room].read_text())) or ""

    assert re.search(r"\bnot belong here\b", text), text
    assert text.index(".") < text.index("not belong here")


def test_importing_a_room_loads_neither_spark_nor_a_driver() -> None:
    loaded = f"print(*sorted({set(LIGHT)!r} & set(sys.modules)))"
    code = "import sys, importlib\nfor room in sys.argv[1:]: importlib.import_module(room)\n" + loaded

    done = subprocess.run(
        [sys.executable, "-c", code, *sorted(HOUSE.rooms)], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert [] == done.stdout.split()


def test_tests_mirror_the_tree() -> None:
    folders = {file.parent.relative_to(ROOT / "tests") for file in (ROOT / "tests").rglob("test_*.py")}

    rooms = {".".join(folder.parts) for folder in folders if folder.parts and folder.parts[0] not in SUITES}

    assert set() == rooms - HOUSE.rooms


ASKED = (
    "a column type",
    "another statement",
    "another check",
    "a command",
    "an option of a sink",
    "a reader",
    "an exported metric",
)
ASKED += ("a kind of edit that evolution knows", "a back-end of the store", "a file format")


def _changes() -> dict[str, set[str]]:
    """What CONTRIBUTING says where changes go: each change to the files and folders that it names."""
    page = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Where changes go")[2].partition("\n## ")[0]
    )
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    return {change: set(_paths(files)) for change, files, *_ in rows}


def _paths(files: str) -> Iterator[str]:
    """The paths of a cell; a name alone stands in the folder named last before it, or else next behind it."""
    found = re.findall(r"`([\w/]+(?:\.py|/))`", files)
    folders = [name for name in found if "/" in name and (ROOT / name).exists()]
    for name in found:
        places = [
            Path(name),
            *(Path(folder if folder.endswith("/") else Path(folder).parent) / name for folder in folders),
        ]
        there = [place for place in places if (ROOT / place).exists()]
        assert there, name
        yield str(there[0])


def test_a_newcomer_finds_where_each_change_goes() -> None:
    changes = _changes()

    rooms = {change: {"/".join(Path(path).parts[:2]) for path in paths} for change, paths in changes.items()}

    assert set(ASKED) <= set(changes)
    assert {} == {change: found for change, found in rooms.items() if len(found) > 3}


def test_the_page_of_labs_names_each_of_them() -> None:
    support = ROOT / "tests" / "support"
    page = (support / "README.md").read_text(encoding="utf-8")

    labs = {file.stem for file in support.rglob("*.py") if file.stem != "__init__" and file.parent.name != "workload"}

    assert set() == {lab for lab in labs if f"`{lab}`" not in page}
