"""Stopped tables go on, and tables are read again: heal, override, replay, copy again.

What a sink does for it does not belong here (:mod:`sinks.delta.reseeding`).

Open to other rooms: ``copying_again``, ``healing``, ``repairing``, ``repairing_rows``.
"""

from connectors.recovery.overriding import override
from connectors.recovery.replaying import earliest, lacks_rows, replay

__all__ = ["earliest", "lacks_rows", "override", "replay"]
