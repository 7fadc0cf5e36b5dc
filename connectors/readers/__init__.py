"""Readers of logs."""
