"""Statements in topics: where each is among rows that other partitions have, and what becomes of those that come late.

How a statement is read of a message does not belong here (:mod:`connectors.readers.kafka.debezium`), nor what it does to a table.

Open to other rooms: ``ahead``, ``crossings``, ``scanned``, ``source_order``.
"""
