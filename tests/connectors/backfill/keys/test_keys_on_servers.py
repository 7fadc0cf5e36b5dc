"""Keys of every type and collation on real servers: chunks hold each row once, and rows of the log lie where the server has them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pymysql
import pytest

from connectors.backfill.keys.boundaries import boundaries
from connectors.backfill.keys.coverage import asking, covered, within
from connectors.backfill.keys.literals import prepare_session
from connectors.backfill.keys.predicates import where
from connectors.backfill.keys.split_key import SplitKey, obstacle
from connectors.tracking.capture.catalog import capture_catalog
from databases.key_cases import KeyCase, collated, key_cases, set_texts
from historian.changelog.operations import physical_name
from historian.codec import dump_short, load
from historian.names import TableName
from historian.plans.key_ranges import Key, KeyRange
from logs.decoder_lab import decode, log_end, planned

if TYPE_CHECKING:
    from databases.servers import Server

ROWS = 7
COUNT = 3


class _Lab:
    """The cases as tables of a server, with their rows as its log tells them."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.connection = server.connect(database="split_keys")
        prepare_session(self.connection)
        self.ask = asking(self.connection)

    def rows(self, statement: str) -> tuple[tuple[Any, ...], ...]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return tuple(cursor.fetchall())

    def numbers(self, statement: str) -> list[int]:
        return [number for (number,) in self.rows(statement)]

    def held(self, key: SplitKey, keys: KeyRange) -> list[int]:
        source = key.name if keys == KeyRange() else key.source
        return self.numbers(f"SELECT n FROM {source} WHERE {where(key, keys)} ORDER BY {key.order()}")

    def comes_back(self, text: str, charset: str) -> bool:
        """Whether a literal is a text of that character set which other ones have too."""
        try:
            ((here, there, back),) = self.rows(
                f"SELECT HEX({text}), HEX(CONVERT({text} USING utf8mb4)), HEX(CONVERT(CONVERT({text} USING utf8mb4) USING {charset}))"
            )
        except pymysql.err.MySQLError:
            return False
        return here == back and "EFBFBD" not in there  # which stands for bytes that are no character

    def close(self) -> None:
        self.connection.close()

    def make(self, name: str, case: KeyCase) -> None:
        key = f"UNIQUE KEY u ({', '.join(case.names)})" if case.unique else f"PRIMARY KEY ({', '.join(case.names)})"
        self.rows(f"CREATE TABLE {name} (n INT NOT NULL, {', '.join(case.columns)}, {key})")
        values = ", ".join(f"({number}, {', '.join(row)})" for number, row in enumerate(case.rows))
        self.rows(f"INSERT IGNORE INTO {name} VALUES {values}")

    def chunks(self, key: SplitKey) -> list[KeyRange]:
        """Ranges of the whole table, as a plan would have them."""
        found: list[KeyRange] = []
        after: Key | None = None
        while True:
            for upto in boundaries(self.connection, key, after, rows=ROWS, count=COUNT):
                text = dump_short(KeyRange, KeyRange(after=after, upto=upto))
                found.append(load(KeyRange, text))
                after = found[-1].upto
            if after is None:
                return found


def _wrong_by_estimates(lab: _Lab, key: SplitKey, in_order: list[int], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    with monkeypatch.context() as patch:
        patch.setattr("connectors.backfill.keys.boundaries.FEW_ROWS", 0)
        chunks = lab.chunks(key)
    held = [lab.held(key, each) for each in chunks]
    same = [number for numbers in held for number in numbers] == in_order
    return (
        [] if same and max(map(len, held)) <= 3 * ROWS else [f"chunks by estimates hold {held}, the table {in_order}"]
    )


def _wrong(lab: _Lab, key: SplitKey, logged: pa.RecordBatch, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    name = f"`{key.table.table}`"
    in_order = lab.numbers(f"SELECT n FROM {name} AS t ORDER BY {key.order()}")
    chunks = lab.chunks(key)
    held = [lab.held(key, each) for each in chunks]
    wrong = _wrong_by_estimates(lab, key, in_order, monkeypatch)
    if [number for numbers in held for number in numbers] != in_order:
        wrong.append(f"chunks hold {held}, the table {in_order}")
    if max(map(len, held)) > 2 * ROWS or len(chunks) > 2 + 2 * len(in_order) // ROWS:
        wrong.append(f"chunks of {list(map(len, held))} rows")
    if sorted(logged.column("n").to_pylist()) != sorted(in_order):
        wrong.append("the log has other rows")
    for keys, numbers in zip(chunks, held, strict=True):
        here = logged.filter(pa.array(within(logged, key, keys, lab.ask))).column("n").to_pylist()
        below = logged.filter(pa.array(covered(logged, key, keys.upto, lab.ask))).column("n").to_pylist()
        if sorted(here) != sorted(numbers):
            wrong.append(f"{keys} holds {numbers}, of the log {here}")
        upto = KeyRange(upto=keys.upto)
        if sorted(below) != sorted(lab.numbers(f"SELECT n FROM {name} WHERE {where(key, upto)}")):
            wrong.append(f"rows up to {keys.upto}")
    return wrong


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3, 4))])
def test_each_row_is_in_one_chunk_and_rows_of_the_log_are_where_the_server_has_them(
    server: Server, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(_lab(server)) as lab:
        _assert_chunks(lab, key_cases(server.name, seed), monkeypatch)


@pytest.mark.soak
def test_each_row_is_in_one_chunk_by_keys_of_every_character_set(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its default collation and in those by codes, with as many characters of it as there are."""
    with closing(_lab(server)) as lab:
        sets = lab.rows(
            "SELECT character_set_name, maxlen, default_collate_name FROM information_schema.character_sets"
        )
        by_codes = lab.rows(
            "SELECT character_set_name, collation_name FROM information_schema.collations "
            "WHERE collation_name LIKE '%\\_bin' AND character_set_name IS NOT NULL"
        )
        cases = []
        for charset, maxlen, default in sets:
            if charset == "binary":
                continue
            texts = [text for text in set_texts(charset, maxlen) if lab.comes_back(text, charset)]
            own = {default, *(name for of, name in by_codes if of == charset)}
            cases += [collated(charset, name, texts) for name in sorted(own)]
        assert len(cases) > 70
        _assert_chunks(lab, cases, monkeypatch)


def _lab(server: Server) -> _Lab:
    server.sql("DROP DATABASE IF EXISTS split_keys")
    server.sql("CREATE DATABASE split_keys")
    return _Lab(server)


def _assert_chunks(lab: _Lab, some: Iterable[KeyCase], monkeypatch: pytest.MonkeyPatch) -> None:
    server = lab.server
    since = log_end(server)
    cases = {f"t{number}": case for number, case in enumerate(some)}
    for name, case in cases.items():
        lab.make(name, case)
    catalog = capture_catalog(lab.connection, 1, 1)
    snapshots = [catalog.tables[TableName("split_keys", name)] for name in cases]
    logged: dict[TableName, list[pa.RecordBatch]] = {}
    for chunk in decode(server, planned(*snapshots), since):
        snapshot = snapshots[chunk.table_id - 1]
        rows = chunk.rows.append_column("n", chunk.rows.column(physical_name(snapshot.columns[0].id)))
        logged.setdefault(snapshot.name, []).append(rows)
    wrong = {}
    for snapshot, case in zip(snapshots, cases.values(), strict=True):
        key = SplitKey.of(snapshot, server.flavor)
        if key is None:
            wrong[str(case.columns)] = [] if obstacle(snapshot.columns[1].type, server.flavor) else ["no key"]
            continue
        assert case.unique == (key.index != "PRIMARY")
        batches = pa.Table.from_batches(logged[snapshot.name]).combine_chunks().to_batches()
        (batch,) = batches
        wrong[str(case.columns)] = _wrong(lab, key, batch, monkeypatch)
    assert {} == {columns: found for columns, found in wrong.items() if found}
