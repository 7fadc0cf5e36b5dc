"""Tables of one kind in many databases as one table: their plans, chunks and edits become those of one, told apart by shard columns.

What follows, from homes to commits, sees the one table alone.
"""

from __future__ import annotations
