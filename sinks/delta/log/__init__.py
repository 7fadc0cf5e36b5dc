"""Delta's log through Delta Kernel: commits, one version of a table, statistics, and the table that plans are written to.

Rows do not belong here.

Open to other rooms: ``columns``, ``commits``, ``foreign``, ``kernel``, ``orphans``, ``plain_log``, ``pruning``, ``side_by_side``,
``statistics``, ``table_view``, ``target``, ``tasks``, ``time_travel``.
"""
