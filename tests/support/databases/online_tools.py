"""The statements of gh-ost, pt-online-schema-change, Spirit and Vitess, as they run them."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing

from databases.servers import Server

__all__ = ["gh_ost", "pt_osc", "spirit", "vitess"]

_WAIT_S = 10.0
Writes = Callable[[], None]


def _nothing() -> None:
    """Nobody writes meanwhile."""


def _shared(server: Server, database: str, table: str, shadow: str, dropped: Collection[str] = ()) -> str:
    """The columns that both have, by name, but for those *dropped*, which gh-ost leaves out."""
    found = [
        [row[0] for row in server.sql(f"SHOW COLUMNS FROM {database}.{name}") if "GENERATED" not in str(row[5])]
        for name in (table, shadow)
    ]
    return ", ".join(f"`{column}`" for column in found[0] if column in found[1] and column not in dropped)


def gh_ost(
    server: Server,
    database: str,
    table: str,
    alter: str,
    *,
    writes: Writes = _nothing,
    two_step: bool = False,
    abort_before: str = "",
    keep_old: bool = False,
) -> None:
    """A migration; *writes* runs after the copy. *abort_before* "cut-over", or "second" of the two steps, ends it there."""
    ghost, changes, old = (f"{database}._{table}_{end}" for end in ("gho", "ghc", "del"))
    for name in (ghost, changes, old):
        server.sql(f"drop /* gh-ost */ table if exists {name}")
    server.sql(
        f"create /* gh-ost */ table {changes} (id bigint unsigned auto_increment, last_update timestamp not null "
        "DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, hint varchar(64) charset ascii not null, "
        "value varchar(4096) charset ascii not null, primary key(id), unique key hint_uidx(hint)) auto_increment=256"
    )
    server.sql(f"create /* gh-ost */ table {ghost} like {database}.{table}")
    server.sql(f"alter /* gh-ost */ table {ghost} {alter}")
    server.sql(
        f"insert /* gh-ost */ into {changes} (id, hint, value) values (NULLIF(2, 0), 'state', 'GhostTableMigrated') "
        "on duplicate key update last_update=NOW(), value=VALUES(value)"
    )
    dropped = re.findall(r"(?i)\bDROP (?:COLUMN )?(\w+)", alter)
    columns = _shared(server, database, table, f"_{table}_gho", dropped)
    server.sql(
        f"insert /* gh-ost {database}.{table} */ ignore into {ghost} ({columns}) (select {columns} from "
        f"{database}.{table} force index (`PRIMARY`) where (id >= 0) lock in share mode)"
    )
    writes()
    server.sql(f"delete /* gh-ost {ghost} */ from {ghost} where id not in (select id from {database}.{table})")
    server.sql(f"replace /* gh-ost {ghost} */ into {ghost} ({columns}) select {columns} from {database}.{table}")
    if abort_before == "cut-over":
        server.sql(f"drop /* gh-ost */ table if exists {changes}")
        server.sql(f"drop /* gh-ost */ table if exists {ghost}")
        return
    if two_step:
        server.sql(
            f"alter /* gh-ost */ table {database}.{table} rename _{table}_del".replace("rename ", f"rename {database}.")
        )
        if abort_before == "second":
            server.sql(f"alter /* gh-ost */ table {old} rename {database}.{table}")
            server.sql(f"drop /* gh-ost */ table if exists {changes}, {ghost}")
            return
        server.sql(f"alter /* gh-ost */ table {ghost} rename {database}.{table}")
    else:
        _atomic_cut_over(server, f"{database}.{table}", ghost, old)
    server.sql(f"drop /* gh-ost */ table if exists {changes}")
    if not keep_old:
        server.sql(f"drop /* gh-ost */ table if exists {old}")


def _atomic_cut_over(server: Server, table: str, ghost: str, old: str) -> None:
    server.sql(
        f"create /* gh-ost */ table {old} (id int auto_increment primary key) engine=InnoDB comment='ghost-cut-over-sentry'"
    )
    with closing(server.connect()) as locking, locking.cursor() as cursor:
        cursor.execute(f"lock /* gh-ost */ tables {table} write, {old} write")
        rename = f"rename /* gh-ost */ table {table} to {old}, {ghost} to {table}"
        renaming = threading.Thread(target=server.sql, args=(rename,))
        renaming.start()
        _until_waiting(server, rename)
        cursor.execute(f"drop /* gh-ost */ table if exists {old}")
        cursor.execute("unlock tables")
    renaming.join()


def _until_waiting(server: Server, statement: str) -> None:
    deadline_s = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline_s:
        if any(row[7] == statement and "lock" in str(row[6]) for row in server.sql("SHOW FULL PROCESSLIST")):
            return
        time.sleep(0.01)
    raise AssertionError(f"not waiting for a lock: {statement}")


def pt_osc(
    server: Server, database: str, table: str, alter: str, *, writes: Writes = _nothing, abort: bool = False
) -> None:
    """A run of pt-online-schema-change; *writes* runs while the triggers stand."""
    new, old = f"{database}._{table}_new", f"{database}._{table}_old"
    ((_, created),) = server.sql(f"SHOW CREATE TABLE {database}.{table}")
    server.sql(created.replace(f"CREATE TABLE `{table}`", f"CREATE TABLE `{database}`.`_{table}_new`", 1))
    server.sql(f"ALTER TABLE {new} {alter}")
    columns = _shared(server, database, table, f"_{table}_new")
    news = columns.replace("`", "NEW.`", 1).replace(", `", ", NEW.`")
    trigger = f"{database}.pt_osc_{database}_{table}"
    server.sql(
        f"CREATE TRIGGER {trigger}_del AFTER DELETE ON {database}.{table} FOR EACH ROW DELETE IGNORE FROM {new} "
        f"WHERE {new}.`id` <=> OLD.`id`"
    )
    server.sql(
        f"CREATE TRIGGER {trigger}_upd AFTER UPDATE ON {database}.{table} FOR EACH ROW BEGIN DELETE IGNORE FROM {new} "
        f"WHERE !(OLD.`id` <=> NEW.`id`) AND {new}.`id` <=> OLD.`id`; REPLACE INTO {new} ({columns}) VALUES ({news}); END"
    )
    server.sql(
        f"CREATE TRIGGER {trigger}_ins AFTER INSERT ON {database}.{table} FOR EACH ROW REPLACE INTO {new} ({columns}) "
        f"VALUES ({news})"
    )
    server.sql(
        f"INSERT LOW_PRIORITY IGNORE INTO {new} ({columns}) SELECT {columns} FROM {database}.{table} LOCK IN SHARE MODE "
        "/*pt-online-schema-change 4711 copy table*/"
    )
    writes()
    if not abort:
        server.sql(f"ANALYZE TABLE {new} /* pt-online-schema-change */")
        server.sql(f"RENAME TABLE {database}.{table} TO {old}, {new} TO {database}.{table}")
        server.sql(f"DROP TABLE IF EXISTS {old}")
    for end in ("del", "upd", "ins"):
        server.sql(f"DROP TRIGGER IF EXISTS {trigger}_{end}")
    if abort:
        server.sql(f"DROP TABLE IF EXISTS {new}")


def spirit(server: Server, database: str, table: str, alter: str, *, writes: Writes = _nothing) -> None:
    """A migration by Spirit; its checkpoint table too."""
    shadow = f"_{table}_new"
    _shadow(server, database, table, shadow, alter)
    server.sql(f"CREATE TABLE {database}._{table}_chkpnt (id BIGINT AUTO_INCREMENT PRIMARY KEY, copier_watermark TEXT)")
    _filled(server, database, table, shadow, writes)
    server.sql(f"ANALYZE TABLE `{database}`.`{shadow}`")
    server.sql(f"INSERT INTO {database}._{table}_chkpnt (copier_watermark) VALUES ('x')")
    server.sql(
        f"RENAME TABLE {database}.{table} TO {database}._{table}_old, {database}._{table}_new TO {database}.{table}"
    )
    server.sql(f"DROP TABLE IF EXISTS {database}._{table}_old")
    server.sql(f"DROP TABLE IF EXISTS {database}._{table}_chkpnt")


def vitess(server: Server, database: str, table: str, alter: str, *, writes: Writes = _nothing) -> None:
    """An online DDL of Vitess: the tables change their names in a round, over a third one."""
    shadow = "_vt_vrp_6ace8bcef73211ea87e9f875a4d24e90_20260102030405_"
    third = "_vt_hld_7bce8bcef73211ea87e9f875a4d24e91_20260102030406_"
    _shadow(server, database, table, shadow, alter)
    _filled(server, database, table, shadow, writes)
    pairs: Sequence[tuple[str, str]] = ((table, third), (shadow, table), (third, shadow))
    server.sql("RENAME TABLE " + ", ".join(f"`{database}`.`{old}` TO `{database}`.`{new}`" for old, new in pairs))
    server.sql(f"RENAME TABLE `{database}`.`{shadow}` TO `{database}`.`{third}`")
    server.sql(f"DROP TABLE `{database}`.`{third}`")


def _shadow(server: Server, database: str, table: str, shadow: str, alter: str) -> None:
    server.sql(f"CREATE TABLE `{database}`.`{shadow}` LIKE `{database}`.`{table}`")
    server.sql(f"ALTER TABLE `{database}`.`{shadow}` {alter}")


def _filled(server: Server, database: str, table: str, shadow: str, writes: Writes) -> None:
    columns = _shared(server, database, table, shadow)
    server.sql(f"INSERT IGNORE INTO `{database}`.`{shadow}` ({columns}) SELECT {columns} FROM {database}.{table}")
    writes()
    server.sql(f"DELETE FROM `{database}`.`{shadow}` WHERE id NOT IN (SELECT id FROM {database}.{table})")
    server.sql(f"REPLACE INTO `{database}`.`{shadow}` ({columns}) SELECT {columns} FROM {database}.{table}")
