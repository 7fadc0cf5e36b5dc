"""A lake for those who read it: consistent cuts, and where the targets of a table stand.

Anything that writes does not belong here.

Open to other rooms: ``cuts``, ``plain_files``, ``settings_fit``, ``target_status``.
"""
