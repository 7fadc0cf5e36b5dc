"""The last row of each key in Delta tables of the lake's own, for normalisation: an index in memory leads to rows in files.

What changes make of rows does not belong here (:mod:`historian.normalizing`), nor what targets hold.

Open to other rooms: ``states``.
"""
