"""What foreign keys may have changed in children, on servers that do not log it: which tables, and by which values their rows are told.

Reading those rows does not belong here (:mod:`connectors.backfill.affected`).

Open to other rooms: ``cascades``, ``child_keys``, ``logged``, ``referenced``.
"""
