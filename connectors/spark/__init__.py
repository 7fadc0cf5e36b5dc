"""The Spark data source ``format("historian")``, typed tables, and the Java parts.

DataFrame functions on changelogs do not belong here (:mod:`pyspark_historian`).

Open to other rooms: ``data_source``, ``ending``, ``jvm``, ``jvm_s3``, ``quiet``.
"""
