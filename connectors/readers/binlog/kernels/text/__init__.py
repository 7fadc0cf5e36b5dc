"""Text into UTF-8, and binary JSON into the server's own text.

Which character set a column has does not belong here (:mod:`historian.charsets`).

Open to other rooms: ``double_byte``, ``json``, ``json_layout``, ``latin1``, ``single_byte``.
"""
