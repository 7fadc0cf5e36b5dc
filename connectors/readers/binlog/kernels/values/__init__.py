"""Numbers and dates of row images, and the layout that kernels and callers share.

Text and JSON do not belong here (:mod:`connectors.readers.binlog.kernels.text`).

Open to other rooms: ``decimals``, ``layout``, ``temporal``.
"""
