"""The Spark data source ``format("historian")``, typed tables, the Java parts, and code for executors.

DataFrame functions on changelogs do not belong here (:mod:`pyspark_historian`).

Open to other rooms: ``bundle``, ``data_source``, ``ending``, ``executors``, ``java_options``, ``jvm``, ``jvm_s3``, ``quiet``.
"""
