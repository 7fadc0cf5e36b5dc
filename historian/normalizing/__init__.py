"""Normalisation: changes that lack the former row, or that come again, as whole -C and +C, -R and +A, by the last row of each key.

Where the last rows are kept does not belong here: :class:`historian.normalizing.states.KeyedState` says what is asked of that.

Open to other rooms: ``changes``, ``counts``, ``keys``, ``states``.
"""
