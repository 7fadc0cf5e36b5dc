"""Limits of copies that people change while a connector runs, by the names that `source.backfill` has for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pydantic import ValidationError

from connectors.config.settings import CopyLimits
from connectors.config.sources import BackfillDocument
from historian.errors import ConfigError

__all__ = ["limits_in_force", "limits_of_texts", "limits_text", "named_limits"]

_PAUSE = "pause_above."
_OF_ALL = {"connections": "connections", "rows_per_second": "rows_per_s", "bytes_per_second": "bytes_per_s"}
_OF_PAUSE = {
    f"{_PAUSE}threads_running": "threads_running",
    f"{_PAUSE}history_list_length": "history_list_length",
    f"{_PAUSE}replica_lag_seconds": "replica_lag_s",
}


def named_limits(limits: CopyLimits) -> dict[str, int | None]:
    """The limits that can be changed, by name; None: that one does not matter."""
    return {name: getattr(limits, field) for name, field in _OF_ALL.items()} | {
        name: getattr(limits.pause_above, field) for name, field in _OF_PAUSE.items()
    }


def limits_text(limits: CopyLimits) -> str:
    """Those that hold, for people."""
    return ", ".join(
        f"{name} {value}"
        for name, value in named_limits(limits).items()
        if value is not None and (value or name in _OF_PAUSE)
    )


def limits_in_force(configured: CopyLimits, said: Iterable[tuple[str, int | None]]) -> CopyLimits:
    """*configured* with what people have *said* since; names that are not known, as of a later release, are passed over."""
    values = dict(said)
    of_all = {field: value for name, field in _OF_ALL.items() if (value := values.get(name)) is not None}
    of_pause = {field: values[name] for name, field in _OF_PAUSE.items() if name in values}
    return replace(configured, **of_all, pause_above=replace(configured.pause_above, **of_pause))


def limits_of_texts(texts: Iterable[str]) -> dict[str, int | str | None]:
    """What `NAME=VALUE` texts say, by name: a number; None: `off`; "": what the configuration says holds again.

    Raises:
        ConfigError: a name is not known, or its value is none that the configuration may have.
    """
    found: dict[str, int | str | None] = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        if name not in {*_OF_ALL, *_OF_PAUSE} or "=" not in text:
            raise _wrong(text, f"NAME=VALUE with one of the names {', '.join((*_OF_ALL, *_OF_PAUSE))}")
        found[name] = _value(name, value) if value else ""
    return found


def _value(name: str, value: str) -> int | None:
    if value == "off":
        if name == "connections":
            raise _wrong(f"{name}={value}", "a number from 1 to 16; `--pause` lets copies rest")
        return None if name in _OF_PAUSE else 0
    key = name.removeprefix(_PAUSE)
    document = {"pause_above": {key: value}} if name in _OF_PAUSE else {key: value}
    try:
        limits = BackfillDocument.model_validate(document).plain()
    except ValidationError as error:
        raise _wrong(f"{name}={value}", "; ".join(each["msg"] for each in error.errors())) from error
    return named_limits(limits)[name]


def _wrong(text: str, expected: str) -> ConfigError:
    return ConfigError("a limit of copies cannot be read", problems=(f"found {text}, expected: {expected} @ --limit",))
