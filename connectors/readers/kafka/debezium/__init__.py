"""Debezium's change events, with their schema inline or in a registry: what schema a message has, and its row as values.

Which version a schema is does not belong here (:mod:`connectors.tracking`).

Open to other rooms: ``changes``, ``columnar``, ``doubts``, ``envelope``, ``events``, ``names``, ``placeholders``, ``registered``,
``replaced_nulls``, ``schema_changes``, ``schemas``, ``times``, ``values``.
"""
