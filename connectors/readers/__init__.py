"""Readers of logs, and in ``base`` what a pipeline knows of one.

Deciding which version rows have does not belong here (:mod:`connectors.tracking`).

Open to other rooms: ``base``.
"""
