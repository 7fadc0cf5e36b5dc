"""The page of a connector: one HTML file with its tables, their schema timelines, and what became of them, for a browser without a network.

How a connector stands is given to it (:mod:`connectors.monitoring`), and does not belong here; neither does serving it.

Open to other rooms: ``html``, ``page``, ``phrases``.
"""
