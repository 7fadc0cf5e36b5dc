"""The targets of one table: changelog, mirror, history, and what takes rows back.

Several tables of a lake do not belong here (:mod:`sinks.delta.lake`).

Open to other rooms: ``changelog``, ``history``, ``literals``, ``mirror``, ``retract``, ``unlogged``.
"""
