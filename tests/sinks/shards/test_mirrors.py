"""Mirrors of shards that a random log changes, statements reaching them in any order, are the union of the shards; without Spark."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from historian.schema.snapshots import ColumnType
from lakes.file_mirrors import FileMirrors
from lakes.sink_lab import INT, Lab, decimal, text
from sinks.delta import DeltaSettings

BIGINT = ColumnType(name="bigint")
SETTINGS = DeltaSettings(
    path="lake", tables=(("shop_*.t", (("into", ("shop.t", (("db", "{database}"), ("name", "{table}")))),)),)
)

Statement = Callable[[Lab, str], None]

STATEMENTS: tuple[Statement, ...] = (
    lambda lab, name: lab.add(name, "a", INT, after="id", initial="7"),
    lambda lab, name: lab.retype(name, "total", BIGINT),
    lambda lab, name: lab.rename_column(name, "note", "remark"),
    lambda lab, name: lab.move(name, "remark"),
    lambda lab, name: lab.add(name, "extra", text()),
    lambda lab, name: lab.drop_column(name, "a"),
    lambda lab, name: lab.rename_column(name, "total", "whole"),
    lambda lab, name: lab.retype(name, "extra", text(50)),
    lambda lab, name: lab.add(name, "a", text(), initial="again"),
    lambda lab, name: lab.drop_column(name, "remark"),
    lambda lab, name: lab.retype(name, "id", BIGINT),
    lambda lab, name: lab.retype(name, "whole", decimal(22, 2)),
    lambda lab, name: lab.retype(name, "id", decimal(20, 0)),
)
BEHIND = {8: 5}
"""A statement that no shard has before all had another one."""


class Shards:
    """A random log of shards, of one sequence of statements each."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lab = Lab()
        self.done: dict[str, int] = {}
        self._create("shop_0.t")

    def step(self) -> None:
        name = self.rng.choice([*self.done])
        change = self.rng.random()
        if change < 0.15 and len(self.done) < 4:
            free = [f"shop_{n}.t" for n in range(4) if f"shop_{n}.t" not in self.done]
            self._create(self.rng.choice(free), like=name)
        elif change < 0.35:
            self._follow(name)
        elif change < 0.4:
            self.lab.truncate(name)
        elif change < 0.44 and len(self.done) > 1:
            self.lab.drop(name)
            del self.done[name]
        else:
            self._row(name)

    def finish(self) -> None:
        """All shards have all statements, in any order."""
        while any(done < len(STATEMENTS) for done in self.done.values()):
            self._follow(self.rng.choice([*self.done]))
            self._row(self.rng.choice([*self.done]))

    def union(self) -> list[dict[str, Any]]:
        return [{"db": name[:-2], "name": "t", **row} for name in self.done for row in self.lab.rows(name)]

    def _create(self, name: str, like: str = "") -> None:
        columns = {"id": INT, "total": INT, "note": text()}
        if like:
            database, _, table = like.partition(".")
            columns = {
                c.name: c.type for n, s in self.lab.catalog.tables.items() if n == (database, table) for c in s.columns
            }
        self.lab.create(name, columns)
        self.done[name] = self.done[like] if like else 0

    def _follow(self, name: str) -> None:
        at = self.done[name]
        if at < len(STATEMENTS) and all(done > BEHIND.get(at, -1) for done in self.done.values()):
            STATEMENTS[at](self.lab, name)
            self.done[name] += 1

    def _row(self, name: str) -> None:
        rows = self.lab.rows(name)
        number = self.rng.randrange(8)
        held = next((row for row in rows if row["id"] == number), None)
        new = {}
        for column in [*rows[0]] if rows else []:
            if column in ("total", "whole"):
                new[column] = self.rng.randrange(100)
            elif column in ("note", "remark", "extra"):
                new[column] = self.rng.choice((None, "x", "y"))
        if held is None:
            self.lab.insert(name, {"id": number, **new})
        elif self.rng.random() < 0.3:
            self.lab.delete(name, held)
        elif self.rng.random() < 0.3 and not any(row["id"] == number + 8 for row in rows):
            self.lab.update(name, held, id=number + 8)
        else:
            self.lab.update(name, held, **new)


@pytest.mark.parametrize("seed", range(12))
def test_a_mirror_is_the_union_of_its_shards_however_the_log_is_cut(seed: int, tmp_path: Path) -> None:
    def played(name: str, share: float) -> tuple[list[str], list[dict[str, Any]]]:
        mirrors, shards, cuts = FileMirrors(SETTINGS, tmp_path / name), Shards(seed), random.Random(seed)
        for _ in range(80):
            shards.step()
            if cuts.random() < share:
                mirrors.take(shards.lab)
        shards.finish()
        mirrors.take(shards.lab)
        assert mirrors.stopped == {}
        names, rows = mirrors.shown("shop_t")
        found = [dict(zip(names, row, strict=True)) for row in rows]
        assert sorted(found, key=_key) == sorted(shards.union(), key=_key)
        return names, found

    assert played("apart", 0.5) == played("some", 0.1) == played("together", 0)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["db"], row["id"]


@pytest.mark.parametrize("first", ["shop_0.t", "shop_1.t"])
def test_the_order_in_which_shards_appear_does_not_matter(first: str, tmp_path: Path) -> None:
    """Without a row or a statement a table is in no plan, so what a shard is may be told late."""
    mirrors, lab = FileMirrors(SETTINGS, tmp_path), Lab()
    second = "shop_1.t" if first == "shop_0.t" else "shop_0.t"
    for name in (first, second):
        lab.create(name, {"id": INT, "total": INT, "note": text()})
    late = lab.tables[lab.table_id(second)]
    there, late.versions = late.versions[0], []
    lab.insert(first, {"id": 1, "total": 1, "note": "n"})
    mirrors.take(lab)
    for statement in STATEMENTS[:5]:
        statement(lab, first)
    lab.insert(first, {"id": 2, "a": 2, "total": 2**40, "remark": "r", "extra": "e"})
    mirrors.take(lab)
    late.versions = [replace(there, place=None, edits=())]
    lab.insert(second, {"id": 1, "total": 10, "note": "o"})
    mirrors.take(lab)
    names = ["db", "name", "id", "a", "total", "extra", "remark"]
    assert mirrors.shown("shop_t") == (
        names,
        sorted(
            [
                (first[:6], "t", 1, 7, 1, None, "n"),
                (first[:6], "t", 2, 2, 2**40, "e", "r"),
                (second[:6], "t", 1, 7, 10, None, "o"),
            ],
            key=repr,
        ),
    )
    for statement in STATEMENTS[:5]:
        statement(lab, second)
    lab.insert(second, {"id": 3, "a": 3, "total": 3, "remark": "s", "extra": "f"})
    mirrors.take(lab)
    assert mirrors.stopped == {}
    expected = [(name[:6], "t", *(row[c] for c in names[2:])) for name in (first, second) for row in lab.rows(name)]
    assert mirrors.shown("shop_t") == (names, sorted(expected, key=repr))


def test_a_name_is_followed_back_and_forth(tmp_path: Path) -> None:
    mirrors, lab = FileMirrors(SETTINGS, tmp_path), Lab()
    for name in ("shop_0.t", "shop_1.t"):
        lab.create(name, {"id": INT, "a": INT, "b": INT})
    for name in ("shop_0.t", "shop_1.t"):
        for old, new in (("a", "x"), ("x", "a"), ("a", "y"), ("b", "a"), ("y", "b")):
            lab.rename_column(name, old, new)
        lab.insert(name, {"id": 1, "b": 1, "a": 2})
        mirrors.take(lab)
    assert mirrors.stopped == {}
    assert mirrors.shown("shop_t") == (
        ["db", "name", "id", "b", "a"],
        [("shop_0", "t", 1, 1, 2), ("shop_1", "t", 1, 1, 2)],
    )
