"""The configuration's JSON Schema, for editors: ``make reference`` writes it to docs/config.schema.json."""

from __future__ import annotations

import json
import sys

from connectors.config.document import Document

__all__ = ["json_schema"]


def json_schema() -> str:
    """The schema's text, the same at every call."""
    schema = Document.model_json_schema(by_alias=True)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(json_schema())
