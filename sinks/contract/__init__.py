"""What a pipeline knows of a sink, and what all sinks are made of: parts of a plan, chunks, locations of tables.

One sink's files and tables do not belong here.

Open to other rooms: ``base``, ``chain``, ``chunks``, ``decisions``, ``held_plans``, ``late_java``, ``local_chunks``, ``locations``,
``parts``, ``probe``, ``read_chunks``, ``refusals``, ``spark_chunks``, ``storage``, ``tables``.
"""
