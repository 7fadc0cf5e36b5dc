"""Where a connector's history, plans and progress live: SQLite by default, any SQLAlchemy URL otherwise."""

from historian.store.lease import Lease, Owner
from historian.store.store import Store

__all__ = ["Lease", "Owner", "Store"]
