"""Bytes of a log from a server or from files, as windows of whole events.

What an event says does not belong here (:mod:`connectors.readers.binlog.events`).

Open to other rooms: ``bulk_socket``, ``compressed_socket``, ``connection``, ``diverged``, ``dump``, ``dump_places``, ``failover``, ``files``, ``log_cache``, ``membership``,
``prefetch``, ``stream``, ``unpacking``, ``window``.
"""
