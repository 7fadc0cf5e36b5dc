"""Debezium's change events as JSON with their schema inline: what schema a message has, and its row as values.

Which version a schema is does not belong here (:mod:`connectors.tracking`).

Open to other rooms: ``changes``, ``columnar``, ``envelope``, ``events``, ``names``, ``schema_changes``, ``schemas``,
``values``.
"""
