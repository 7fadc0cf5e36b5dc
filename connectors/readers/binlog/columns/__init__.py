"""What the row kernel wrote of one column becomes an Arrow array, type by type.

Character sets (:mod:`historian.charsets`) and whole rows do not belong here.

Open to other rooms: ``arrays``, ``charsets``, ``compressed``, ``dead_letters``, ``fixed``, ``json``, ``labels``, ``lenient``,
``old_temporal``, ``type_options``.
"""
