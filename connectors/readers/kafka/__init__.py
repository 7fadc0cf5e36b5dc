"""Topics of change events: ``reader`` reads them by offset, ``client`` asks the broker, ``debezium`` knows a format.

Histories and sinks do not belong here, nor what a version is: messages say what schema they have, and no more.

Open to other rooms: ``client``, ``debezium``, ``reader``.
"""
