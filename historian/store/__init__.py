"""Where a connector's history, plans and progress live: SQLite by default, any SQLAlchemy URL otherwise.

What a lake keeps of itself does not belong here (:mod:`sinks.delta.lake`).

Open to other rooms: ``forgetting``.
"""

from historian.store.copies import CopyProgress, left_s
from historian.store.copy_orders import CopyOrders
from historian.store.lease import Lease, Owner
from historian.store.store import Store

__all__ = ["CopyOrders", "CopyProgress", "Lease", "Owner", "Store", "left_s"]
