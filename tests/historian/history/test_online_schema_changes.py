"""Which tables are a tool's own, and what a swap is to the one table that people know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from historian.ddl import StatementContext, resolve
from historian.history.online_schema_changes import NO_TOOLS, TOOLS, OnlineChanges, Swap
from historian.names import TableName
from historian.schema.applying import apply_all
from historian.schema.edits import Edit
from historian.schema.snapshots import TRIGGER, Catalog, Snapshot

CHANGES = OnlineChanges()
CONTEXT = StatementContext(database="shop", version=80400)
VITESS = "_vt_vrp_6ace8bcef73211ea87e9f875a4d24e90_20260102030405_"
T = TableName("shop", "t")


MARKS = {TableName("shop", "_t_ghc"): "not looked at", TableName("shop", "pt_osc_shop_t_ins"): TRIGGER}
"""What the tools have in a database while they change its table t."""


class Log:
    """Statements one after the other, as a walk takes them."""

    def __init__(self, *statements: str, changes: OnlineChanges = CHANGES) -> None:
        self.catalog = Catalog(unknown=MARKS)
        self.changes = changes
        self.created: dict[int, Snapshot] = {}
        self.named: dict[TableName, int] = {}
        self.swap: Swap | None = None
        self.edits: tuple[Edit, ...] = ()
        self.run(*statements)

    def run(self, *statements: str) -> Log:
        for sql in statements:
            resolution = resolve(sql, CONTEXT, self.catalog)
            assert resolution.kind == "ddl", resolution.reason
            self.edits = resolution.edits
            self.swap = self.changes.swap(
                self.edits,
                self.catalog,
                self.created.get,
                self.named.get,
                sql=f"{sql} /* gh-ost */",
                last_changed=lambda name: int(name not in self.catalog.tables),
            )
            if self.swap is not None:
                self.edits = self.swap.edits
            self.catalog = apply_all(self.edits, self.catalog)
            for name, snapshot in self.catalog.tables.items():
                self.created.setdefault(snapshot.table_id, snapshot)
                self.named[name] = snapshot.table_id
        return self

    @property
    def table(self) -> Snapshot:
        return self.catalog.tables[T]


def _kinds(edits: tuple[Edit, ...]) -> list[str]:
    return [edit.kind for edit in edits]


CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9), UNIQUE KEY u (a), KEY k (b))"


@pytest.mark.parametrize(
    "name",
    ["_t_gho", "_t_ghc", "_t_del", "_t_20260102030405_del", "_t_new", "__t_new", "_t_old", "_t_chkpnt", VITESS],
)
def test_a_tools_own_tables_are_known_by_name(name: str) -> None:
    assert CHANGES.owns(TableName("shop", name))
    assert not NO_TOOLS.owns(TableName("shop", name))


@pytest.mark.parametrize("name", ["t", "t_new", "_t", "new", "_gho", "t_del", "_vt_prices", "_t_newer"])
def test_other_tables_are_not(name: str) -> None:
    assert not CHANGES.owns(TableName("shop", name))


@pytest.mark.parametrize(
    "shadow,rename",
    [
        ("_t_gho", "RENAME TABLE t TO _t_del, _t_gho TO t"),
        ("__t_new", "RENAME TABLE t TO __t_old, __t_new TO t"),
        (VITESS, f"RENAME TABLE t TO third, {VITESS} TO t, third TO {VITESS}"),
        ("_t_gho", "RENAME TABLE t TO kept_for_later, _t_gho TO t"),
    ],
)
def test_a_swap_is_what_the_alter_would_have_been(shadow: str, rename: str) -> None:
    alter = "ADD c INT NOT NULL DEFAULT 5 FIRST, MODIFY a BIGINT, DROP KEY k, ADD KEY k2 (c, b)"
    plain = Log(CREATE, f"ALTER TABLE t {alter}")
    log = Log(CREATE, f"CREATE TABLE {shadow} LIKE t", f"ALTER TABLE {shadow} {alter}")
    before = log.table
    log.run(rename)

    assert (before.table_id, [c.id for c in before.columns]) == (
        log.table.table_id,
        [log.table.column(name).id for name in ("id", "a", "b")],  # type: ignore[union-attr]
    )
    assert [replace(c, id=0) for c in plain.table.columns] == [replace(c, id=0) for c in log.table.columns]
    assert sorted(_kinds(plain.edits)) == sorted(_kinds(log.edits)[1:-1])
    left = next(s for n, s in log.catalog.tables.items() if n != T)
    assert [c.name for c in left.columns] == ["id", "a", "b"]
    assert not {c.id for c in left.columns} & {c.id for c in (*before.columns, *log.table.columns)}
    assert len(log.catalog.tables) == 2


def test_defaults_that_old_rows_read_stay_through_later_swaps() -> None:
    shadow = ("CREATE TABLE _t_gho LIKE t", "ALTER TABLE _t_gho ADD c INT DEFAULT 5")
    log = Log(CREATE, *shadow, "RENAME TABLE t TO _t_del, _t_gho TO t", "DROP TABLE _t_del")
    log.run("CREATE TABLE _t_gho LIKE t", "RENAME TABLE t TO _t_del, _t_gho TO t")

    assert _kinds(log.edits) == ["drop_table", "create_table"]
    column = log.table.column("c")
    assert column is not None
    assert (column.initial, column.initial_known) == ("5", True)


@pytest.mark.parametrize(
    "column,known",
    [
        ("c INT", (None, True)),
        ("c INT NOT NULL", ("0", True)),
        ("c VARCHAR(3) NOT NULL DEFAULT 'x'", ("x", True)),
        ("c DATETIME DEFAULT CURRENT_TIMESTAMP", (None, False)),
        ("c BIGINT AUTO_INCREMENT UNIQUE", (None, False)),
    ],
)
@pytest.mark.parametrize("like", [True, False])
def test_rows_that_were_copied_hold_what_the_server_gave_them(
    column: str, known: tuple[str | None, bool], like: bool
) -> None:
    if like:
        shadow = ("CREATE TABLE _t_new LIKE t", f"ALTER TABLE _t_new ADD {column}")
    else:
        shadow = (f"CREATE TABLE _t_new (id INT PRIMARY KEY, {column})",)
    log = Log("CREATE TABLE t (id INT PRIMARY KEY)", *shadow, "RENAME TABLE t TO _t_old, _t_new TO t")

    added = log.table.column("c")
    assert added is not None
    assert (added.initial, added.initial_known) == known


@pytest.mark.parametrize("change", ["DROP a, ADD a VARCHAR(5) DEFAULT 'n'", "DROP a, ADD A VARCHAR(5) DEFAULT 'n'"])
def test_gh_ost_leaves_a_column_empty_that_was_dropped_and_added(change: str) -> None:
    """Its copy takes no column that the ALTER dropped (getSharedColumns in go/logic/inspect.go)."""
    log = Log(CREATE)
    old = log.table.column("a")
    log.run("CREATE TABLE _t_gho LIKE t", f"ALTER TABLE _t_gho {change}", "RENAME TABLE t TO _t_del, _t_gho TO t")

    new = log.table.column("a")
    assert old is not None
    assert new is not None
    assert new.id != old.id
    assert (new.initial, new.initial_known) == ("n", True)


def test_pt_online_schema_change_copies_a_column_that_was_dropped_and_added() -> None:
    log = Log(CREATE)
    old = log.table.column("a")
    log.run(
        "CREATE TABLE _t_new LIKE t", "ALTER TABLE _t_new DROP a, ADD a BIGINT", "RENAME TABLE t TO _t_old, _t_new TO t"
    )

    new = log.table.column("a")
    assert old is not None
    assert new is not None
    assert (new.id, new.type.name) == (old.id, "bigint")


@pytest.mark.parametrize(
    "shadow,change",
    [
        (VITESS, "DROP a, ADD a VARCHAR(5)"),
        ("_t_gho", "DROP a, CHANGE b a VARCHAR(9)"),
        ("_t_new", "DROP a, CHANGE b a VARCHAR(9)"),
        ("_t_new", "MODIFY g INT"),
    ],
)
def test_whether_values_went_into_another_column_of_that_name_is_asked(shadow: str, change: str) -> None:
    exchange = f", aside TO {shadow}" if shadow == VITESS else ""
    log = Log(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9), g INT AS (a + 1) STORED)",
        f"CREATE TABLE {shadow} LIKE t",
        f"ALTER TABLE {shadow} {change.replace('DROP a', 'DROP g, DROP a')}",
        f"RENAME TABLE t TO aside, {shadow} TO t{exchange}",
    )
    assert log.swap is not None
    assert "the log does not say whether values were copied" in log.swap.refused


def test_gh_ost_leaves_a_column_empty_that_was_generated() -> None:
    log = Log("CREATE TABLE t (id INT PRIMARY KEY, g INT AS (id + 1) STORED)")
    old = log.table.column("g")
    log.run("CREATE TABLE _t_gho LIKE t", "ALTER TABLE _t_gho MODIFY g INT", "RENAME TABLE t TO _t_del, _t_gho TO t")

    new = log.table.column("g")
    assert old is not None
    assert new is not None
    assert (new.id != old.id, new.initial, new.initial_known) == (True, None, True)


def test_two_steps_are_one_change_too() -> None:
    log = Log(CREATE, "CREATE TABLE _t_gho LIKE t", "ALTER TABLE _t_gho ADD c INT")
    table_id = log.table.table_id
    log.run("ALTER TABLE t RENAME _t_del")
    assert CHANGES.sets_aside(T, TableName("shop", "_t_del"))
    log.run("ALTER TABLE _t_gho RENAME t")

    assert _kinds(log.edits) == ["drop_table", "rename_table", "add_column", "create_table"]
    assert log.table.table_id == table_id
    assert set(log.catalog.tables) == {T, TableName("shop", "_t_del")}


@pytest.mark.parametrize(
    "shadow,said",
    [
        (("CREATE TABLE _t_gho LIKE t", "ALTER TABLE _t_gho CHANGE b c VARCHAR(9)"), "b became c or went"),
        (("CREATE TABLE _t_gho (id INT PRIMARY KEY, a INT, c VARCHAR(9))",), "b became c or went"),
    ],
)
def test_what_the_log_does_not_tell_is_refused(shadow: tuple[str, ...], said: str) -> None:
    log = Log(CREATE, *shadow, "RENAME TABLE t TO _t_del, _t_gho TO t")

    assert log.swap is not None
    assert said in log.swap.refused
    assert "historian ddl-override CONFIG --table shop.t" in log.swap.refused
    assert T in log.catalog.unknown
    assert set(log.catalog.tables) == {TableName("shop", "_t_del")}


def test_nulls_that_a_tool_copies_as_values_are_told_and_the_schema_is_known() -> None:
    alter = "MODIFY a BIGINT NOT NULL"
    for tool, aside, unseen in (("_t_gho", "_t_del", True), ("_t_new", "_t_old", False)):
        log = Log(CREATE, f"CREATE TABLE {tool} LIKE t", f"ALTER TABLE {tool} {alter}")
        log.run(f"RENAME TABLE t TO {aside}, {tool} TO t")
        assert log.swap is not None
        assert ("a became NOT NULL, and NULLs in it are copied as other values" in log.swap.unseen) == unseen
        assert log.swap.refused == ""
        column = log.catalog.tables[TableName("shop", "t")].column("a")
        assert column is not None
        assert (column.id, column.type.name, column.nullable) == (2, "bigint", False)


@pytest.mark.parametrize(
    "shadow",
    [
        ("CREATE TABLE _t_gho LIKE t", "ALTER TABLE _t_gho DROP b, ADD c VARCHAR(9)"),
        ("CREATE TABLE _t_gho (id INT PRIMARY KEY, a INT, b VARCHAR(9), c VARCHAR(9))",),
        ("CREATE TABLE _t_gho (id INT PRIMARY KEY, a INT)",),
    ],
)
def test_what_it_tells_is_not(shadow: tuple[str, ...]) -> None:
    assert Log(CREATE, *shadow, "RENAME TABLE t TO _t_del, _t_gho TO t").swap == replace(
        Log(CREATE, *shadow, "RENAME TABLE t TO _t_del, _t_gho TO t").swap, refused=""
    )


def test_long_names_are_cut_by_tools() -> None:
    name = "t" * 64
    shadow = f"_{name[:59]}_gho"
    log = Log(f"CREATE TABLE {name} (id INT PRIMARY KEY)", f"CREATE TABLE {shadow} LIKE {name}")
    log.run(f"CREATE TABLE _{name[:59]}_ghc (id INT)")
    log.run(f"RENAME TABLE {name} TO _{name[:59]}_del, {shadow} TO {name}")

    assert log.swap is not None


@pytest.mark.parametrize("end", ["gho", "new"])
def test_a_swap_under_a_tools_names_without_the_tools_marks_is_of_two_tables(end: str) -> None:
    """What somebody filled such a table with by hand is anything."""
    log = Log(CREATE)
    log.catalog = replace(log.catalog, unknown={})
    log.run(f"CREATE TABLE _t_{end} LIKE t", f"RENAME TABLE t TO _t_old, _t_{end} TO t")

    assert log.swap is None
    assert _kinds(log.edits) == ["rename_table", "rename_table"]


def test_triggers_of_a_tool_are_known_by_the_tables_name_as_far_as_it_fits() -> None:
    name = "t" * 60
    log = Log(f"CREATE TABLE {name} (id INT PRIMARY KEY)", f"CREATE TABLE _{name}_new LIKE {name}")
    log.run(f"CREATE TRIGGER {'pt_osc_shop_' + 't' * 48}_ins AFTER INSERT ON {name} FOR EACH ROW SET @a = 1")
    log.run(f"RENAME TABLE {name} TO _{name}_ol, _{name}_new TO {name}")

    assert log.swap is not None


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE _u_gho LIKE t", "RENAME TABLE t TO _t_del, _u_gho TO t"),
        ("CREATE TABLE u LIKE t", "RENAME TABLE t TO x, u TO t, x TO u"),
        ("CREATE TABLE _v_gho LIKE t", "RENAME TABLE _v_gho TO v"),
    ],
)
def test_other_renames_are_renames(statements: tuple[str, ...]) -> None:
    assert Log(CREATE, *statements).swap is None


def test_a_tool_that_is_left_out_is_not_known() -> None:
    changes = OnlineChanges(tuple(tool for tool in TOOLS if tool.name == "vitess"))
    rename = ("CREATE TABLE _t_gho LIKE t", "RENAME TABLE t TO _t_del, _t_gho TO t")

    assert Log(CREATE, *rename, changes=changes).swap is None
