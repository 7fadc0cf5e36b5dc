"""The edge in: readers of change logs, what follows them, and the parts that tie readers to sinks.

What needs neither a source nor a configuration does not belong here (:mod:`historian`).

Open to other rooms: ``sink_kinds``.
"""

__all__: list[str] = []
