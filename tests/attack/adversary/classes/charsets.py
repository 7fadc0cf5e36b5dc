"""Clients of every charset: bytes of statements that only their charset explains, in labels, defaults, names and comments."""

from __future__ import annotations

import random

from adversary.script import FOLLOW, Script, Sql, Step

_CHARSETS = (
    "latin1",
    "latin2",
    "cp1250",
    "cp1251",
    "cp1256",
    "cp850",
    "koi8r",
    "greek",
    "hebrew",
    "tis620",
    "gbk",
    "sjis",
    "cp932",
    "ujis",
    "euckr",
    "big5",
    "utf8",
    "utf8mb4",
    "gb18030",
    "binary",
    "ascii",
    "macroman",
    "armscii8",
    "geostd8",
    "swe7",
    "dec8",
    "hp8",
)


def script(rng: random.Random, server: str) -> Script:
    """Statements with random bytes in them."""
    charset = rng.choice([name for name in _CHARSETS if name != "gb18030" or server.startswith("mysql")])
    column = rng.choice(("utf8mb4", "utf8mb4", charset, "latin1"))
    text = column if column != charset else "utf8mb4"
    if charset.startswith(("utf8", "binary")) and column.startswith("utf8"):
        # Bytes that are no UTF-8 stay as they are in labels, and no client can read them.
        column = "latin1"
    steps: list[Step] = [
        Sql(f"SET NAMES {charset}"),
        Sql(f"SET sql_mode = '{rng.choice(('', 'STRICT_TRANS_TABLES', 'NO_BACKSLASH_ESCAPES'))}'"),
    ]
    made = rng.choice(
        (
            f"ENUM('{{0}}','x','{{1}}') CHARACTER SET {column}",
            # In its own charset a server takes bytes that are no text, and rows that hold them stop a table.
            f"VARCHAR(9) CHARACTER SET {text} DEFAULT '{{0}}'",
            f"SET('{{0}}','x') CHARACTER SET {column}",
        )
    )
    steps.append(_sql(f"CREATE TABLE l (id INT PRIMARY KEY, a {made})", _bytes(rng), _bytes(rng)))
    steps.append(Sql("INSERT INTO l (id) VALUES (1)"))
    steps.append(Sql("INSERT INTO l (id, a) VALUES (2, 1)"))
    for at in range(rng.randrange(1, 4)):
        if rng.random() < 0.3:
            steps.append(FOLLOW)
        kind = rng.choice(
            (
                f"VARCHAR(9) CHARACTER SET {text} DEFAULT '{{0}}'",
                f"ENUM('{{0}}','y') CHARACTER SET {column} DEFAULT 'y'",
                f"ENUM('{{0}}','y') CHARACTER SET {column} NOT NULL",
                "INT COMMENT '{0}'",
                "VARBINARY(9) DEFAULT '{0}'",
            )
        )
        name = f"`n{at}{{0}}`" if rng.random() < 0.2 else f"n{at}"
        steps.append(_sql(f"ALTER TABLE l ADD COLUMN {name} {kind}", _bytes(rng)))
        steps.append(Sql(f"INSERT INTO l (id) VALUES ({10 + at})"))
    return Script(steps=steps)


def _bytes(rng: random.Random) -> bytes:
    """Bytes that end no literal."""
    kind = rng.random()
    if kind < 0.3:
        return bytes((rng.choice((0x81, 0x8D, 0x8F, 0x90, 0x9D)),))
    if kind < 0.5:
        return rng.choice("éйж日本ñ🍵İ€").encode()
    return bytes(rng.choice([b for b in range(0x20, 0x100) if b not in b"'`\"\\,"]) for _ in range(rng.randrange(1, 4)))


def _sql(text: str, *parts: bytes) -> Sql:
    data = text.encode()
    for at, part in enumerate(parts):
        data = data.replace(b"{%d}" % at, part)
    return Sql(text, data=data)
