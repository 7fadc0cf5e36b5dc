"""Compiled loops over binlog bytes: addresses in, numbers out.

Tables, schemas and Arrow do not belong here.
"""
