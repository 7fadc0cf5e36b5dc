"""How a target's files take a change: new files, and copy-on-write of those that hold its keys.

Which change a plan makes does not belong here (:mod:`sinks.delta.targets`).

Open to other rooms: ``compaction``, ``copy_on_write``, ``few_rows``, ``file_rewrite``, ``files``, ``held_rows``,
``large``, ``spark_rows``, ``staged``.
"""
