"""The document's part on small files."""

from __future__ import annotations

from pydantic import Field

from connectors.config.model import Bytes, Model

__all__ = ["CompactDocument", "compaction_of"]


class CompactDocument(Model):
    """When small files are joined."""

    files: int = Field(default=50, ge=2, description="From how many small files on they are joined.")
    target: Bytes = Field(default=128_000_000, description="Size of the joined files, such as `128 MB`.")


def compaction_of(chosen: object) -> tuple[int, int] | None:
    """So many files, and of what size in bytes, of a document or its keys; None: small files stay."""
    if chosen is None:
        return None
    document = CompactDocument.model_validate(chosen)
    return document.files, document.target
