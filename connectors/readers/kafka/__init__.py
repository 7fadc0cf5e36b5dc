"""Topics of change events: ``reader`` reads them by offset, ``client`` asks the broker, the others know formats.

Histories and sinks do not belong here, nor what a version is: messages say what schema they have, and no more.

Open to other rooms: ``administration``, ``avro``, ``client``, ``compiling``, ``debezium``, ``decoders``, ``formats``, ``group``, ``json_schema``, ``kernels``, ``keyed``,
``located``, ``messages``, ``reader``, ``registry``, ``rows``, ``statements``, ``tidb``.
"""
