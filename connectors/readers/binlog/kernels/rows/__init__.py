"""Row events taken apart, and their images written into columns.

Arrow does not belong here (:mod:`connectors.readers.binlog.columns`).

Open to other rooms: ``walk``.
"""
