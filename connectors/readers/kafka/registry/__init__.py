"""A schema registry as Confluent's interface has it: schemas by their ids, and how a message names the one that it was written with.

What a schema means does not belong here (:mod:`connectors.readers.kafka.avro`).

Open to other rooms: ``client``, ``wire``.
"""
