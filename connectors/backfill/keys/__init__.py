"""The key in whose order a table is copied: its values in SQL, bounds of chunks, and which rows of a log lie before a bound.

Which chunks are read when, and what becomes of their rows, does not belong here.

Open to other rooms: ``boundaries``, ``coverage``, ``literals``, ``predicates``, ``probes``, ``split_key``.
"""
