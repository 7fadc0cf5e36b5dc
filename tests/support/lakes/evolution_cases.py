"""Edits and what is said of them: each case changes a table of its own that begins with two rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from historian.schema.snapshots import ColumnType
from lakes.sink_lab import INT, Lab, text

__all__ = ["CASES", "EXPECTED", "first_id", "lab_of", "rules"]

BIGINT = ColumnType(name="bigint")
FIRST, SECOND = {"id": 1, "a": "x", "b": 10}, {"id": 2, "a": "y", "b": 20}

Steps = Iterator[None]
CASES: dict[str, tuple[dict[str, str], Callable[[Lab, str], Steps]]] = {}


def _case(**evolution: str) -> Callable[[Callable[[Lab, str], Steps]], Callable[[Lab, str], Steps]]:
    """A case that begins with two rows; where it yields, a plan may end."""

    def taken(steps: Callable[[Lab, str], Steps]) -> Callable[[Lab, str], Steps]:
        CASES[steps.__name__] = evolution, steps
        return steps

    return taken


@_case(add_column="ignore")
def add_ignored(lab: Lab, t: str) -> Steps:
    lab.add(t, "c", INT, initial="7", after="id")
    lab.insert(t, {"id": 3, "c": 1, "a": "z", "b": 30})
    yield
    lab.update(t, {**FIRST, "c": 7}, c=8, a="xx")
    lab.rename_column(t, "c", "d")
    lab.retype(t, "d", text(), cut=True)
    lab.insert(t, {"id": 4, "d": "", "a": "w", "b": 40})


@_case(drop_column="keep")
def drop_kept(lab: Lab, t: str) -> Steps:
    lab.add(t, "c", INT, after="a")
    lab.insert(t, {"id": 3, "a": "z", "b": 30, "c": 3})
    lab.drop_column(t, "b")
    lab.insert(t, {"id": 4, "a": "w", "c": 4})
    yield
    lab.update(t, {"id": 1, "a": "x", "c": None}, a="xx")
    lab.add(t, "b", text())


@_case(rename_column="ignore")
def rename_ignored(lab: Lab, t: str) -> Steps:
    lab.rename_column(t, "b", "q")
    lab.insert(t, {"id": 3, "a": "z", "q": 30})
    yield
    lab.insert(t, {"id": 4, "a": "w", "q": 40})
    lab.add(t, "b", text())
    yield
    lab.insert(t, {"id": 5, "a": "v", "q": 50, "b": "new"})


@_case(move_column="ignore")
def move_ignored(lab: Lab, t: str) -> Steps:
    lab.move(t, "b")
    yield
    lab.add(t, "c", INT, after="a")
    lab.insert(t, {"id": 3, "a": "z", "b": 30, "c": 3})


@_case(widen_type="new_column")
def widened_aside(lab: Lab, t: str) -> Steps:
    lab.insert(t, {"id": 3, "a": "z", "b": 30})
    lab.retype(t, "b", BIGINT)
    lab.update(t, FIRST, b=2**40)
    yield
    lab.insert(t, {"id": 4, "a": "w", "b": 40})


@_case(preset="lenient", truncate="apply")
def changed_aside(lab: Lab, t: str) -> Steps:
    lab.retype(t, "b", text(), cut=True)
    lab.update(t, {**FIRST, "b": "10"}, b="ten")
    yield
    lab.retype(t, "b", INT, cut=True)
    lab.insert(t, {"id": 3, "a": "z", "b": 30})
    yield
    lab.insert(t, {"id": 4, "a": "w", "b": 40})


@_case(preset="lenient", truncate="apply")
def changed_aside_then_emptied(lab: Lab, t: str) -> Steps:
    lab.retype(t, "b", text(), cut=True)
    lab.update(t, {**FIRST, "b": "10"}, b="ten")
    yield
    lab.truncate(t)
    lab.insert(t, {"id": 3, "a": "z", "b": "thirty"})


@_case(preset="lenient")
def computed_from_then_on(lab: Lab, t: str) -> Steps:
    lab.add(t, "n", INT, known=False, cut=True)
    yield
    lab.update(t, {**FIRST, "n": 1}, a="xx")


@_case(truncate="keep")
def truncate_kept(lab: Lab, t: str) -> Steps:
    lab.truncate(t)
    lab.insert(t, {"id": 1, "a": "again", "b": 1})
    yield
    lab.truncate(t)
    yield
    lab.insert(t, {"id": 3, "a": "z", "b": 30})


@_case(truncate="ignore")
def truncate_ignored(lab: Lab, t: str) -> Steps:
    lab.truncate(t)
    yield
    lab.insert(t, {"id": 1, "a": "again", "b": 1})


@_case(drop_table="keep")
def drop_archived(lab: Lab, t: str) -> Steps:
    lab.drop(t)
    yield
    lab.create(t, {"id": INT, "z": INT})
    lab.insert(t, {"id": 1, "z": 1})


@_case(drop_table="ignore")
def drop_ignored(lab: Lab, t: str) -> Steps:
    lab.drop(t)
    lab.create(t, {"id": INT, "z": INT})
    yield
    lab.insert(t, {"id": 1, "z": 1})


@_case(drop_column="quarantine")
def drop_quarantined(lab: Lab, t: str) -> Steps:
    lab.drop_column(t, "b")
    yield
    lab.insert(t, {"id": 3, "a": "z"})


@_case(preset="lenient")
def key_changed_in_type(lab: Lab, t: str) -> Steps:
    lab.retype(t, "id", text(), cut=True)
    yield
    lab.insert(t, {"id": "3", "a": "z", "b": 30})


EXPECTED: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "add_ignored": ("id a b", [(1, "xx", 10), (2, "y", 20), (3, "z", 30), (4, "w", 40)]),
    "drop_kept": (
        "id a c b b__h{b}",
        [(1, "xx", None, None, None), (2, "y", None, None, 20), (3, "z", 3, None, 30), (4, "w", 4, None, None)],
    ),
    "rename_ignored": (
        "id a b__h{b} b",
        [(1, "x", 10, None), (2, "y", 20, None), (3, "z", 30, None), (4, "w", 40, None), (5, "v", 50, "new")],
    ),
    "move_ignored": ("id a c b", [(1, "x", None, 10), (2, "y", None, 20), (3, "z", 3, 30)]),
    "widened_aside": (
        "id a b b__h{b}",
        [(1, "x", 2**40, None), (2, "y", None, 20), (3, "z", None, 30), (4, "w", 40, None)],
    ),
    "changed_aside": (
        "id a b b__h1{b:08} b__h{b}",
        [(1, "x", None, "ten", None), (2, "y", None, None, 20), (3, "z", 30, None, None), (4, "w", 40, None, None)],
    ),
    "changed_aside_then_emptied": ("id a b b__h{b}", [(3, "z", "thirty", None)]),
    "computed_from_then_on": ("id a b n", [(1, "xx", 10, 1), (2, "y", 20, None)]),
    "truncate_kept": ("id a b", [(1, "again", 1), (2, "y", 20), (3, "z", 30)]),
    "truncate_ignored": ("id a b", [(1, "again", 1), (2, "y", 20)]),
    "drop_archived": ("id a b", [(1, "x", 10), (2, "y", 20)]),
    "drop_ignored": ("id a b", [(1, "x", 10), (2, "y", 20)]),
    "drop_quarantined": ("id a b", [(1, "x", 10), (2, "y", 20)]),
    "key_changed_in_type": ("id a b", [(1, "x", 10), (2, "y", 20)]),
}


def rules() -> tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]:
    """What a Delta sink is told of the tables."""
    return tuple((f"shop.{name}", (("evolution", tuple(said.items())),)) for name, (said, _) in CASES.items())


def lab_of(
    cut: Callable[[Lab], object], *, apart: bool, lab: Lab | None = None, names: Collection[str] = tuple(CASES)
) -> Lab:
    """A lab with the cases of those *names*; *cut* ends a plan: behind the first rows, then where cases yield (*apart*) or at the end."""
    lab = lab or Lab()
    for name in names:
        lab.create(f"shop.{name}", {"id": INT, "a": text(), "b": INT})
        lab.insert(f"shop.{name}", FIRST, SECOND)
    running = [steps(lab, f"shop.{name}") for name, (_, steps) in CASES.items() if name in names]
    cut(lab)
    while running:
        running = [steps for steps in running if next(steps, running) is None]
        if apart:
            cut(lab)
    if not apart:
        cut(lab)
    return lab


def first_id(lab: Lab, table: str, column: str) -> int:
    """The id with which a column of a table came that the first plan creates."""
    firsts = (planned.versions[0].snapshot for planned in lab.plans[0].tables)
    snapshot = next(s for s in firsts if s is not None and str(s.name) == table)
    return next(c.id for c in snapshot.columns if c.name == column)
