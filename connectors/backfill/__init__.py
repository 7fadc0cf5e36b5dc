"""Reads the rows that a table held before the log tells of it, and those that the log does not tell, as of a position.

Following the log (:mod:`connectors.tracking`) and writing (:mod:`connectors.pipeline`) do not belong here.

Open to other rooms: ``busy``, ``copying``, ``copying_again``, ``estimates``, ``forwarding``, ``pace``, ``replica``, ``rows_of_keys``, ``samples``,
``selecting``, ``selection``, ``snapshots``, ``splits``, ``spool``.
"""
