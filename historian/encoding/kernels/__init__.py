"""Compiled loops over encoded rows: addresses in, numbers out.

Arrow and schemas do not belong here.

Open to other rooms: ``containers``, ``memory``, ``plain``.
"""
