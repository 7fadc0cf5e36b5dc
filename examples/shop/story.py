"""The shop's schema, and how it changes while the shop is open.

A step is a function that runs DDL, or other things worth seeing, and tells the traffic what its tables look like now.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from traffic import Shop, Table

__all__ = ["SCHEMA", "STEPS", "Define"]

Define = Callable[[str], None]
"""Runs a DDL statement and notes it."""

SCHEMA = (
    "CREATE DATABASE shop CHARACTER SET utf8mb4",
    """CREATE TABLE customers (
  id INT UNSIGNED NOT NULL PRIMARY KEY, name VARCHAR(60) NOT NULL, city VARCHAR(40) CHARACTER SET latin1, birthday DATE,
  vip BIT(1) NOT NULL, consents BIT(10) NOT NULL, settings JSON, joined TIMESTAMP(3) NOT NULL,
  credit DECIMAL(9,2) NOT NULL DEFAULT 0, referrer BIGINT UNSIGNED)""",
    """CREATE TABLE products (
  sku VARCHAR(12) NOT NULL PRIMARY KEY, title VARCHAR(80) NOT NULL, price DECIMAL(8,2) NOT NULL, weight FLOAT,
  tags SET('new','sale','bio','gift') NOT NULL, attributes JSON, thumbnail BLOB, first_sold YEAR)""",
    """CREATE TABLE orders (
  id INT UNSIGNED NOT NULL PRIMARY KEY, customer INT UNSIGNED NOT NULL, status ENUM('new','paid','sent') NOT NULL,
  total DECIMAL(8,2) NOT NULL, placed DATETIME NOT NULL, slot TIME, note VARCHAR(80))""",
    """CREATE TABLE order_lines (
  order_id INT UNSIGNED NOT NULL, line TINYINT UNSIGNED NOT NULL, product SMALLINT UNSIGNED NOT NULL,
  quantity SMALLINT NOT NULL, price DECIMAL(6,2), PRIMARY KEY (order_id, line))""",
    "CREATE TABLE stock (id INT NOT NULL PRIMARY KEY, shelf INT NOT NULL, reserved INT NOT NULL)",
    """CREATE TABLE page_views (
  page VARCHAR(20) NOT NULL, visitor INT NOT NULL, seconds TINYINT UNSIGNED, source ENUM('search','mail','direct'))""",
    "CREATE TABLE carts (id INT NOT NULL PRIMARY KEY, items TINYINT NOT NULL, changed DATETIME(6))",
    "CREATE TABLE coupons (code CHAR(10) NOT NULL PRIMARY KEY, percent TINYINT NOT NULL, valid DATE)",
)


def add_channel(shop: Shop, define: Define) -> None:
    define("ALTER TABLE orders ADD COLUMN channel ENUM('web','app','store') NOT NULL DEFAULT 'web' FIRST")
    shop.tables["orders"].fills["channel"] = lambda: shop.rng.choice(("web", "app", "app", "store"))


def drop_referrer(shop: Shop, define: Define) -> None:
    define("ALTER TABLE customers DROP COLUMN referrer")
    del shop.tables["customers"].fills["referrer"]


def replace_reserved(shop: Shop, define: Define) -> None:
    """Count and types of the columns stay as they were: only the statement says which value is which."""
    define("ALTER TABLE stock DROP reserved, ADD reorder_at INT NOT NULL DEFAULT 5 FIRST")
    stock = shop.tables["stock"]
    del stock.fills["reserved"]
    stock.fills["reorder_at"] = lambda: shop.rng.choice((5, 5, 10, 25))
    shop.stock_assignment = "`reorder_at` = `reorder_at` + 1"


def drop_first_sold(shop: Shop, define: Define) -> None:
    define("ALTER TABLE products DROP COLUMN first_sold")
    del shop.tables["products"].fills["first_sold"]


def add_first_sold_again(shop: Shop, define: Define) -> None:
    """The name comes back with another type; what it held before is not its."""
    define("ALTER TABLE products ADD COLUMN first_sold DATE AFTER title")
    shop.tables["products"].fills["first_sold"] = lambda: shop.now.date() - timedelta(days=shop.rng.randrange(900))


def rename_total(shop: Shop, define: Define) -> None:
    define("ALTER TABLE orders RENAME COLUMN total TO amount")
    shop.tables["orders"].rename("total", "amount")


def widen_visitor(shop: Shop, define: Define) -> None:
    define("ALTER TABLE page_views MODIFY visitor BIGINT NOT NULL")
    shop.tables["page_views"].fills["visitor"] = lambda: shop.rng.choice((7, 2**40 + shop.rng.randrange(3000)))


def change_credit(shop: Shop, define: Define) -> None:
    """Another name and a wider type at once."""
    define("ALTER TABLE customers CHANGE credit balance DECIMAL(12,2) NOT NULL DEFAULT 0")
    shop.tables["customers"].rename("credit", "balance")
    shop.customer_assignment = "`balance` = `balance` + 1000000"


def rename_page_views(shop: Shop, define: Define) -> None:
    define("RENAME TABLE page_views TO visits")
    visits = shop.tables.pop("page_views")
    visits.name = "visits"
    shop.tables["visits"] = visits


def archive_orders(shop: Shop, define: Define) -> None:
    """CREATE TABLE ... LIKE, then old orders move over in transactions of both tables."""
    define("CREATE TABLE old_orders LIKE orders")
    orders = shop.tables["orders"]
    old = shop.tables["old_orders"] = Table("old_orders", ("id",), dict(orders.fills))
    for _ in range(10):
        moved = orders.keys[:60]
        shop.execute("BEGIN")
        where = ",".join(str(key[0]) for key in moved)
        copied = shop.execute(f"INSERT INTO old_orders SELECT * FROM orders WHERE id IN ({where}) ORDER BY id")
        shop.count(copied, "+A")
        shop.delete(orders, moved)
        shop.execute("COMMIT")
        old.keys += moved
    shop.update(old, "`note` = 'archived'", shop.some(old, 100))


def best_customers(shop: Shop, define: Define) -> None:
    """Rows that come with their CREATE, and more behind it."""
    define(
        "CREATE TABLE best_customers (PRIMARY KEY (id)) "
        "SELECT id, name, city, balance FROM customers ORDER BY balance DESC, id LIMIT 400"
    )
    best = shop.tables["best_customers"] = Table("best_customers", ("id",))
    best.keys = [(int(key),) for key in shop.column("SELECT id FROM best_customers ORDER BY id")]
    shop.count(len(best.keys), "+A")
    shop.update(best, "`balance` = 0, `city` = NULL", shop.some(best, 120))
    shop.delete(best, shop.some(best, 40))


def renumber(shop: Shop, define: Define) -> None:  # noqa: ARG001 no DDL here
    """Primary key values change: of customers by a million, of products letter by letter."""
    customers, products = shop.tables["customers"], shop.tables["products"]
    moved = shop.some(customers, 80)
    shop.update(customers, "`id` = `id` + 1000000", moved, moves=True)
    customers.keys = [(key[0] + 1_000_000,) if key in set(moved) else key for key in customers.keys]
    for (sku,) in shop.some(products, 40):
        new = sku.lower()
        shop.update(products, f"`sku` = '{new}'", [(sku,)], moves=True)
        products.keys[products.keys.index((sku,))] = (new,)


def truncate_coupons(shop: Shop, define: Define) -> None:
    define("TRUNCATE TABLE coupons")
    shop.tables["coupons"].keys.clear()


def drop_carts(shop: Shop, define: Define) -> None:
    define("DROP TABLE carts")
    del shop.tables["carts"]


def two_at_once(shop: Shop, define: Define) -> None:
    """Two statements with nothing between them, on a table that is busy before and after."""
    define("ALTER TABLE visits ADD COLUMN device ENUM('phone','desk') AFTER page")
    define("ALTER TABLE visits ADD COLUMN country CHAR(2) NOT NULL DEFAULT 'DE' FIRST")
    fills = shop.tables["visits"].fills
    fills["device"] = lambda: shop.rng.choice(("phone", "desk", None))
    fills["country"] = lambda: shop.rng.choice(("DE", "FR", "SE"))


def several_actions(shop: Shop, define: Define) -> None:
    """Four changes in one statement."""
    define(
        "ALTER TABLE order_lines ADD COLUMN gift TINYINT(1) NOT NULL DEFAULT 0 FIRST, DROP COLUMN price, "
        "MODIFY product INT UNSIGNED NOT NULL, CHANGE quantity pieces INT NOT NULL AFTER gift"
    )
    lines = shop.tables["order_lines"]
    del lines.fills["price"]
    lines.rename("quantity", "pieces")
    lines.fills["gift"] = lambda: int(shop.rng.random() < 0.1)
    shop.pieces = "pieces"


def replace_shelf(shop: Shop, define: Define) -> None:
    """The shape stays once more."""
    define("ALTER TABLE stock DROP COLUMN shelf, ADD COLUMN depot INT NOT NULL DEFAULT 1 FIRST")
    stock = shop.tables["stock"]
    del stock.fills["shelf"]
    stock.fills["depot"] = lambda: shop.rng.randint(1, 3)


STEPS: tuple[Callable[[Shop, Define], None], ...] = (
    add_channel,
    drop_referrer,
    replace_reserved,
    drop_first_sold,
    add_first_sold_again,
    rename_total,
    widen_visitor,
    change_credit,
    rename_page_views,
    archive_orders,
    best_customers,
    renumber,
    truncate_coupons,
    drop_carts,
    two_at_once,
    several_actions,
    replace_shelf,
)
