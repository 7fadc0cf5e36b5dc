"""Statements that stand in another topic than the rows: where each is among them, and what becomes of those that come late.

How a statement is read of a message does not belong here (:mod:`connectors.readers.kafka.debezium`), nor what it does to a table.

Open to other rooms: ``crossings``, ``scanned``, ``source_order``.
"""
