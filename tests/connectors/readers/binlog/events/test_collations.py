"""Collation numbers."""

from __future__ import annotations

import pytest

from connectors.readers.binlog.events.collations import bytes_per_character, collation
from databases.servers import Server
from historian.charsets.conversion import decoded, encoded
from historian.errors import UnsupportedEvent

COLLATIONS = "SELECT id, collation_name, character_set_name FROM information_schema.collations"
FULL_COLLATIONS = """SELECT id, full_collation_name, character_set_name
    FROM information_schema.collation_character_set_applicability"""


def spelled(name: str) -> str:
    """``utf8`` by its longer name, which servers have printed since MySQL 8.0.30 and MariaDB 10.6."""
    return "utf8mb3" + name[4:] if name == "utf8" or name.startswith("utf8_") else name


def test_every_collation_of_a_server_is_known(server: Server) -> None:
    short_names = server.name in ("mariadb1011", "mariadb118")  # uca1400_ai_ci, whatever the character set
    rows = server.sql(FULL_COLLATIONS if short_names else COLLATIONS)
    assert len(rows) > 200
    for number, name, charset in rows:
        assert collation(number, server.flavor) == (spelled(name), spelled(charset))


def test_every_charset_is_as_wide_as_the_server_says(server: Server) -> None:
    for charset, width in server.sql("SELECT character_set_name, maxlen FROM information_schema.character_sets"):
        assert bytes_per_character(charset) == width


def test_text_of_every_charset_is_converted() -> None:
    charsets = {collation(number, "mysql").charset for number in (*range(1, 99), 224, 248) if number not in (17, 76)}
    assert len(charsets) == 41
    assert all("x" == decoded(encoded("x", charset), charset) for charset in charsets)


@pytest.mark.parametrize(
    "number, flavor", [(17, "mysql"), (2304, "mysql"), (100, "mariadb"), (2048 + 21 * 8, "mariadb"), (4000, "mariadb")]
)
def test_an_unknown_number_is_refused(number: int, flavor: str) -> None:
    with pytest.raises(UnsupportedEvent, match="collation that this release does not know") as raised:
        collation(number, flavor)
    assert raised.value.found == f"number {number}"
