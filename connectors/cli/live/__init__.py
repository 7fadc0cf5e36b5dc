"""What ``historian run`` shows while it runs: a picture on a terminal, lines elsewhere.

What the picture is of does not belong here (:mod:`connectors.monitoring`).

Open to other rooms: ``display``, ``lines``.
"""
