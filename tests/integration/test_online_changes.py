"""Online schema changes, by the statements of the tools on real servers: one table, one history, one pair of targets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import pytest

from connectors.recovery.overriding import override
from databases.online_tools import gh_ost, pt_osc, spirit, vitess
from databases.servers import Server
from historian.names import TableName
from replicas.tracked import Tracked

CREATE = "id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(20), KEY (b)"
ALTER = "ADD COLUMN c VARCHAR(9) NOT NULL DEFAULT 'new' AFTER id, MODIFY a BIGINT NOT NULL, DROP COLUMN b, ADD d INT"


@pytest.fixture(params=["mysql9", "mysql8", "mariadb118"])
def source(request: pytest.FixtureRequest) -> Server:
    """A server of each kind."""
    server: Server = request.getfixturevalue(request.param)
    return server


def _edits(tracked: Tracked) -> list[list[str]]:
    with tracked.tracker() as tracker:
        return [
            [edit.kind for edit in version.edits]
            for plan in tracker.store.plans()
            for table in plan.tables
            for version in table.versions
            if version.place is not None
        ]


TOOLS = [
    *((kind, tool) for kind in ("mysql9", "mariadb118") for tool in (gh_ost, pt_osc)),
    ("mysql8", gh_ost),
    ("mysql9", spirit),
    ("mysql9", vitess),
]


@pytest.mark.parametrize("source,tool", TOOLS, indirect=["source"])
def test_a_swap_is_a_change_of_one_table(
    source: Server, database: str, tracked: Tracked, tool: Callable[..., None]
) -> None:
    source.sql(f"CREATE TABLE {database}.t ({CREATE})")
    source.sql(f"INSERT INTO {database}.t VALUES (1, 1, 'x'), (2, 2, 'y')")

    def writes() -> None:
        source.sql(f"UPDATE {database}.t SET a = 20 WHERE id = 2")

    tool(source, database, "t", ALTER, writes=writes)
    source.sql(f"INSERT INTO {database}.t VALUES (3, 'z', 3, 33)")
    source.sql(f"UPDATE {database}.t SET a = 10 WHERE id = 1")

    with tracked.tracker() as tracker:
        assert tracked.news(tracker) == {
            "t": [
                ("+A", {"id": 1, "a": 1, "b": "x"}),
                ("+A", {"id": 2, "a": 2, "b": "y"}),
                ("-C", {"id": 2, "a": 2, "b": "y"}),
                ("+C", {"id": 2, "a": 20, "b": "y"}),
                ("+A", {"id": 3, "c": "z", "a": 3, "d": 33}),
                ("-C", {"id": 1, "c": "new", "a": 1, "d": None}),
                ("+C", {"id": 1, "c": "new", "a": 10, "d": None}),
            ]
        }
        assert tracked.stopped(tracker) == {}
        versions = tracker.history.versions(TableName(database, "t"))
        assert len({version.table_id for version in versions}) == 1
        first, last = versions[0].snapshot, versions[-1].snapshot
        assert first is not None
        assert last is not None
        ids = {column.name: column.id for column in first.columns}
        assert [column.name for column in last.columns] == ["id", "c", "a", "d"]
        assert [column.id for column in last.columns if column.name in ids] == [ids["id"], ids["a"]]
        assert not {column.id for column in last.columns if column.name not in ids} & set(ids.values())
        shadows = [n for n in tracker.history.catalog.tables if n.database == database and n.table != "t"]
        assert shadows == []
    assert _edits(tracked) == [
        ["create_table"],
        ["drop_column", "change_type", "add_column", "add_column"],
    ]


@pytest.mark.parametrize("tool", [gh_ost, pt_osc])
@pytest.mark.parametrize("source", ["mysql9", "mariadb118"], indirect=True)
def test_a_column_that_was_dropped_and_added_holds_what_the_tool_copied(
    source: Server, database: str, tracked: Tracked, tool: Callable[..., None]
) -> None:
    """Rows from before as they are read at the end: those of a reader that knows no more than the log."""
    source.sql(f"CREATE TABLE {database}.t ({CREATE})")
    source.sql(f"INSERT INTO {database}.t VALUES (1, 1, 'x')")
    tool(source, database, "t", "DROP COLUMN a, ADD COLUMN a VARCHAR(5) DEFAULT 'new'")
    ((held,),) = source.sql(f"SELECT a FROM {database}.t")

    with tracked.tracker() as tracker:
        tracker.catch_up()
        assert tracked.stopped(tracker) == {}
        before, after = (
            version.snapshot.column("a")
            for version in tracker.history.versions(TableName(database, "t"))
            if version.snapshot is not None
        )
    assert before is not None
    assert after is not None
    carried = "1" if after.id == before.id else after.initial
    assert carried == held == {gh_ost: "new", pt_osc: "1"}[tool]


COPIES = {
    "as gh-ost": ("DROP COLUMN a, ADD COLUMN a INT NOT NULL DEFAULT 7", "(id, b) SELECT id, b", False),
    "one value": ("DROP COLUMN a, ADD COLUMN a INT NOT NULL DEFAULT 7", "(id, b, a) SELECT id, b, a", True),
    "NULL": ("ADD COLUMN c INT DEFAULT 7", "(id, a, b, c) SELECT id, a, b, NULL", True),
    "times": ("ADD COLUMN c TIME(3) DEFAULT '10:11:12.5'", "(id, a, b) SELECT id, a, b", False),
    "defaults": ("ADD COLUMN c DECIMAL(5,2) DEFAULT 1, ADD d BIT(3) DEFAULT 5", "(id, a, b) SELECT id, a, b", False),
}


@pytest.mark.parametrize("case", list(COPIES))
@pytest.mark.parametrize("row_image", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("source", ["mysql9", "mariadb118"], indirect=True)
def test_what_a_tool_copied_is_compared_with_what_it_is_known_to_copy(
    source: Server, database: str, tracked: Tracked, case: str, row_image: str
) -> None:
    """A tool of gh-ost's names and marks that copies otherwise than gh-ost stops the table, whatever its reasons."""
    alter, copied, stops = COPIES[case]
    source.sql(f"CREATE TABLE {database}.t ({CREATE})")
    source.sql(f"INSERT INTO {database}.t VALUES (1, 7, 'x'), (2, 2, 'y')")
    source.sql(f"CREATE TABLE {database}._t_ghc (id INT PRIMARY KEY)")
    source.sql(f"CREATE TABLE {database}._t_gho LIKE {database}.t")
    source.sql(f"ALTER TABLE {database}._t_gho {alter}")
    connected = contextlib.closing(source.connect(init_command=f"SET binlog_row_image = {row_image}"))
    with connected as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT IGNORE INTO {database}._t_gho {copied} FROM {database}.t")
        connection.commit()
    source.sql(f"create /* gh-ost */ table {database}._t_del (id INT PRIMARY KEY)")
    source.sql(f"drop /* gh-ost */ table {database}._t_del")
    source.sql(f"rename /* gh-ost */ table {database}.t to {database}._t_del, {database}._t_gho to {database}.t")

    with tracked.tracker() as tracker:
        tracker.catch_up()
        stopped = tracked.stopped(tracker)
    assert [*stopped] == (["t"] if stops else [])
    assert all("rows were copied into it with" in reason for reason in stopped.values())


PARTS = {
    "gh-ost": ("CREATE TABLE _t_ghc (id INT PRIMARY KEY)", "_t_gho", "RENAME TABLE t TO _t_del, _t_gho TO t"),
    "pt-online-schema-change": (
        "CREATE TRIGGER pt_osc_{0}_t_del AFTER DELETE ON t FOR EACH ROW SET @gone = OLD.id",
        "_t_new",
        "RENAME TABLE t TO _t_old, _t_new TO t",
    ),
    "spirit": ("CREATE TABLE _t_chkpnt (id INT PRIMARY KEY)", "_t_new", "RENAME TABLE t TO _t_old, _t_new TO t"),
    "vitess": (
        "DO 0",
        "_vt_vrp_6ace8bcef73211ea87e9f875a4d24e90_20260102030405_",
        (
            "RENAME TABLE t TO _vt_hld_7bce8bcef73211ea87e9f875a4d24e91_20260102030406_, "
            "_vt_vrp_6ace8bcef73211ea87e9f875a4d24e90_20260102030405_ TO t"
        ),
    ),
}


@pytest.mark.parametrize("tool", list(PARTS))
@pytest.mark.parametrize("source", ["mysql9", "mariadb118"], indirect=True)
def test_a_swap_by_hand_beside_what_a_tool_left_over_is_no_change_of_the_table(
    source: Server, database: str, tracked: Tracked, tool: str
) -> None:
    """Part of the rows are in the new table, which has another identity: it stops, and does not go on with the old rows."""
    left_over, shadow, swap = PARTS[tool]
    made = (left_over, f"CREATE TABLE {shadow} LIKE t", f"INSERT INTO {shadow} SELECT * FROM t WHERE id >= 3", swap)
    _is_of_two_tables(source, database, tracked, made)


PT_TRIGGERS = tuple(
    f"CREATE TRIGGER pt_osc_{{0}}_t_{end} AFTER {change} ON t FOR EACH ROW DELETE IGNORE FROM _t_new WHERE id = {row}.id"
    for end, change, row in (("del", "DELETE", "OLD"), ("upd", "UPDATE", "OLD"), ("ins", "INSERT", "NEW"))
)
KILLED = {
    "gh-ost": (
        (
            "create /* gh-ost */ table _t_ghc (id INT PRIMARY KEY, hint VARCHAR(64), value VARCHAR(64))",
            "create /* gh-ost */ table _t_gho LIKE t",
            "insert /* gh-ost */ into _t_ghc VALUES (2, 'state', 'GhostTableMigrated')",
        ),
        "_t_gho",
        "rename /* gh-ost */ table t to _t_del, _t_gho to t",
    ),
    "pt-online-schema-change": (
        ("CREATE TABLE _t_new LIKE t", *PT_TRIGGERS),
        "_t_new",
        "RENAME TABLE t TO _t_old, _t_new TO t",
    ),
    "spirit": (
        ("CREATE TABLE _t_new LIKE t", "CREATE TABLE _t_chkpnt (id INT PRIMARY KEY)"),
        "_t_new",
        "RENAME TABLE t TO _t_old, _t_new TO t",
    ),
}


@pytest.mark.parametrize("tool", list(KILLED))
@pytest.mark.parametrize("source", ["mysql9", "mariadb118"], indirect=True)
def test_the_shadow_of_a_run_that_was_killed_while_it_copied_is_no_change_of_the_table(
    source: Server, database: str, tracked: Tracked, tool: str
) -> None:
    """All marks of the tool are there, and somebody swaps by hand before it has copied all rows."""
    begun, shadow, swap = KILLED[tool]
    made = (*begun, f"INSERT IGNORE INTO {shadow} SELECT * FROM t WHERE id < 3", swap)
    _is_of_two_tables(source, database, tracked, made)


def _is_of_two_tables(source: Server, database: str, tracked: Tracked, swap: Sequence[str]) -> None:
    """Behind a table t of three rows and the statements of *swap*, t has stopped, and two tables have had its name."""
    with contextlib.closing(source.connect(database=database)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE t ({CREATE})")
        cursor.execute("INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z')")
        for statement in swap:
            cursor.execute(statement.format(database))
        connection.commit()

    with tracked.tracker() as tracker:
        tracker.catch_up()
        assert ["t"] == [*tracked.stopped(tracker)]
        versions = tracker.history.versions(TableName(database, "t"))
        assert len({version.table_id for version in versions}) == 2


@pytest.mark.parametrize("source", ["mysql9", "mariadb118"], indirect=True)
def test_a_run_may_end_plans_later_than_it_has_copied(source: Server, database: str, tracked: Tracked) -> None:
    """What shows that all rows were copied is remembered."""
    source.sql(f"CREATE TABLE {database}.t ({CREATE})")
    source.sql(f"INSERT INTO {database}.t VALUES (1, 1, 'x')")
    source.sql(f"CREATE TABLE {database}._t_new LIKE {database}.t")
    for trigger in PT_TRIGGERS:
        source.sql(
            trigger.format(database).replace(" t ", f" {database}.t ").replace("TRIGGER ", f"TRIGGER {database}.")
        )
    source.sql(f"INSERT IGNORE INTO {database}._t_new SELECT * FROM {database}.t")
    source.sql(f"ANALYZE TABLE `{database}`.`_t_new` /* pt-online-schema-change */")
    with tracked.tracker() as tracker:
        tracker.catch_up()
    source.sql(f"RENAME TABLE {database}.t TO {database}._t_old, {database}._t_new TO {database}.t")
    with tracked.tracker() as tracker:
        tracker.catch_up()
        assert tracked.stopped(tracker) == {}
        versions = tracker.history.versions(TableName(database, "t"))
        assert len({version.table_id for version in versions}) == 1


@pytest.mark.parametrize("source", ["mysql9", "mariadb118"], indirect=True)
def test_a_run_that_was_given_up_changes_nothing_and_two_in_a_row_are_two_changes(
    source: Server, database: str, tracked: Tracked
) -> None:
    source.sql(f"CREATE TABLE {database}.t ({CREATE})")
    source.sql(f"INSERT INTO {database}.t VALUES (1, 1, 'x')")
    gh_ost(source, database, "t", "ADD x INT", abort_before="cut-over")
    pt_osc(source, database, "t", "ADD y INT", abort=True)
    gh_ost(source, database, "t", "ADD z INT", two_step=True, abort_before="second")
    gh_ost(source, database, "t", "ADD c INT", keep_old=True)
    gh_ost(source, database, "t", "ADD d INT DEFAULT 4, DROP c", two_step=True)
    pt_osc(source, database, "t", "ADD c INT FIRST")
    source.sql(f"INSERT INTO {database}.t VALUES (9, 2, 2, 'y', 5)")

    with tracked.tracker() as tracker:
        assert tracked.news(tracker) == {
            "t": [("+A", {"id": 1, "a": 1, "b": "x"}), ("+A", {"c": 9, "id": 2, "a": 2, "b": "y", "d": 5})]
        }
        assert tracked.stopped(tracker) == {}
        versions = tracker.history.versions(TableName(database, "t"))
        assert len({version.table_id for version in versions}) == 1
        added = [c.id for v in versions if v.snapshot is not None for c in v.snapshot.columns if c.name == "c"]
        assert len(set(added)) == 2, "a column that was dropped and added again is another one"


@pytest.mark.parametrize("source", ["mysql9"], indirect=True)
def test_plans_may_end_between_the_two_steps(source: Server, database: str, tracked: Tracked) -> None:
    source.sql(f"CREATE TABLE {database}.t ({CREATE})")
    source.sql(f"CREATE TABLE {database}._t_ghc (id BIGINT PRIMARY KEY)")
    source.sql(f"CREATE TABLE {database}._t_gho LIKE {database}.t")
    source.sql(f"ALTER TABLE {database}._t_gho ADD c INT")
    source.sql(f"INSERT INTO {database}.t VALUES (1, 1, 'x')")
    with tracked.tracker() as tracker:
        tracker.catch_up()
    source.sql(f"ALTER TABLE {database}.t RENAME {database}._t_del")
    with tracked.tracker() as tracker:
        tracker.catch_up()
        assert tracked.stopped(tracker) == {}
    source.sql(f"CREATE TABLE {database}.u (id INT PRIMARY KEY)")
    source.sql(f"INSERT INTO {database}.u VALUES (1)")
    with tracked.tracker() as tracker:
        after = tracker.catch_up()
    source.sql(f"alter /* gh-ost */ table {database}._t_gho rename {database}.t")
    source.sql(f"INSERT INTO {database}.t VALUES (2, 2, 'y', 3)")
    with tracked.tracker() as tracker:
        assert tracked.news(tracker, after) == {"t": [("+A", {"id": 2, "a": 2, "b": "y", "c": 3})]}
        assert tracked.stopped(tracker) == {}


@pytest.mark.parametrize("two_step", [False, True])
@pytest.mark.parametrize("source", ["mysql9"], indirect=True)
def test_a_renamed_column_stops_the_table_until_it_is_said_what_became_of_it(
    source: Server, database: str, tracked: Tracked, two_step: bool
) -> None:
    """The tools copy its values or leave them, as they were asked to, and the log does not say which."""
    name = TableName(database, "t")
    source.sql(f"CREATE TABLE {database}.t ({CREATE})")
    source.sql(f"INSERT INTO {database}.t VALUES (1, 1, 'x')")
    gh_ost(source, database, "t", "CHANGE a renamed INT NOT NULL DEFAULT 0, ADD c INT", two_step=two_step)
    source.sql(f"INSERT INTO {database}.t VALUES (2, 2, 'y', 3)")
    with tracked.tracker() as tracker:
        assert tracked.news(tracker) == {"t": [("+A", {"id": 1, "a": 1, "b": "x"})]}
        assert "a became renamed or went" in tracked.stopped(tracker)["t"]
        after = tracker.store.last_plan()
        assert after is not None
        override(tracker, name, "ALTER TABLE t DROP a, ADD renamed INT NOT NULL DEFAULT 0 AFTER id, ADD c INT")
        assert tracked.news(tracker, after.number) == {"t": [("+A", {"id": 2, "renamed": 2, "b": "y", "c": 3})]}
        assert tracked.stopped(tracker) == {}
        versions = tracker.history.versions(name)
        assert len({version.table_id for version in versions}) == 1


@pytest.mark.parametrize("source", ["mysql9"], indirect=True)
def test_nulls_that_are_copied_as_values_stop_the_table(source: Server, database: str, tracked: Tracked) -> None:
    source.sql(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a INT)")
    source.sql(f"INSERT INTO {database}.t VALUES (1, NULL)")
    for statement in (
        "create /* gh-ost */ table {0}._t_ghc (id bigint primary key)",
        "create /* gh-ost */ table {0}._t_gho like {0}.t",
        "alter /* gh-ost */ table {0}._t_gho MODIFY a INT NOT NULL",
        "insert /* gh-ost */ ignore into {0}._t_gho select id, a from {0}.t",
        "create /* gh-ost */ table {0}._t_del (id int primary key)",
        "drop /* gh-ost */ table {0}._t_del",
        "rename /* gh-ost */ table {0}.t to {0}._t_del, {0}._t_gho to {0}.t",
    ):
        source.sql(statement.format(database))
    assert source.sql(f"SELECT a FROM {database}.t") == ((0,),)
    with tracked.tracker() as tracker:
        assert tracked.news(tracker) == {"t": [("+A", {"id": 1, "a": None})]}
        assert "a became NOT NULL, and NULLs in it are copied as other values" in tracked.stopped(tracker)["t"]
        override(tracker, TableName(database, "t"), "ALTER TABLE t MODIFY a INT NOT NULL")
        assert tracked.stopped(tracker) == {}


@pytest.mark.parametrize("source", ["mysql9", "mysql8"], indirect=True)
def test_instant_changes_are_changes(source: Server, database: str, tracked: Tracked) -> None:
    """Rows keep their old form in the table; the log has them in the new one."""
    source.sql(f"CREATE TABLE {database}.t ({CREATE})")
    source.sql(f"INSERT INTO {database}.t VALUES (1, 1, 'x'), (2, 2, 'y')")
    source.sql(f"ALTER TABLE {database}.t ADD c INT DEFAULT 7 FIRST, ALGORITHM=INSTANT")
    source.sql(f"UPDATE {database}.t SET a = 10 WHERE id = 1")
    source.sql(f"ALTER TABLE {database}.t DROP COLUMN a, ALGORITHM=INSTANT")
    source.sql(f"DELETE FROM {database}.t WHERE id = 2")
    with tracked.tracker() as tracker:
        assert tracked.news(tracker)["t"][2:] == [
            ("-C", {"c": 7, "id": 1, "a": 1, "b": "x"}),
            ("+C", {"c": 7, "id": 1, "a": 10, "b": "x"}),
            ("-R", {"c": 7, "id": 2, "b": "y"}),
        ]
        assert tracked.stopped(tracker) == {}
