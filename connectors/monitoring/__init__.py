"""What people and machines see of a running connector: an observer of its run, metrics, health, and the endpoint that serves them.

What a run does does not belong here, nor how a terminal shows it.

Open to other rooms: ``copies``, ``endpoint``, ``group_offsets``, ``looking``, ``normalization``, ``observer``, ``picture``, ``process``, ``retention``, ``state``, ``stored``,
``targets``, ``watching``.
"""
