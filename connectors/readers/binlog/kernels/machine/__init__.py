"""What all kernels are made of: the compiler, loads and stores, checksums.

Anything that knows an event does not belong here.

Open to other rooms: ``checksums``, ``folding``, ``jit``, ``memory``.
"""
