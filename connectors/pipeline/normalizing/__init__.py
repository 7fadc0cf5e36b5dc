"""Normalisation as a part of a run: what is between a plan's rows and its sinks.

What becomes of a row does not belong here (:mod:`historian.normalizing`), nor how states are kept (:mod:`sinks.delta.keyed`).

Open to other rooms: ``stage``.
"""
