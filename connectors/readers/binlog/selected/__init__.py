"""Rows that a server's tables hold now, read by SELECT, with the values that the log gives of the same rows.

A kernel makes row images of the result, and those are decoded as a log's are (:mod:`connectors.readers.binlog.rows`). Which rows are
asked for, and as of which position they stand, does not belong here.

Open to other rooms: ``failures``, ``reading``, ``sessions``.
"""
