"""People and machines are told of what happens to a connector: what is told, how it is put, and its way to where it goes.

Numbers and pictures of a run do not belong here (:mod:`connectors.monitoring`).

Open to other rooms: ``notifier``.
"""
