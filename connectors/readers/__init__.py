"""Readers of logs, in ``base`` what a pipeline knows of one, and in ``room`` the memory that their scans share.

Deciding which version rows have does not belong here (:mod:`connectors.tracking`).

Open to other rooms: ``base``, ``room``.
"""
