"""What the kernels of logs are made of: the compiler, checksums.

Anything that knows an event does not belong here, nor loads and stores (:mod:`connectors.readers.machine`).

Open to other rooms: ``checksums``, ``folding``, ``jit``.
"""
