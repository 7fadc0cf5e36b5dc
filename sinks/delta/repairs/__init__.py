"""Repairs: what targets hold is compared with the rows of the source as of a plan's end, all or those of a range of keys, and what differs is written.

How rows of the source are read does not belong here, nor how a target takes a change (:mod:`sinks.delta.targets`).

Open to other rooms: ``new_keys``, ``repairing``, ``returning``.
"""
