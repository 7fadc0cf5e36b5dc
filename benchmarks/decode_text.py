"""Columns that become other text than the log holds: JSON documents, and character sets other than UTF-8.

``json_text``: rows of one document of about 300 bytes, printed as the server prints it, against mysql-replication, which
makes Python objects of them; both are compared document by document. ``charset_latin1`` and ``charset_gbk``: how much
longer rows take than as many bytes of ASCII in utf8mb4; their text is compared with the server's own conversion.
Run: ``python benchmarks/decode_text.py [--rounds 5] [--rows 200000] [--other 10000]``.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from binlog_work import Work, check_count, in_own_file, in_turn, ours, rate, report, theirs, values

from databases.servers import start_server
from logs.decoder_lab import capture

if TYPE_CHECKING:
    from databases.servers import Server

NUMBERS = "WITH RECURSIVE s (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM s WHERE n + 1 < {last})"
DOCUMENT = """
JSON_OBJECT('id', n, 'name', CONCAT('customer number ', n), 'active', n % 2 = 0, 'balance', n / 7e0, 'limit', NULL,
    'tags', JSON_ARRAY('new', 'paid', CONCAT('tag ', n % 100)), 'note', 'He said: "none"',
    'address', JSON_OBJECT('street', CONCAT(n % 1000, ' Main Street'), 'city', 'Springfield', 'zip', n % 100000),
    'lines', JSON_ARRAY(JSON_OBJECT('sku', n * 3, 'count', 2), JSON_OBJECT('sku', n * 5, 'count', 1)))
"""
# About a hundred bytes each in its character set: plain English, French, only Chinese characters.
TEXTS = {
    "utf8mb4": "REPEAT('plain English text with a number: ', 3)",
    "latin1": "REPEAT('le caf\u00e9 pr\u00e8s du ch\u00e2teau \u00e9tait ferm\u00e9 \u00e0 No\u00ebl, ', 2)",
    "gbk": "REPEAT('\u6211\u4eec\u4eca\u5929\u5728\u5317\u4eac\u5403\u996d', 6)",
}
STEP = 50_000


def record(server: Server, name: str, kind: str, value: str, rows: int) -> Work:
    """A table of a number and one column, filled in a file of its own."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION cte_max_recursion_depth = 4294967295")
        cursor.execute(f"CREATE TABLE bench.{name} (id INT NOT NULL PRIMARY KEY, body {kind} NOT NULL)")

        def fill() -> None:
            for first in range(0, rows, STEP):
                numbers = NUMBERS.format(first=first, last=min(rows, first + STEP))
                cursor.execute(f"INSERT INTO bench.{name} {numbers} SELECT n, {value} FROM s")

        part = in_own_file(server, fill)
    return Work(name=name, unit="rows/s", range=part, snapshot=capture(server, "bench", name), rows=rows)


def text(value: Any) -> Any:
    """What mysql-replication makes of a document, with text instead of bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {text(key): text(item) for key, item in value.items()}
    return [text(item) for item in value] if isinstance(value, list) else value


def measure_json(server: Server, rows: int, rounds: int, limit: int) -> dict[str, Any]:
    """Against mysql-replication, after one round that is compared and not counted."""
    work = record(server, "json_text", "JSON", DOCUMENT, rows)
    chunks = ours(server, work)[1]
    check_count(chunks, work)
    other = theirs(server, work, limit)[1]
    for (number, document), row in zip(values(chunks, work.snapshot), other):  # noqa: B905 - theirs is shorter
        if json.loads(document) != text(list(row.values())[1]):
            raise SystemExit(f"json_text: document {number} differs:\n  {document}\n  {row}")
    held = server.sql("SELECT CAST(body AS CHAR) FROM bench.json_text ORDER BY id LIMIT 1000")
    if [row[1] for row in values(chunks[:1], work.snapshot)][: len(held)] != [row[0] for row in held]:
        raise SystemExit("json_text: the text is not the server's")

    def their_rate() -> float:
        seconds, found = theirs(server, work, limit)
        return len(found) / seconds

    return in_turn(work.name, work.unit, rounds, lambda: rate(server, work), their_rate)


def measure_charsets(server: Server, rows: int, rounds: int) -> list[dict[str, Any]]:
    """Rates of each character set under those of ASCII in utf8mb4: how many times longer the same bytes take."""
    works = {
        charset: record(server, f"charset_{charset}", f"VARCHAR(200) CHARACTER SET {charset}", value, rows)
        for charset, value in TEXTS.items()
    }
    for work in works.values():
        chunks = ours(server, work)[1]
        check_count(chunks, work)
        ((held,),) = server.sql(f"SELECT CONVERT(body USING utf8mb4) FROM bench.{work.name} WHERE id = 1")
        if {row[1] for row in values(chunks, work.snapshot)} != {held}:
            raise SystemExit(f"{work.name}: text differs from {held!r}")
    plain = works.pop("utf8mb4")
    results = []
    for work in works.values():
        bytes_ratio = work.range.end / plain.range.end

        def plain_rate(factor: float = bytes_ratio) -> float:
            return rate(server, plain) / factor

        results.append(
            in_turn(work.name, work.unit, rounds, plain_rate, lambda work=work: rate(server, work))  # type: ignore[misc]
        )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--other", type=int, default=10_000, help="rows that mysql-replication reads")
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    with tempfile.TemporaryDirectory() as directory:
        server = start_server("mysql9", Path(directory) / "server")
        try:
            server.sql("CREATE DATABASE bench")
            results = [measure_json(server, options.rows, options.rounds, options.other)]
            results += measure_charsets(server, 2 * options.rows, options.rounds)
        finally:
            server.kill()
    report(results)


if __name__ == "__main__":
    main()
