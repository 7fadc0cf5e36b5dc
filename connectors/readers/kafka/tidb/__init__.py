"""What TiCDC writes that no other format is like: its open protocol, its simple protocol, and its Avro.

Its canal-json does not belong here (:mod:`connectors.readers.kafka.formats`), nor its Debezium form (:mod:`connectors.readers.kafka.debezium`).

Open to other rooms: ``avro``, ``decoder``, ``open_protocol``, ``simple``, ``simple_avro``, ``typed_columns``, ``versioned_rows``.
"""
