"""Events found, scanned and unpacked, without a look at row images.

Row images do not belong here (:mod:`connectors.readers.binlog.kernels.rows`).

Open to other rooms: ``finding``, ``gtids``, ``scan_layout``, ``scanning``, ``transactions``, ``unpacking``, ``xa``.
"""
