"""Rows of chunks in the shape of a target: a changelog's, a mirror's, a history's; and how their columns are encoded.

How a target is written does not belong here.

Open to other rooms: ``intervals``, ``key_ranges``, ``packing``, ``shapes``, ``variant``.
"""
