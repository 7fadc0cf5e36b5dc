"""Messages in JSON taken apart by compiled code: where their values stand, which rows they are, and values as Arrow's buffers.

What a format calls things does not belong here, nor what is done with a message that a kernel does not understand.

Open to other rooms: ``avro_layout``, ``avro_values``, ``avro_walk``, ``changes``, ``gathering``, ``layout``, ``locating``, ``moments``, ``numbers``,
``sources``, ``texts``.
"""
