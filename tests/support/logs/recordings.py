"""One small file of a server's log with something of everything in it, to be damaged; scripts of the recorded shop."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from connectors.readers.binlog.files_reader import BinlogFilesReader
from databases.servers import Server
from logs.binlog_lab import only_place, planned_tables, run
from logs.damage import Recording
from logs.decoder_lab import log_end

__all__ = ["recorded", "shop_script"]

_SHOP = Path(__file__).parents[3] / "examples/shop"

COLUMNS = """
    id INT PRIMARY KEY, ti TINYINT, mu MEDIUMINT UNSIGNED, bu BIGINT UNSIGNED, de DECIMAL(20, 6), d4 DECIMAL(65, 30),
    fl FLOAT, db DOUBLE, b1 BIT(1), bi BIT(20), da DATE, ti3 TIME(3), dt DATETIME(6), ts TIMESTAMP(2) NULL, ye YEAR,
    ch CHAR(10) CHARACTER SET latin1, vc VARCHAR(300) CHARACTER SET utf8mb4, gb VARCHAR(20) CHARACTER SET gbk,
    bn BINARY(6), tx TEXT CHARACTER SET utf8mb4, mb MEDIUMBLOB, js JSON, en ENUM('a', 'b'), se SET('x', 'y', 'z'), ge POINT
"""
FULL = """
    (%s, -5, 16777215, 18446744073709551615, -12345.678901, 1.5, 1.25, -2.5e300, 1, 5, '2024-02-29', '-838:59:58.999',
    '9999-12-31 23:59:59.999999', '2024-01-02 03:04:05.67', 2155, 'é', REPEAT('ü', 140), '中文', 'bin',
    REPEAT('text ', 9), REPEAT(0x00FF, 30), '{"a": [1, -70000, 5000000000, 1.5, true, null], "long key": {"ä": "%s"}}',
    'b', 'x,z', POINT(1, 2))
"""
STATEMENTS = (
    *(f"INSERT INTO damage.t VALUES {FULL % (key, 'x' * key)}" for key in (1, 130)),
    "INSERT INTO damage.t (id) VALUES (3), (4)",
    "SAVEPOINT one",
    "UPDATE damage.t SET vc = 'new', de = 1, js = '[]'",
    "UPDATE damage.t SET id = 7 WHERE id = 3",
    "DELETE FROM damage.t WHERE id IN (1, 4)",
)


def recorded(server: Server, *, checksum: bool) -> Recording:
    """The making of tables, plain transactions, and the same compressed where the server can; FULL metadata where it can.

    With all checksums or none.
    """
    kind = "CRC32" if checksum else "NONE"
    run(server, "DROP DATABASE IF EXISTS damage", "CREATE DATABASE damage", f"SET GLOBAL binlog_checksum = {kind}")
    has_metadata = server.name != "mysql57"
    plain, packed = _packing(server)
    run(server, "FLUSH BINARY LOGS", *(["SET GLOBAL binlog_row_metadata = FULL"] if has_metadata else []))
    name, _ = log_end(server)
    try:
        run(server, f"CREATE TABLE damage.t ({COLUMNS})")
        for setting in (plain, packed):
            words = ("SET NAMES utf8mb4", *setting, "BEGIN", *STATEMENTS, "COMMIT")
            run(server, *words, "CREATE TABLE damage.other (id INT, t TIMESTAMP)", "DELETE FROM damage.t")
            run(server, "INSERT INTO damage.other VALUES (1, NULL)", "DROP TABLE damage.other")
    finally:
        run(server, *(each for each in plain if "GLOBAL" in each))
        run(server, *(["SET GLOBAL binlog_row_metadata = DEFAULT"] if has_metadata else []))
    tables = planned_tables(server, "damage.t")
    run(server, "FLUSH BINARY LOGS", "SET GLOBAL binlog_checksum = CRC32")
    (path,) = (path for path in server.binlog_files() if path.name == name)
    return Recording(
        name=f"{server.name} with {kind}",
        file=path.name,
        data=path.read_bytes(),
        flavor=server.flavor,
        tables=tables,
        end=only_place(BinlogFilesReader([path]).end()).offset,
        checksum=checksum,
    )


def _packing(server: Server) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Settings for plain and for compressed transactions; the same where there are none of those."""
    if server.flavor == "mariadb":
        return ("SET GLOBAL log_bin_compress = OFF",), (
            "SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10",
        )
    if server.name == "mysql57":
        return (), ()
    return ("SET SESSION binlog_transaction_compression = OFF",), ("SET SESSION binlog_transaction_compression = ON",)


def shop_script(name: str) -> ModuleType:
    """A module of examples/shop, which is no package."""
    spec = importlib.util.spec_from_file_location(f"shop_{name}", _SHOP / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
