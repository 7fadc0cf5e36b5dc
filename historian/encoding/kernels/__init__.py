"""Compiled loops over encoded rows. Arrays in, arrays out; nothing here knows Arrow, schemas or defaults.

Many values lie in one array of bytes ``data``; value k has ``lengths[k]`` bytes from ``starts[k]``. Elements of lists are
numbered list by list: list i has those from ``first[i]`` up to ``first[i + 1]``. All numbers are int64: numba makes floats
of mixed signed and unsigned ones.
"""
