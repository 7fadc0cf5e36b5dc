"""The sink: writes plans, round by round, and says beforehand what it would do.

How one target takes its part does not belong here (:mod:`sinks.delta.targets`).

Open to other rooms: ``comparing``, ``dry_run``, ``putting_back``, ``sink``.
"""
