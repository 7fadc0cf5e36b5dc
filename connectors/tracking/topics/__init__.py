"""Versions of tables whose log is topics: made of the schemas that messages have, passed to by each partition on its own.

What a message says does not belong here (:mod:`connectors.readers.kafka`).

Open to other rooms: ``edits``, ``met_schemas``, ``statement_times``, ``told``.
"""
