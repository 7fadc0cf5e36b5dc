"""Transactions whose rows do not count where they stand: prepared XA transactions, and what was rolled back.

Which tables have rows in them does not belong here (:mod:`connectors.tracking`).

Open to other rooms: ``commit_order``, ``prepared``, ``rolled_back``.
"""
