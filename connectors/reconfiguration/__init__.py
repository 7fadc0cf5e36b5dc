"""Another configuration for a connector that has begun: what a run with it would do, told beforehand.

How a run goes does not belong here (:mod:`connectors.pipeline`), nor do plans, which are stretches of the log
(:mod:`historian.plans`).

Open to other rooms: ``effects``, ``foresight``, ``noted``, ``reloads``.
"""
