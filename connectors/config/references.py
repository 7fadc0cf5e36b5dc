"""References in the texts of a document: ``${env:NAME}``, ``${file:PATH}``, ``${command:PROGRAM ARGUMENTS}``.

``${env:NAME:-default}`` has a default. ``$${`` stands for a literal ``${``.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["NOT_A_REFERENCE", "JsonPath", "ResolvedDocument", "fill", "has_references", "path_text"]

JsonPath = tuple[str | int, ...]

NOT_A_REFERENCE = "not a reference"
"""How the problem of a ``${`` begins behind which no known reference stands: it may be a part of a password."""
_EXPECTED = "expected ${env:NAME}, ${env:NAME:-default}, ${file:PATH} or ${command:PROGRAM}, or $${ for a literal ${"
_TOKEN = re.compile(r"\$\$\{|\$\{(?:(env|file|command):([^}]*)\})?")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_COMMAND_LIMIT_S = 30


@dataclass(frozen=True, slots=True)
class ResolvedDocument:
    """A document with its references filled in.

    Attributes:
        value: the document. A text with a reference that cannot be filled in stands as it was.
        problems: one text a reference that cannot be filled in, by path.
    """

    value: Any
    problems: Mapping[JsonPath, str] = field(default_factory=dict)


class _NotFilled(Exception):
    """A reference that cannot be filled in."""


def path_text(path: JsonPath) -> str:
    """A path as people write it: ``$.sinks[0].path``."""
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def fill(document: Any, environment: Mapping[str, str], base: Path) -> ResolvedDocument:
    """Fills in every reference in the texts of *document*; keys are left alone.

    Args:
        environment: what ``env`` refers to; programs have it too.
        base: the directory that relative paths start from, and that programs run in.
    """
    problems: dict[JsonPath, str] = {}
    references = _References(environment, base)
    return ResolvedDocument(_fill(document, references.filled, (), problems), problems)


def has_references(document: Any) -> bool:
    """Whether a text of *document* refers to something that is kept elsewhere."""
    if isinstance(document, dict):
        return any(map(has_references, document.values()))
    if isinstance(document, list):
        return any(map(has_references, document))
    return isinstance(document, str) and any(token[1] for token in _TOKEN.finditer(document))


def _fill(value: Any, filled: Callable[[str], str], path: JsonPath, problems: dict[JsonPath, str]) -> Any:
    if isinstance(value, dict):
        return {key: _fill(each, filled, (*path, key), problems) for key, each in value.items()}
    if isinstance(value, list):
        return [_fill(each, filled, (*path, at), problems) for at, each in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    try:
        return filled(value)
    except _NotFilled as error:
        problems[path] = str(error)
        return value


@dataclass(frozen=True, slots=True)
class _References:
    environment: Mapping[str, str]
    base: Path

    def filled(self, text: str) -> str:
        return _TOKEN.sub(self._one, text)

    def _one(self, token: re.Match[str]) -> str:
        if token[0] == "$${":
            return "${"
        match token[1]:
            case "env":
                return self._variable(token[2])
            case "file":
                return self._file(token[2])
            case "command":
                return self._command(token[2])
        raise _NotFilled(f"{NOT_A_REFERENCE}; {_EXPECTED}")

    def _variable(self, text: str) -> str:
        parts = _VARIABLE.fullmatch(text)
        if parts is None:
            raise _NotFilled(f"{NOT_A_REFERENCE}; {_EXPECTED}")
        value = self.environment.get(parts[1], parts[2])
        if value is None:
            raise _NotFilled(f"environment variable {parts[1]} is not set")
        return value

    def _file(self, text: str) -> str:
        path = self.base / text
        try:
            path = self.base / Path(text).expanduser()
            return path.read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            raise _NotFilled(f"file {path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise _NotFilled(f"file {path} is not UTF-8") from None
        except (RuntimeError, ValueError) as error:
            raise _NotFilled(f"no path of a file: {error}") from None

    def _command(self, text: str) -> str:
        program: list[str] = []
        try:
            program = shlex.split(text)
            if not program:
                raise _NotFilled(f"{NOT_A_REFERENCE}; {_EXPECTED}")
            done = subprocess.run(  # noqa: S603 it is the user's own program
                program, check=True, capture_output=True, cwd=self.base, env=self.environment, timeout=_COMMAND_LIMIT_S
            )
            return done.stdout.decode().rstrip("\r\n")
        except subprocess.CalledProcessError as error:
            # What it printed may be a part of a secret.
            raise _NotFilled(f"command {program[0]} ended with {error.returncode}") from None
        except subprocess.TimeoutExpired:
            raise _NotFilled(f"command {program[0]} did not end within {_COMMAND_LIMIT_S} s") from None
        except UnicodeDecodeError:
            raise _NotFilled(f"what command {program[0]} prints is not UTF-8") from None
        except (OSError, ValueError) as error:
            raise _NotFilled(f"a command cannot be run: {error}") from None
