"""A log's changelog for those who only look: nothing recorded, neither Spark nor a lake.

Changelogs of a lake do not belong here (:mod:`connectors.cli.changelogs`).

Open to other rooms: ``follow``, ``json_lines``, ``log_order``, ``tables``.
"""
