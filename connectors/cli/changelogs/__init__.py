"""``historian changelog``: a changelog in a lake or in files, checked, projected, converted or merged into.

The rows' part does not belong here (:mod:`pyspark_historian`).

Open to other rooms: ``commands``.
"""
