"""Fresh targets begin with what previous ones held up to a plan.

Reading the log again does not belong here (:mod:`connectors.recovery`).

Open to other rooms: ``previous_targets``, ``seeding``.
"""
