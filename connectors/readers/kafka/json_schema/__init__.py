"""Debezium's change events as JSON with their schemas in a registry, as JSON Schema: a schema as Kafka Connect's, and messages as events.

What fields of Kafka Connect are as columns does not belong here (:mod:`connectors.readers.kafka.debezium`).

Open to other rooms: ``events``, ``schemas``.
"""
