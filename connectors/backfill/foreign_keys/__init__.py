"""What foreign keys change in children, on servers that do not log it: which tables, which of their rows, and those rows as of a plan's end.

What is made of the rows does not belong here.

Open to other rooms: ``affected``, ``cascades``, ``child_keys``.
"""
