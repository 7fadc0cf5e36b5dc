"""Every row and value of a server against what a connector holds, and every stop against those that the docs name."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adversary.held import Rows
from adversary.lakes import Known, Mirror
from adversary.script import Hashed, Script, Shape
from adversary.stops import stop_of
from historian.names import TableName
from historian.schema.snapshots import Snapshot
from workload.checks import noted_values

__all__ = ["findings", "stops"]


def findings(known: Known, held: Mapping[TableName, Rows], script: Script) -> list[str]:
    """What is wrong, each as a text that begins with its kind; [] where all is as it must be."""
    return [*_stops(known, script), *_tables(known, held, script)]


def stops(known: Known) -> list[tuple[str, str]]:
    """The names of stops, each with the reason in full."""
    return [(stop_of(why) or "unnamed", f"{name}: {why}") for _, name, why in known.stopped]


def _stops(known: Known, script: Script) -> Iterator[str]:
    for stop, text in stops(known):
        if stop == "unnamed":
            yield f"unnamed stop: {text}"
        elif stop not in script.stops and not any(" " in part and part in text for part in script.stops):
            yield f"needless stop: {stop}: {text}"


def _tables(known: Known, held: Mapping[TableName, Rows], script: Script) -> Iterator[str]:
    if script.union:
        yield from _union(known, {name: rows for name, rows in held.items() if name.table == script.union}, script)
    for name, rows in held.items():
        snapshot = known.catalog.tables.get(name)
        table_id = 0 if snapshot is None else snapshot.table_id
        if _has_stopped(known, name, table_id):
            if snapshot is not None and table_id in known.folded and _lacks_a_mirror_alone(known, name, table_id):
                yield from _folded(name, known.folded[table_id], rows)
            continue
        if snapshot is None:
            yield from _unknown(known, name, rows)
            continue
        mirror = known.mirrors.get(snapshot.table_id)
        if name.table == script.union:
            pass
        elif mirror is not None:
            yield from _mirror(name, mirror, snapshot, rows, script)
        elif (snapshot.primary_key or script.said.get("keyless") == "rows") and rows[1]:
            yield f"no mirror: {name} has rows on the server, and no mirror"
        folded = known.folded.get(snapshot.table_id)
        if folded is not None:
            yield from _folded(name, folded, rows)
    yield from _phantoms(known, held)


def _has_stopped(known: Known, name: TableName, table_id: int) -> bool:
    return bool(_reasons(known, name, table_id))


def _lacks_a_mirror_alone(known: Known, name: TableName, table_id: int) -> bool:
    return all(stop_of(why) == "no_key" for why in _reasons(known, name, table_id))


def _reasons(known: Known, name: TableName, table_id: int) -> list[str]:
    return [why for stopped, text, why in known.stopped if (table_id and stopped == table_id) or text == str(name)]


def _unknown(known: Known, name: TableName, rows: Rows) -> Iterator[str]:
    if rows[1]:
        said = known.catalog.unknown.get(name, "nothing is said of it")
        yield f"unknown table: {name} has rows on the server, and did not stop: {said}"


def _phantoms(known: Known, held: Mapping[TableName, Rows]) -> Iterator[str]:
    """Mirrors with rows of tables that are not on the server."""
    names = {snapshot.table_id: name for name, snapshot in known.catalog.tables.items()}
    for table_id, mirror in known.mirrors.items():
        name = names.get(table_id)
        if name in held or _has_stopped(known, name or TableName("", ""), table_id):
            continue
        if _present(mirror).num_rows:
            yield f"phantom: the mirror of table {table_id} ({name}) has rows, and there is no such table on the server"
    for directory, count in known.gone.items():
        if count:
            yield f"phantom: {directory} has {count} rows of a table that was dropped"
        elif directory not in known.ended:
            yield f"silent end: {directory} is not written any more, and nothing says so"


def _mirror(name: TableName, mirror: Mirror, snapshot: Snapshot, rows: Rows, script: Script) -> Iterator[str]:
    names, wanted = rows
    shaped, computed = script.shaped, tuple(script.computed)
    names = names[: len(names) - len(computed)]
    if tuple(c.name for c in snapshot.columns) != names:
        yield f"columns: {name}: the server has {names}, the history {tuple(c.name for c in snapshot.columns)}"
        return
    columns = [c for c in snapshot.columns if c.id in mirror.names]
    shown = [at for at, column in enumerate(names) if shaped.get(column, "") is not None]
    if len(columns) != len(shown):
        if mirror.rows.num_rows or wanted:
            yield f"columns: {name}: the server has {names}, the mirror {tuple(mirror.names.values())}"
        return
    present = _present(mirror)
    cells = [noted_values(present.column(mirror.names[c.id]), c.type) for c in columns]
    cells += [present.column(each).to_pylist() for each in computed]
    found = Counter(zip(*cells, strict=True))
    if shaped:
        kept: Counter = Counter()
        for row, count in wanted.items():
            kept[tuple(_shown(row[at], shaped.get(names[at])) for at in shown)] += count
        wanted, names = kept, tuple(names[at] for at in shown)
    if _differ(wanted, found):
        yield f"values: {name}: {_difference(names, wanted, found)}"


def _union(known: Known, shards: Mapping[TableName, Rows], script: Script) -> Iterator[str]:
    """The one mirror of *shards*, with the database of each, by columns that all have."""
    stopped = {name for _, name, _ in known.stopped}
    if stopped & {f"all.{script.union}", *map(str, shards)} or not shards:
        return
    mirror = next((m for m in known.mirrors.values() if "shard" in m.rows.column_names), None)
    wanted = Counter(
        (name.database, *row) for name, (_, rows) in shards.items() for row in _by_name(name, shards, rows)
    )
    if mirror is None:
        if wanted:
            yield f"no mirror: the shards have {wanted.total()} rows, and there is no mirror of them"
        return
    snapshot = known.catalog.tables[min(shards)]
    present, names = _present(mirror), _common(shards)
    if not set(names) <= set(present.column_names):
        yield f"columns: the shards have {names}, their mirror {present.column_names}"
        return
    types = [column.type for name in names if (column := snapshot.column(name)) is not None]
    cells = [noted_values(present.column(name), kind) for name, kind in zip(names, types, strict=True)]
    found = Counter(zip(present.column("shard").to_pylist(), *cells, strict=True))
    if _differ(wanted, found):
        yield f"values: all.{script.union}: {_difference(('shard', *names), wanted, found)}"


def _common(shards: Mapping[TableName, Rows]) -> tuple[str, ...]:
    first, *others = (names for names, _ in shards.values())
    return tuple(name for name in first if all(name in names for names in others))


def _by_name(name: TableName, shards: Mapping[TableName, Rows], rows: Counter) -> Iterator[tuple[Any, ...]]:
    places = [shards[name][0].index(column) for column in _common(shards)]
    return (tuple(row[at] for at in places) for row in rows.elements())


def _shown(value: Any, shape: Shape) -> Any:
    if value is None:
        return None
    if isinstance(shape, str):
        return shape
    if isinstance(shape, Hashed):
        return hashlib.sha256(f"{shape.salt}{value}".encode()).hexdigest()
    return value[:shape] if isinstance(shape, int) else value


def _folded(name: TableName, folded: tuple[Snapshot, pa.Table], rows: Rows) -> Iterator[str]:
    snapshot, table = folded
    names, wanted = rows
    if tuple(c.name for c in snapshot.columns) != names:
        return
    found = Counter(zip(*(noted_values(table.column(c.name), c.type) for c in snapshot.columns), strict=True))
    if _differ(wanted, found):
        yield f"changelog: {name}: {_difference(names, wanted, found)}"


def _differ(wanted: Counter, found: Counter) -> bool:
    return wanted != found and _plain(wanted) != _plain(found)


def _plain(rows: Counter) -> Counter:
    """Rows by their texts, where equal values are written alike: NaN is itself, and 1 is not True."""
    return Counter({tuple(map(repr, row)): count for row, count in rows.items()})


def _difference(names: tuple[str, ...], wanted: Counter, found: Counter) -> str:
    only_server, only_lake = list((wanted - found).elements()), list((found - wanted).elements())
    lines = [f"{len(only_server)} rows only on the server, {len(only_lake)} only in the lake; columns {names}"]
    lines += [f"    server {row}" for row in only_server[:3]]
    lines += [f"    lake   {row}" for row in only_lake[:3]]
    return "\n".join(lines)


def _present(mirror: Mirror) -> pa.Table:
    if "_deleted" not in mirror.rows.column_names:
        return mirror.rows
    return mirror.rows.filter(pc.invert(pc.fill_null(mirror.rows.column("_deleted"), False)))
