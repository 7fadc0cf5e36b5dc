"""The shop's rows: what customers, orders and visits do to its tables between one schema change and the next.

Everything follows from one seed. The traffic knows each table's columns by how they are filled, so that a schema change
is also a change here, of one line.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

import vocabulary as words

__all__ = ["Shop", "Table", "sql_value"]

Fill = Callable[[], Any]
OPENED = datetime(2025, 3, 1, 8)  # noqa: DTZ001 a DATETIME has no zone


class Raw(str):
    """SQL that stands as it is."""

    __slots__ = ()


def sql_value(value: object) -> str:
    """A value as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, (Raw, int, float)):
        return str(value)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return "'" + str(value).replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n") + "'"


@dataclass(slots=True)
class Table:
    """A table's columns in any order, each with what fills it, and the keys of its rows."""

    name: str
    key: tuple[str, ...]
    fills: dict[str, Fill] = field(default_factory=dict)
    keys: list[tuple[Any, ...]] = field(default_factory=list)

    def rename(self, old: str, new: str) -> None:
        self.fills[new] = self.fills.pop(old)


class Shop:
    """The traffic. ``counts`` says how many changelog rows it has made, by their short form.

    Args:
        execute: runs a statement; returns how many rows it changed.
        column: runs a query; returns its only column.
        seed: of all choices.
    """

    def __init__(self, execute: Callable[[str], int], column: Callable[[str], list[Any]], seed: int) -> None:
        self.execute = execute
        self.column = column
        self.rng = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.now = OPENED
        self.next_order = 1
        self.next_customer = 1
        self.next_product = 1
        self.tables = {table.name: table for table in self._tables()}

    # -- statements --------------------------------------------------------------------------------------------------

    def insert(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """One INSERT of these rows; a row needs the key only, the rest is filled in."""
        full = [{**{name: fill() for name, fill in table.fills.items() if name not in row}, **row} for row in rows]
        names = list(full[0])
        tuples = ",".join("(" + ",".join(sql_value(row[name]) for name in names) + ")" for row in full)
        columns = ",".join(f"`{name}`" for name in names)
        self.count(self.execute(f"INSERT INTO `{table.name}` ({columns}) VALUES {tuples}"), "+A")
        table.keys += [tuple(row[name] for name in table.key) for row in full if table.key]

    def update(self, table: Table, assignments: str, keys: Sequence[tuple[Any, ...]], *, moves: bool = False) -> None:
        """One UPDATE of these rows, if any. ``moves``: it changes their keys."""
        if not keys:
            return
        changed = self.execute(f"UPDATE `{table.name}` SET {assignments} WHERE {self._where(table, keys)}")
        self.count(changed, *(("-R", "+A") if moves else ("-C", "+C")))

    def update_where(self, table: Table, assignments: str, where: str) -> None:
        self.count(self.execute(f"UPDATE `{table.name}` SET {assignments} WHERE {where}"), "-C", "+C")

    def delete(self, table: Table, keys: Sequence[tuple[Any, ...]]) -> None:
        self.count(self.execute(f"DELETE FROM `{table.name}` WHERE {self._where(table, keys)}"), "-R")
        gone = set(keys)
        table.keys = [key for key in table.keys if key not in gone]

    def delete_where(self, table: Table, where: str) -> None:
        self.count(self.execute(f"DELETE FROM `{table.name}` WHERE {where}"), "-R")

    def count(self, changed: int, *ops: str) -> None:
        """Adds *changed* row changes, each of which makes a changelog row of every one of *ops*."""
        self.counts["changes"] += changed
        for op in ops:
            self.counts[op] += changed

    @staticmethod
    def _where(table: Table, keys: Iterable[tuple[Any, ...]]) -> str:
        columns = ",".join(f"`{name}`" for name in table.key)
        return f"({columns}) IN ({','.join('(' + ','.join(map(sql_value, key)) + ')' for key in keys)})"

    def some(self, table: Table, count: int) -> list[tuple[Any, ...]]:
        """Keys of *count* of the table's rows."""
        return self.rng.sample(table.keys, min(count, len(table.keys)))

    def recent(self, table: Table, count: int, among: int) -> list[tuple[Any, ...]]:
        """Keys of *count* of the table's last *among* rows."""
        last = table.keys[-among:]
        return self.rng.sample(last, min(count, len(last)))

    # -- days --------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """The stock that the shop begins with."""
        for _ in range(20):
            self.new_products(50)
        for _ in range(15):
            self.new_customers(60)

    def day(self, checkouts: int = 132) -> None:
        """Visits, new customers, checkouts over several tables, deliveries, price changes, returns."""
        self.now += timedelta(days=1)
        for number in range(checkouts):
            self.now += timedelta(minutes=self.rng.randint(1, 9), seconds=self.rng.randrange(60))
            self.checkout()
            if number % 3 == 0:
                self.visits(40)
            if number % 9 == 0:
                self.deliveries()
        self.new_customers(25)
        self.new_products(10)
        self.housekeeping()

    def new_customers(self, count: int) -> None:
        first, self.next_customer = self.next_customer, self.next_customer + count
        self.insert(self.tables["customers"], [{"id": number} for number in range(first, first + count)])

    def new_products(self, count: int) -> None:
        numbers = range(self.next_product, self.next_product + count)
        self.next_product += count
        self.execute("BEGIN")
        self.insert(self.tables["products"], [{"sku": f"T-{number:05}"} for number in numbers])
        self.insert(self.tables["stock"], [{"id": number} for number in numbers])
        self.execute("COMMIT")

    def checkout(self) -> None:
        """A few orders, their lines and the stock they take: one transaction over three tables; some are given up."""
        orders, lines, stock = (self.tables[name] for name in ("orders", "order_lines", "stock"))
        given_up = self.rng.random() < 0.04
        before = Counter(self.counts), list(orders.keys), list(lines.keys)
        first, count = self.next_order, self.rng.randint(6, 14)
        self.next_order += count
        numbers = range(first, first + count)
        bought = [(number, line + 1) for number in numbers for line in range(self.rng.choice((1, 2, 2, 3, 5)))]
        self.execute("BEGIN")
        self.insert(orders, [{"id": number} for number in numbers])
        self.insert(lines, [{"order_id": number, "line": line} for number, line in bought])
        self.update(stock, self.stock_assignment, self.some(stock, len(bought) * 2 // 3))
        if given_up:
            self.execute("ROLLBACK")
            self.counts, orders.keys, lines.keys = before
        else:
            self.execute("COMMIT")

    stock_assignment = "`reserved` = `reserved` + 1"

    def visits(self, count: int) -> None:
        """Visits have no key, and often are the same twice; those of a robot go again."""
        table = self.tables["visits" if "visits" in self.tables else "page_views"]
        self.insert(table, [{} for _ in range(count)])
        if self.rng.random() < 0.2:
            seconds = self.rng.randrange(12)
            self.delete_where(table, f"`seconds` = {seconds} LIMIT {self.rng.randint(1, 12)}")
        if self.rng.random() < 0.2:
            self.update_where(table, "`source` = 'mail'", f"`seconds` = {self.rng.randrange(60)} LIMIT 9")

    def deliveries(self) -> None:
        orders = self.tables["orders"]
        self.update(orders, "`status` = 'sent'", self.recent(orders, 45, 900))
        if self.rng.random() < 0.5:
            self.update(
                orders, f"`slot` = '{self.rng.randint(7, 20):02}:30:00', `note` = NULL", self.recent(orders, 20, 900)
            )

    def housekeeping(self) -> None:
        """Prices, balances, returned orders, carts left behind."""
        rng, tables = self.rng, self.tables
        self.update(tables["products"], "`price` = ROUND(`price` * 1.05, 2)", self.some(tables["products"], 100))
        self.update(tables["customers"], self.customer_assignment, self.some(tables["customers"], 60))
        self.delete(tables["customers"], self.some(tables["customers"], 8))
        self.update(
            tables["order_lines"],
            f"`{self.pieces}` = `{self.pieces}` + 1",
            self.recent(tables["order_lines"], 60, 4000),
        )
        returned = self.recent(tables["orders"], 150, 4000)
        gone = {key[0] for key in returned}
        lines = [key for key in tables["order_lines"].keys[-20_000:] if key[0] in gone]
        self.execute("BEGIN")
        if lines:
            self.delete(tables["order_lines"], lines)
        self.execute("SAVEPOINT before_orders")
        self.delete(tables["orders"], returned)
        self.execute("COMMIT")
        if "carts" in tables:
            numbers = range(len(tables["carts"].keys) + 1, len(tables["carts"].keys) + 120)
            self.insert(tables["carts"], [{"id": number} for number in numbers])
            self.update(tables["carts"], "`items` = `items` + 1", self.some(tables["carts"], 30))
        coupons = tables["coupons"]
        if len(coupons.keys) > 150:
            self.delete(coupons, self.some(coupons, 60))
        self.insert(coupons, [{"code": f"{rng.getrandbits(40):010X}"} for _ in range(50)])

    customer_assignment = "`credit` = `credit` + 2.50"
    pieces = "quantity"

    # -- what fills the columns --------------------------------------------------------------------------------------

    def _tables(self) -> list[Table]:
        rng = self.rng
        money: Fill = lambda: Raw(f"{rng.randrange(100, 20_000) / 100:.2f}")  # noqa: E731
        return [
            Table("customers", ("id",), {
                "name": lambda: f"{rng.choice(words.FIRST_NAMES)} {rng.choice(words.LAST_NAMES)}",
                "city": lambda: rng.choice(words.CITIES),
                "birthday": self._or_null(lambda: date(1950, 1, 1) + timedelta(days=rng.randrange(20_000)), 0.3),
                "vip": lambda: int(rng.random() < 0.1),
                "consents": lambda: rng.randrange(1024),
                "settings": self._or_null(self._settings, 0.5),
                "joined": lambda: f"{self.now}.{rng.randrange(1000):03}",
                "credit": lambda: Raw(f"{rng.randrange(-5000, 9000) / 100:.2f}"),
                "referrer": self._or_null(lambda: rng.choice((1, 77, 2**63, 2**64 - 1)), 0.8),
            }),
            Table("products", ("sku",), {
                "title": lambda: f"{rng.choice(words.GOODS)}, {rng.choice(words.QUALITIES)}",
                "price": money,
                "weight": self._or_null(lambda: rng.randrange(1, 9000) / 7, 0.1),
                "tags": lambda: ",".join(tag for tag in words.TAGS if rng.random() < 0.3),
                "attributes": self._or_null(self._attributes, 0.3),
                "thumbnail": self._or_null(lambda: rng.randbytes(rng.randint(0, 12)), 0.5),
                "first_sold": lambda: rng.randint(1998, 2025),
            }),
            Table("orders", ("id",), {
                "customer": lambda: rng.randint(1, self.next_customer - 1),
                "status": lambda: rng.choice(("new", "new", "paid")),
                "total": money,
                "placed": lambda: self.now,
                "slot": self._or_null(lambda: f"{rng.randint(-1, 30):02}:{rng.randrange(60):02}:00", 0.7),
                "note": self._or_null(lambda: rng.choice(words.NOTES), 0.92),
            }),
            Table("order_lines", ("order_id", "line"), {
                "product": lambda: rng.randint(1, self.next_product - 1),
                "quantity": lambda: rng.choice((1, 1, 1, 2, 3, 12)),
                "price": money,
            }),
            Table("stock", ("id",), {"shelf": lambda: rng.randint(1, 400), "reserved": lambda: rng.randint(0, 9)}),
            Table("page_views", (), {
                "page": lambda: rng.choice(words.PAGES),
                "visitor": lambda: rng.randint(1, 5000),
                "seconds": self._or_null(lambda: rng.randrange(60), 0.1),
                "source": lambda: rng.choice(("search", "mail", "direct")),
            }),
            Table("carts", ("id",), {"items": lambda: rng.randint(1, 9), "changed": lambda: self.now}),
            Table("coupons", ("code",), {"percent": lambda: rng.choice((5, 10, 15)), "valid": self._today}),
        ]  # fmt: skip

    def _today(self) -> date:
        return self.now.date()

    def _or_null(self, fill: Fill, share: float) -> Fill:
        return lambda: None if self.rng.random() < share else fill()

    def _settings(self) -> str:
        value = {"lang": self.rng.choice(("de", "fr", "sv")), "mail": self.rng.random() < 0.5}
        return json.dumps(value | ({"size": self.rng.randrange(70_000)} if self.rng.random() < 0.3 else {}))

    def _attributes(self) -> str:
        choices = self.rng.choice(
            ([1, 2.5, None], {"grade": "A+", "origin": "Uji 宇治"}, {"sizes": [50, 100, 250]}, True)
        )
        return json.dumps(choices, ensure_ascii=False)
