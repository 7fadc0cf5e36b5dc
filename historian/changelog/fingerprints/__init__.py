"""Fingerprints of rows: which few of many rows can differ from others, in bounded memory and in any order.

Which rows do differ, and how, does not belong here (:mod:`sinks.delta.repairs`).
"""

from historian.changelog.fingerprints.buckets import Fingerprints, row_hashes

__all__ = ["Fingerprints", "row_hashes"]
