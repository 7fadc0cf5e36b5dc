"""The light scan: windows in; bounds, statements and new TABLE_MAPs out.

Row images do not belong here (:mod:`connectors.readers.binlog.rows`).

Open to other rooms: ``open_transactions``, ``scanner``, ``unsupported_events``.
"""
