"""What of a table reaches a lake, and in which form: columns left out, masked, hashed, cut short or computed, and rows filtered.

A plan and its chunks are shaped before anything is made of them, so that all targets hold the shaped rows alone. Rules are found
by the names with which columns came into the lake, and stay with them by id.
"""

from __future__ import annotations
