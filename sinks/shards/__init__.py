"""Tables of one kind in many databases as one table: their plans, chunks and edits become those of one.

Which tables are of one kind does not belong here (:mod:`historian.plans.shards`).

Open to other rooms: ``chunks``, ``plans``, ``reconcile``.
"""

from __future__ import annotations
