"""Messages that are a row, under the row's key: plain JSON and Avro, and what Debezium's transform leaves of its events.

A message says what its row is from now on, and not what it was. Who knows that does not belong here.

Open to other rooms: ``declared``, ``deletes``, ``formats``, ``rows``.
"""
