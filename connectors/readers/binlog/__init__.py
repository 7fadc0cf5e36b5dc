"""Binlogs of MySQL and MariaDB, live and in files: ``reader`` puts the rooms together.

Histories and sinks do not belong here.

Open to other rooms: ``reader``.
"""
