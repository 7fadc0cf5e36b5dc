"""Tables whose columns are shaped, in a lake: through schema changes, restarts and other configurations."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from historian.errors import ConfigError, SinkError
from historian.secret import Secret
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab, text
from sinks.delta import DeltaDryRun, DeltaSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULES: dict[str, Any] = {
    "exclude": ("Pin",),
    "mask": (("card", "****"), ("later", "?")),
    "hash": (("email", Secret("salt")),),
    "truncate": (("note", 3),),
}
COLUMNS = {"id": INT, "card": text(), "pin": text(), "email": text(), "note": text(), "plain": text()}


def sha(value: str) -> str:
    return hashlib.sha256(f"salt{value}".encode()).hexdigest()


def row(number: int, **values: str) -> dict[str, Any]:
    usual = {name: f"{name} {number}" for name in COLUMNS if name != "id"}
    return {"id": number, **usual, **values}


def made(spark: SparkSession, path: Path, rules: dict[str, Any] = RULES, **settings: Any) -> HeldLake:
    return HeldLake(spark, path / "lake", Lab(), tables=(("shop.*", tuple(rules.items())),), **settings)


def mirror(lake: HeldLake, directory: str = "shop_t") -> list[dict[str, Any]]:
    return sorted(lake.mirror(directory), key=lambda found: str(found["id"]))


def everything(lake: HeldLake) -> bytes:
    """What any file of the lake's data says; their texts are not packed."""
    return b"".join(repr(lake.raw_log(d.name)).encode() for d in lake.path.iterdir() if d.name.endswith("_changes"))


def test_rules_stay_with_columns_through_schema_changes_and_restarts(spark: SparkSession, tmp_path: Path) -> None:
    lake = made(spark, tmp_path, history="{database}_{table}_history")
    lab = lake.lab
    lab.create("shop.t", COLUMNS)
    lab.insert("shop.t", row(1), row(2))
    lake.cut()
    lab.rename_column("shop.t", "card", "number")
    lab.rename_column("shop.t", "email", "address")
    lab.retype("shop.t", "pin", INT, cut=True)
    lab.retype("shop.t", "note", text(50))
    lab.add("shop.t", "card", text())
    lab.add("shop.t", "later", text(), initial="secret")
    new = {"id": 3, "number": "n", "pin": 1, "address": "a", "note": "long", "plain": "p", "card": "c", "later": "l"}
    lab.insert("shop.t", new)
    lake.catch_up()
    lake.cut()
    lake.catch_up()

    assert lake.stopped() == {}
    older = [
        {
            "id": n,
            "number": "****",
            "address": sha(f"email {n}"),
            "note": "not",
            "plain": f"plain {n}",
            "card": None,
            "later": "?",
        }
        for n in (1, 2)
    ]
    newer = {"id": 3, "number": "****", "address": sha("a"), "note": "lon", "plain": "p", "card": "****", "later": "?"}
    assert mirror(lake) == [*older, newer]
    lake.read_by_spark("shop_t", "shop_t_changes", "shop_t_history")
    log = lake.raw_log("shop_t_changes")
    assert "pin" not in log[0]
    assert [(r["number"], r["address"], r["note"], r["plain"]) for r in log] == [
        (r["number"], r["address"], r["note"], r["plain"]) for r in (*older, newer)
    ]
    assert [(i.from_offset, i.to_offset) for i in lake.history("shop_t_history")] == [(0, None), (1, None), (2, None)]


def test_a_hashed_key_finds_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = made(spark, tmp_path, {"hash": (("id", Secret("salt")),), "exclude": ("card", "pin", "email", "note")})
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "plain": text()})
    lab.insert("shop.t", {"id": 1, "plain": "a"}, {"id": 2, "plain": "b"}, {"id": 3, "plain": "c"})
    lake.cut()
    lab.update("shop.t", {"id": 1, "plain": "a"}, plain="A")
    lab.update("shop.t", {"id": 2, "plain": "b"}, id=20)
    lab.delete("shop.t", {"id": 3, "plain": "c"})
    lake.cut()

    wanted = [{"id": sha("1"), "plain": "A"}, {"id": sha("20"), "plain": "b"}]
    assert mirror(lake) == sorted(wanted, key=lambda found: str(found["id"]))
    lab.truncate("shop.t")
    lake.cut()
    assert mirror(lake) == []
    assert [r["op"] for r in lake.raw_log("shop_t_changes")][-2:] == [1, 1]


def test_rules_that_do_not_fit_are_listed_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    rules = {"exclude": ("id",), "mask": (("n", "x"),), "truncate": (("d", 2),), "hash": (("d", Secret("s")),)}
    lake = made(spark, tmp_path, {key: value for key, value in rules.items() if key != "hash"})
    lake.lab.create("shop.t", {"id": INT, "n": INT, "d": INT})
    with pytest.raises(ConfigError) as error:
        lake.cut()

    assert error.value.problems == (
        "a mirror and a history need the key; it can be hashed @ $.tables of shop.t: columns.exclude.id",
        "'x' is no int @ $.tables of shop.t: mask.n",
        "truncate takes texts, not int @ $.tables of shop.t: truncate.d",
    )
    assert lake.sink.status() == ()


def test_a_changelog_alone_may_lack_the_key(spark: SparkSession, tmp_path: Path) -> None:
    lake = made(spark, tmp_path, {"columns": ("plain",), "mirror": None})
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "plain": text()})
    lab.insert("shop.t", {"id": 1, "plain": "a"}, {"id": 2, "plain": "a"})
    lake.cut()
    lab.truncate("shop.t")
    lake.cut()

    assert [(r["op"], r["plain"]) for r in lake.raw_log("shop_t_changes")] == [(0, "a"), (0, "a"), (1, "a"), (1, "a")]


def test_later_misfits_stop_their_table_alone(spark: SparkSession, tmp_path: Path) -> None:
    lake = made(spark, tmp_path)
    lab = lake.lab
    for name in ("shop.t", "shop.u"):
        lab.create(name, COLUMNS)
    lake.cut()
    lab.rename_column("shop.t", "plain", "later")
    lab.insert("shop.u", row(1))
    lab.create("shop.v", {"id": INT, "card": INT})
    lake.cut()

    assert [found["card"] for found in mirror(lake, "shop_u")] == ["****"]
    assert sorted(lake.stopped()) == ["shop.t", "shop.v"]
    assert "called plain" in lake.stopped()["shop.t"]
    assert "RENAME COLUMN plain TO later" in lake.stopped()["shop.t"]
    assert "'****' is no int" in lake.stopped()["shop.v"]


def test_other_rules_for_columns_that_are_there_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    lake = made(spark, tmp_path)
    lake.lab.create("shop.t", COLUMNS)
    lake.lab.create("shop.plain", {"id": INT, "x": text()})
    lake.cut()

    def reopened(**changed: Any) -> HeldLake:
        return HeldLake(spark, lake.path, lake.lab, tables=(("shop.*", tuple({**RULES, **changed}.items())),))

    with pytest.raises(SinkError, match=r"email: hash \w+, now hash \w+"):
        reopened(hash=(("email", Secret("other")),))
    with pytest.raises(SinkError, match="pin: left out, now as it is"):
        reopened(exclude=())
    with pytest.raises(SinkError, match=r"where \(id > 1\)"):
        reopened(where="id > 1")
    again = reopened(mask=(("card", "****"), ("soon", "!")))
    again.lab.add("shop.t", "soon", text())
    again.lab.insert("shop.t", row(1, soon="x"))
    again.cut()
    assert [found["soon"] for found in mirror(again)] == ["!"]


def test_rules_for_a_table_that_had_none_hold_for_columns_to_come(spark: SparkSession, tmp_path: Path) -> None:
    lake = made(spark, tmp_path, {"mirror_deletes": "hard"})
    lake.lab.create("shop.t", {"id": INT, "a": text()})
    lake.cut()
    tables = (("shop.t", (("mask", (("b", "*"),)),)),)
    again = HeldLake(spark, lake.path, lake.lab, tables=tables)
    again.lab.add("shop.t", "b", text())
    again.lab.insert("shop.t", {"id": 1, "a": "a", "b": "b"})
    again.cut()
    assert mirror(again) == [{"id": 1, "a": "a", "b": "*"}]


def test_rules_for_columns_of_a_table_that_had_none_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    lake = made(spark, tmp_path, {"mirror_deletes": "hard"})
    lake.lab.create("shop.t", {"id": INT, "a": text()})
    lake.cut()
    late = HeldLake(spark, lake.path, lake.lab, tables=(("shop.t", (("mask", (("a", "*"),)),)),))
    late.lab.insert("shop.t", {"id": 2, "a": "a"})
    with pytest.raises(SinkError, match=r"a: as it is, now mask '\*'"):
        late.cut()
    assert mirror(lake) == []


def test_of_wanted_columns_alone_a_renamed_one_stays_wanted() -> None:
    settings = DeltaSettings(path="lake", mirror=None, tables=(("shop.*", (("columns", ("id", "a")),)),))
    dry, lab = DeltaDryRun(settings), Lab()
    lab.create("shop.t", {"id": INT, "a": INT, "b": INT})
    dry.take(lab.cut())
    lab.rename_column("shop.t", "a", "c")
    lab.rename_column("shop.t", "b", "a")
    (found,) = dry.take(lab.cut())

    assert (found.effects, found.stopped) == (("a is renamed to c",), None)


def test_a_dry_run_shows_shaped_columns_and_what_does_not_fit() -> None:
    rules = (*RULES.items(), ("compute", (("both", "card || note"),)), ("where", "id > 1"))
    dry, lab = DeltaDryRun(DeltaSettings(path="lake", mirror=None, tables=(("shop.*", rules),))), Lab()
    lab.create("shop.t", COLUMNS)
    made_of = dry.take(lab.cut())[0].effects
    lab.add("shop.t", "extra", INT)
    lab.drop_column("shop.t", "pin")
    added = dry.take(lab.cut())
    lab.rename_column("shop.t", "plain", "later")
    stopped = dry.take(lab.cut())

    shown = "id integer, card string, email string, note string, plain string"
    assert made_of[0].endswith(shown)
    assert made_of[1:] == ("computed columns: both = card || note", "takes the rows where id > 1")
    assert [effect for one in added for effect in one.effects] == ["extra integer is added"]
    assert "called plain" in str(stopped[0].stopped)
