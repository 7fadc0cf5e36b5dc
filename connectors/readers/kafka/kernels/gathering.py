"""Messages as librdkafka holds them put behind each other in memory.

A message is a ``rd_kafka_message_t`` as :file:`rdkafka.h` of librdkafka 2 has it. Its parts stand at the places below; its error is 0 where
there is none.
"""

from __future__ import annotations

from connectors.readers.kafka.kernels.jit import kernel
from connectors.readers.machine.memory import call, copy_bytes, load_i32, load_i64, store_i64

__all__ = ["FACTS", "facts", "gather", "release"]

_ERROR, _TOPIC, _PARTITION = 0, 8, 16
_VALUE, _VALUE_BYTES, _KEY, _KEY_BYTES, _OFFSET = 24, 32, 40, 48, 56

FACTS = 8
"""Words that :func:`facts` keeps of a message: error, topic's address, partition, offset, date, whether there is a value and a key, and their bytes."""


@kernel
def facts(messages: int, count: int, date: int, scratch: int, found: int) -> int:
    """Writes :data:`FACTS` words a message to *found*, a column each: all errors, all topics, and so on; *count* again.

    An error's text is no value.

    Args:
        messages: address of addresses of messages.
        date: address of ``rd_kafka_message_timestamp``; *scratch*: of a word for what kind of date it is, 0 where there is none.
    """
    for number in range(count):
        message = load_i64(messages + 8 * number)
        at = found + 8 * number
        column = 8 * count
        error = load_i32(message + _ERROR)
        store_i64(at, error)
        store_i64(at + column, load_i64(message + _TOPIC))
        store_i64(at + 2 * column, load_i32(message + _PARTITION))
        store_i64(at + 3 * column, load_i64(message + _OFFSET))
        store_i64(scratch, 0)
        time_ms = call(date, message, scratch)
        store_i64(at + 4 * column, time_ms if load_i32(scratch) else -1)
        has_value = 1 if not error and load_i64(message + _VALUE) else 0
        has_key = 1 if not error and load_i64(message + _KEY) else 0
        store_i64(at + 5 * column, has_value | has_key << 1)
        store_i64(at + 6 * column, load_i64(message + _VALUE_BYTES) if has_value else 0)
        store_i64(at + 7 * column, load_i64(message + _KEY_BYTES) if has_key else 0)
    return count


@kernel
def gather(messages: int, chosen: int, count: int, values: int, keys: int) -> int:
    """Copies the values of messages to *values*, and their keys to *keys*, each behind the one before; *count* again.

    Args:
        messages: address of addresses of messages.
        chosen: address of the numbers of *count* messages.
        values, keys: addresses with room for all.
    """
    for number in range(count):
        message = load_i64(messages + 8 * load_i64(chosen + 8 * number))
        size = load_i64(message + _VALUE_BYTES)
        if load_i64(message + _VALUE) and size:
            copy_bytes(values, load_i64(message + _VALUE), size)
            values += size
        size = load_i64(message + _KEY_BYTES)
        if load_i64(message + _KEY) and size:
            copy_bytes(keys, load_i64(message + _KEY), size)
            keys += size
    return count


@kernel
def release(messages: int, count: int, destroy: int) -> int:
    """Gives *count* messages back, by ``rd_kafka_message_destroy`` at the address *destroy*; *count* again."""
    for number in range(count):
        call(destroy, load_i64(messages + 8 * number), 0)
    return count
