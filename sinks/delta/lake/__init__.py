"""What a lake keeps of itself: plans, schema changes, where tables are, dead letters; and which rows targets take later.

Rows of targets do not belong here (:mod:`sinks.delta.targets`).

Open to other rooms: ``catalog``, ``dead_letters``, ``deferral``, ``deferred_rows``, ``recorded``, ``repair_records``,
``state``, ``state_rows``.
"""
