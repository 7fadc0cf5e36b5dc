"""What all parts of a configuration's document have in common: the base model, and types of fields."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo, WithJsonSchema

from connectors.config import values

__all__ = ["Bytes", "ExistingPath", "Location", "Model", "parsed", "schema_types"]


class Model(BaseModel):
    """A mapping of the document: unknown keys are problems, and no input stands in a problem's text."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=False)


def schema_types(*kinds: str) -> WithJsonSchema:
    """The JSON Schema of a field that takes values of these kinds."""
    return WithJsonSchema({"type": list(kinds) if len(kinds) > 1 else kinds[0]})


def parsed(parse: Callable[[Any], object]) -> BeforeValidator:
    """Validates a text or a number by *parse*."""

    def convert(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise ValueError("expected a text or a number")  # noqa: TRY004 pydantic reports ValueError
        return parse(value)

    return BeforeValidator(convert)


def _base(info: ValidationInfo) -> Path:
    """The directory that relative paths start from: the YAML file's."""
    context: dict[str, Path] = info.context or {}
    return context.get("base", Path.cwd())


def _path(value: object, info: ValidationInfo) -> Path:
    if not isinstance(value, str) or not value:
        raise ValueError("expected a path")
    try:
        return (_base(info) / Path(value).expanduser()).resolve()
    except (OSError, RuntimeError) as error:
        raise ValueError(_no_path(error)) from None


def _no_path(error: OSError | RuntimeError) -> str:
    """A home of nobody, links in a circle, a name that is too long."""
    return f"no path: {getattr(error, 'strerror', None) or error}"


def _existing(value: object, info: ValidationInfo) -> Path:
    path = _path(value, info)
    try:
        exists = path.exists()
    except OSError as error:
        raise ValueError(_no_path(error)) from None
    if not exists:
        raise ValueError(f"no such file or directory, seen from {_base(info)}")
    return path


def _location(value: object, info: ValidationInfo) -> str:
    """A directory's path, or the URL of one (s3a://...) as it is."""
    return value if isinstance(value, str) and "://" in value else str(_path(value, info))


ExistingPath = Annotated[Any, BeforeValidator(_existing), schema_types("string")]
Location = Annotated[Any, BeforeValidator(_location), schema_types("string")]
Bytes = Annotated[Any, parsed(values.parse_bytes), schema_types("string", "integer")]
