"""Text columns by character set: what their bytes become.

Names of collations do not belong here (:mod:`connectors.readers.binlog.events`).

Open to other rooms: ``texts``.
"""
