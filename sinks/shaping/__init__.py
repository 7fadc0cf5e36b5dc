"""What of a table reaches a lake, and in which form: columns left out, masked, hashed, cut short or computed, and rows filtered.

What becomes of a schema change does not belong here (:mod:`historian.plans.evolution`).

Open to other rooms: ``bindings``, ``expressions``, ``plans``, ``rules``, ``tables``.
"""

from __future__ import annotations
