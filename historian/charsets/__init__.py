"""Character sets as the servers convert them: text of bytes, bytes of text, and the text that a client sent.

Collations and what a set means in a column definition do not belong here (:mod:`historian.ddl.parsing`).

Open to other rooms: ``conversion``, ``client_text``, ``multi_byte``, ``single_byte``.
"""
