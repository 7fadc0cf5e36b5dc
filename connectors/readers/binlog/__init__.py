"""Binlogs of MySQL and MariaDB, live and in files."""
