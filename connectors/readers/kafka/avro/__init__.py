"""Debezium's change events as Avro with their schemas in a registry: a writer's schema as Kafka Connect's, and messages as events.

What fields of Kafka Connect are as columns does not belong here (:mod:`connectors.readers.kafka.debezium`).

Open to other rooms: ``columnar``, ``connect_schemas``, ``events``, ``programs``, ``writers``.
"""
