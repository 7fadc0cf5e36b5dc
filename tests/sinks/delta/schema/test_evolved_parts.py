"""Mirrors by what was decided about edits: their files and schemas, without Spark and without Delta's log."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from historian.errors import EditRefused
from lakes.evolution_cases import CASES, EXPECTED, lab_of, rules
from lakes.file_mirrors import FileMirrors
from lakes.random_edits import RandomEdits, random_words
from lakes.sink_lab import INT, Lab
from sinks.contract.decisions import GENERATION
from sinks.delta import DeltaSettings
from sinks.delta.schema.decisions import evolved_locations

SETTINGS = DeltaSettings(path="lake", tables=rules())


@pytest.fixture(scope="module", params=[True, False], ids=["in many plans", "in one plan"])
def mirrors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FileMirrors:
    found = FileMirrors(SETTINGS, tmp_path_factory.mktemp("mirrors"))
    lab_of(found.take, apart=request.param)
    return found


@pytest.mark.parametrize("name", CASES)
def test_rows_and_columns_are_what_was_said(mirrors: FileMirrors, name: str) -> None:
    names, rows = EXPECTED[name]
    b = min(
        (f.column_id or 0) % GENERATION
        for f in mirrors.tables[f"shop_{name}"].schema().fields
        if f.name.startswith("b")
    )

    assert (names.format(b=b).split(), rows) == mirrors.shown(f"shop_{name}")


def test_tables_stop_where_nothing_can_be_followed(mirrors: FileMirrors) -> None:
    assert {"shop.drop_quarantined", "shop.key_changed_in_type"} == set(mirrors.stopped)


def test_rows_come_in_a_commit_of_their_own_where_a_feed_tells_which_went(tmp_path: Path) -> None:
    mirrors, lab = FileMirrors(DeltaSettings(path="lake"), tmp_path, feed=True), Lab()
    lab.create("shop.t", {"id": INT, "a": INT})
    lab.insert("shop.t", {"id": 1, "a": 1}, {"id": 2, "a": 2})
    mirrors.take(lab)
    lab.add("shop.t", "b", INT, initial="7")
    lab.truncate("shop.t")
    lab.insert("shop.t", {"id": 2, "a": 3, "b": 4})
    mirrors.take(lab)

    assert mirrors.stopped == {}
    assert (["id", "a", "b"], [(2, 3, 4)]) == mirrors.shown("shop_t")


@pytest.mark.parametrize("seed", range(25))
def test_a_mirror_does_not_depend_on_where_a_random_log_is_cut(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    key = rng.choice(("primary", "primary", "configured", "none"))
    said: dict[str, Any] = {"evolution": random_words(rng), "cluster": rng.random() < 0.2 and key != "none"}
    if key == "configured":
        said["key"] = ("k",)
    elif key == "none":
        said["keyless"] = "rows"
    elif rng.random() < 0.3:
        said["mirror_deletes"] = "soft"
    settings = DeltaSettings(path="lake", tables=(("shop.t", tuple(said.items())),))

    def played(name: str, cuts: Callable[[int], bool]) -> FileMirrors:
        mirrors = FileMirrors(settings, tmp_path / name)
        edits = RandomEdits(random.Random(seed), keyed=key != "none", distinct="k" if key == "configured" else "id")
        for at in range(25):
            edits.step()
            if cuts(at):
                mirrors.take(edits.lab)
        mirrors.take(edits.lab)
        return mirrors

    places = {at for at in range(25) if rng.random() < 0.3}
    apart, together = played("apart", lambda _: True), played("together", lambda _: False)
    some = played("some", lambda at: at in places)
    assert apart.stopped.keys() == together.stopped.keys() == some.stopped.keys()
    if not apart.stopped:
        shown = apart.shown("shop_t")
        assert shown == together.shown("shop_t") == some.shown("shop_t")


@pytest.mark.parametrize("apart", [True, False], ids=["in many plans", "in one plan"])
def test_a_kept_column_reads_its_default_in_rows_from_before_it(apart: bool, tmp_path: Path) -> None:
    mirrors = FileMirrors(DeltaSettings(path="lake", evolution=(("drop_column", "keep"),)), tmp_path / "mirrors")
    lab = Lab()
    lab.create("shop.t", {"id": INT})
    lab.insert("shop.t", {"id": 1}, {"id": 2})
    mirrors.take(lab)
    lab.update("shop.t", {"id": 2})
    lab.add("shop.t", "c", INT, initial="7")
    lab.insert("shop.t", {"id": 3, "c": 3})
    if apart:
        mirrors.take(lab)
    lab.drop_column("shop.t", "c")
    lab.insert("shop.t", {"id": 4})
    mirrors.take(lab)

    assert (["id", "c"], [(1, 7), (2, 7), (3, 3), (4, None)]) == mirrors.shown("shop_t")


def test_what_was_decided_once_holds_under_another_configuration() -> None:
    lab = Lab()
    lab.create("shop.t", {"id": INT, "b": INT})
    locations = evolved_locations({}, lab.cut(), SETTINGS)
    lab.drop_column("shop.t", "b")
    plan = lab.cut()
    lenient = DeltaSettings(path="lake", evolution=(("preset", "lenient"),))
    strict = DeltaSettings(path="lake", evolution=(("preset", "strict"),))
    kept = evolved_locations(locations, plan, lenient)

    assert kept == evolved_locations(kept, plan, SETTINGS) == evolved_locations(kept, plan, strict)
    assert kept != evolved_locations(locations, plan, SETTINGS)
    with pytest.raises(EditRefused, match=r"shop.t.b: ALTER TABLE shop.t DROP b.*drop_column"):
        evolved_locations(locations, plan, strict)
