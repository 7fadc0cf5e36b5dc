"""Messages of any format, and what they are read as: changes of rows and statements, and how values are written.

How a format's messages are read does not belong here (:mod:`connectors.readers.kafka.debezium`, :mod:`connectors.readers.kafka.formats`).

Open to other rooms: ``batch``, ``binary``, ``events``, ``fractions``, ``geometries``, ``json_texts``, ``modes``, ``parsing``, ``partitions``, ``sniffing``, ``source_places``,
``timestamps``, ``whole_rows``.
"""
