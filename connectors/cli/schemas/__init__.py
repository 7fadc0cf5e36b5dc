"""``historian schemas``: which schema a table had where, and the history as a whole.

DDL without a history does not belong here (``historian ddl``).

Open to other rooms: ``commands``.
"""
