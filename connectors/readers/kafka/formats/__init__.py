"""Formats whose messages name fields and little more: each is a table, and one decoder reads them all.

A format with a schema of its own in each message does not belong here (:mod:`connectors.readers.kafka.debezium`), nor what a version
is (:mod:`connectors.tracking`).

Open to other rooms: ``columnar``, ``decoder``, ``inferring``, ``schemas``, ``tables``, ``values``.
"""
