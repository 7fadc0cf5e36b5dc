"""JSON whose schemas a registry has as JSON Schema: a schema as Kafka Connect's.

What an event of Debezium's is does not belong here, nor what its fields are as columns (:mod:`connectors.readers.kafka.debezium`).

Open to other rooms: ``events``, ``schemas``.
"""
