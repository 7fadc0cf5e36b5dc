"""Row images into chunks: which version they have, which steps decode them, and what builds the chunk.

Single types do not belong here (:mod:`connectors.readers.binlog.columns`).

Open to other rooms: ``builder``, ``decoder``, ``program``.
"""
