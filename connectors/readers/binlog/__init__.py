"""Binlogs of MySQL and MariaDB, live and in files: ``files_reader`` and ``server_reader`` put the rooms together.

Histories and sinks do not belong here.

Open to other rooms: ``compiling``, ``files_reader``, ``server_reader``.
"""
