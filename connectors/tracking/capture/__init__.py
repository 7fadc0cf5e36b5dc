"""What a server's ``information_schema`` tells now: the schemas of all its tables at one moment, and who shares such a look.

What becomes of them does not belong here (:mod:`connectors.tracking.first_schema`, :mod:`connectors.tracking.head_check`).

Open to other rooms: ``catalog``, ``shared``.
"""
