"""Compiled loops over binlog bytes. Nothing here knows tables, schemas or Arrow: addresses in, numbers out."""
