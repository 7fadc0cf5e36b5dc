"""What kernels of all readers are made of: how they are compiled, loads and stores.

Anything that knows a log or a message does not belong here.

Open to other rooms: ``compiling``, ``jit``, ``memory``.
"""
