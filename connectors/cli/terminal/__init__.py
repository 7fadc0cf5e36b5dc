"""How commands take arguments, open what they need, print, and end.

Commands do not belong here.

Open to other rooms: ``arguments``, ``aside``, ``edit_text``, ``kernels``, ``logs``, ``outcome``, ``plain_text``, ``progress``, ``recorded_history``,
``schema_forms``, ``sessions``, ``sizes``, ``tables``, ``work_progress``.
"""
