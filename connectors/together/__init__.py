"""Several connectors in one process: one Spark session, one HTTP endpoint, and what fails of one leaves the others alone.

What one connector does does not belong here (:mod:`connectors.pipeline`).

Open to other rooms: ``runs``.
"""
