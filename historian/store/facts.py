"""Single values of a store."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from historian import codec
from historian.history.timeline import Horizon
from historian.store.tables import facts

__all__ = ["fact", "horizon", "set_fact"]


def fact(connection: Connection, name: str) -> str | None:
    """The single value *name*, or None."""
    return connection.execute(select(facts.c.body).where(facts.c.name == name)).scalar()


def set_fact(connection: Connection, name: str, body: str) -> None:
    """Sets the single value *name*."""
    if connection.execute(update(facts).where(facts.c.name == name).values(body=body)).rowcount == 0:
        connection.execute(insert(facts).values(name=name, body=body))


def horizon(connection: Connection) -> Horizon | None:
    """Before which versions were forgotten; None where none were."""
    body = fact(connection, "horizon")
    return None if body is None else codec.load(Horizon, body)
