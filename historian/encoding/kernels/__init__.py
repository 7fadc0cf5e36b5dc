"""Compiled loops over encoded rows. Arrays in, arrays out; nothing here knows Arrow, schemas or defaults.

Many values lie in one array of bytes ``data``; value k has ``lengths[k]`` bytes from ``starts[k]``. Value j of
container i is number ``first[i] + j * step``. All numbers are int64: numba makes floats of mixed signed and unsigned ones.
"""
