"""The kernels of messages that Python calls."""

from __future__ import annotations

from typing import Any

from connectors.readers.kafka.kernels import (
    avro_values,
    avro_walk,
    changes,
    gathering,
    locating,
    moments,
    numbers,
    sources,
    texts,
)

__all__ = ["KERNELS"]

KERNELS: tuple[Any, ...] = (
    gathering.facts,
    gathering.gather,
    gathering.release,
    locating.locate,
    locating.matching,
    changes.moves,
    sources.source_places,
    changes.missing,
    numbers.integers,
    numbers.booleans,
    numbers.decimals,
    numbers.base64_decimals,
    numbers.doubles,
    texts.most_bytes,
    texts.spans,
    texts.texts,
    texts.base64_bytes,
    texts.latin1_bytes,
    moments.moments,
    moments.dates,
    moments.times,
    avro_walk.locate_avro,
    avro_values.avro_integers,
    avro_values.avro_floats,
    avro_values.avro_decimals,
    avro_values.avro_bodies,
)
"""They take numbers and addresses only."""
