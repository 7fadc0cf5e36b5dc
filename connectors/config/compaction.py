"""The document's part on small files."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from connectors.config import values
from connectors.config.model import Model

__all__ = ["CompactDocument", "compaction_of"]


def _size(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError("expected a text or a number")  # noqa: TRY004 pydantic reports ValueError
    return values.parse_bytes(value)


_Bytes = Annotated[Any, BeforeValidator(_size), WithJsonSchema({"type": ["string", "integer"]})]


class CompactDocument(Model):
    """When small files are joined."""

    files: int = Field(default=50, ge=2, description="How many small files gather before they are joined.")
    target: _Bytes = Field(default=128_000_000, description="Size of the joined files, such as `128 MB`.")


def compaction_of(chosen: object) -> tuple[int, int] | None:
    """So many files, and of what size in bytes, of a document or its keys; None: small files stay."""
    if chosen is None:
        return None
    document = CompactDocument.model_validate(chosen)
    return document.files, document.target
