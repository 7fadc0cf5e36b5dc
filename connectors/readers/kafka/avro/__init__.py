"""Debezium's change events as Avro with their schemas in a registry: a writer's schema as Kafka Connect's, and messages as events.

What an event of Debezium's is does not belong here, nor what its fields are as columns (:mod:`connectors.readers.kafka.debezium`).

Open to other rooms: ``columnar``, ``connect_schemas``, ``events``, ``programs``, ``sent``, ``writers``.
"""
