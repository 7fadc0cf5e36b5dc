"""Batches of messages in JSON as columns: which messages compiled code understands, their rows, and Arrow arrays of them.

What a format calls things does not belong here, nor what becomes of a message that is not understood: it is read one by one.

Open to other rooms: ``batches``, ``columns``, ``forms``, ``programs``, ``source_words``.
"""
