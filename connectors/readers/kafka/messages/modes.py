"""Settings of Debezium's connectors that change how values are written, for messages without their schema."""

from __future__ import annotations

from dataclasses import dataclass, replace

from connectors.readers.kafka.messages.events import Conventions

__all__ = ["DEFAULT_MODES", "DebeziumModes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DebeziumModes:
    """What a connector is set to, in Debezium's words.

    Attributes:
        decimals: "precise", "double" or "string", of ``decimal.handling.mode``.
        binary: "bytes", "base64", "base64-url-safe" or "hex", of ``binary.handling.mode``.
        temporal: of ``time.precision.mode``.
        full_identity: all tables of PostgreSQL's have REPLICA IDENTITY FULL, so that former rows are whole; else deletes are by
            their keys alone, and updates have none.
        unavailable: ``unavailable.value.placeholder``.
        accepts_defaults: a default of a nullable column counts as such where the converter writes defaults in the place of NULLs.
    """

    decimals: str = "precise"
    binary: str = "bytes"
    temporal: str = "adaptive_time_microseconds"
    full_identity: bool = False
    unavailable: str = "__debezium_unavailable_value"
    accepts_defaults: bool = False

    def over(self, written: Conventions) -> Conventions:
        """*written* as this connector writes."""
        return replace(
            written,
            decimal="base64" if self.decimals == "precise" else "text",
            binary="base64" if self.binary == "bytes" else self.binary,
            temporal=self.temporal,
        )


DEFAULT_MODES = DebeziumModes()
