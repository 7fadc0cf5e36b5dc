"""What single events say, in plain Python, and how a TABLE_MAP compares with a schema.

Row images do not belong here (:mod:`connectors.readers.binlog.rows`).

Open to other rooms: ``collations``, ``crosscheck``, ``error_location``, ``full_metadata``, ``gtid_sources``, ``layout``,
``statements``, ``table_maps``.
"""
