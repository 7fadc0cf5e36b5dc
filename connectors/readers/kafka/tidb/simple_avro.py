"""Messages of TiCDC's simple protocol as Avro, whose schema stands in none of them: it is that of TiCDC's release."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from io import BytesIO
from typing import Any

from historian.errors import SourceError

__all__ = ["avro_reader"]

_UNREADABLE = (EOFError, IndexError, MemoryError, OverflowError, StopIteration, struct.error)
"""What bytes that are of another schema make of the library, besides what readers of messages raise."""


def avro_reader(schema: str) -> Callable[[bytes], Any]:
    """What makes messages of values.

    Args:
        schema: the text of TiCDC's ``pkg/sink/codec/simple/message.json``.

    Raises:
        SourceError: it is no schema of Avro.
    """
    from fastavro import parse_schema, schemaless_reader
    from fastavro.schema import SchemaParseException

    try:
        made = parse_schema(json.loads(schema))
    except (SchemaParseException, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SourceError(
            "source.message_schema is no schema of Avro",
            where="source.message_schema",
            found=f"{type(error).__name__} {error}",
            next_step="take pkg/sink/codec/simple/message.json of the TiCDC release that writes the topics",
        ) from None

    def read(value: bytes) -> Any:
        body = BytesIO(value)
        try:
            found: Any = schemaless_reader(body, made, None)
        except _UNREADABLE as error:
            raise ValueError(f"of another schema: {type(error).__name__} {error}".strip()) from None
        if body.tell() != len(value):
            raise ValueError(f"{len(value) - body.tell()} bytes behind its end")
        payload = found["payload"]
        # What a bootstrap was committed with has no meaning, and is left out.
        return {"commitTs": 0, **payload} if payload.get("type") == "BOOTSTRAP" else payload

    return read
