"""What all parts of a configuration's document have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["Model"]


class Model(BaseModel):
    """A mapping of the document: unknown keys are problems, and no input stands in a problem's text."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=False)
