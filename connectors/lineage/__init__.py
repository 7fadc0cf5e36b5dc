"""Lineage of a run for servers of OpenLineage: which tables go where, column by column, and the events that tell it.

The way of an event to a server does not belong here (:mod:`connectors.notifications`).

Open to other rooms: ``datasets``, ``events``, ``runs``.
"""
