"""Rows of a server's result sets, made into row images as a log has them.

Events of a log do not belong here (:mod:`connectors.readers.binlog.kernels.log`), nor what row images become.

Open to other rooms: ``encoding``, ``layout``.
"""
