"""The statements of a script of ``mysqltest``, in their order: what of its language says which text goes to the server.

Each block of a loop or condition is taken once. Statements with a variable whose value only a server knows are left out, and so are
files that scripts write, and Perl.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

__all__ = ["statements_of"]

Include = Callable[[str], str | None]
"""The text of a script by the path that ``source`` names; None where there is none."""

_DEEPEST_INCLUDE = 5
_SENDS = re.compile(r"(?:eval|query|send_eval|send|query_vertical|query_horizontal|evalp|execw)\s+", re.IGNORECASE)
_COMMANDS = frozenset(("append_file", "delimiter", "error", "let", "perl", "source", "write_file"))
"""Those that this module follows. Others are taken for statements, and who wants statements of a kind leaves them out by their first word."""
_WRITTEN = frozenset(("append_file", "perl", "write_file"))
"""Commands behind which text follows that is no part of the script."""
_BLOCK = re.compile(r"(?:if|while)\s*\(")
_VARIABLE = re.compile(r"\$(\w+)")
_SET_VARIABLE = re.compile(r"\$?(\w+)\s*=\s*(.*)", re.DOTALL)


@dataclass(slots=True)
class _Script:
    """A place in a text, and what its commands have set."""

    text: str
    include: Include
    variables: dict[str, str] = field(default_factory=dict)
    delimiter: str = ";"
    depth: int = 0
    at: int = 0

    def statements(self) -> Iterator[str]:
        while self.at < len(self.text):
            line = self._line().lstrip()
            if not line.strip() or line[0] == "#":
                self._skip_line()
            elif line[0] in "{}":
                self._skip(1)
            elif line.startswith("--"):
                self._skip_line()
                command = line[2:].strip()
                if _word(command) in _COMMANDS:
                    yield from self._command(command)
                elif _SENDS.match(command):
                    yield from self._sent(command)
            elif _BLOCK.match(line):
                self._skip_condition()
            else:
                yield from self._statement()

    def _line(self) -> str:
        end = self.text.find("\n", self.at)
        return self.text[self.at :] if end < 0 else self.text[self.at : end]

    def _skip_line(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end + 1

    def _skip(self, characters: int) -> None:
        """Moves behind blanks and so many characters."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        self.at += characters

    def _skip_condition(self) -> None:
        opens = self.text.find("{", self.at)
        self.at = len(self.text) if opens < 0 else opens + 1

    def _statement(self) -> Iterator[str]:
        """All up to the delimiter, which does not count inside quotes."""
        begin, quote = self.at, ""
        at, text = self.at, self.text
        while at < len(text):
            character = text[at]
            if quote:
                if character == "\\" and quote != "`":
                    at += 1
                elif character == quote:
                    quote = ""
            elif text.startswith(self.delimiter, at):
                break
            elif character in "'\"`":
                quote = character
            at += 1
        self.at = at + len(self.delimiter)
        written = text[begin:at].strip()
        word = _word(written)
        if word in _COMMANDS:
            yield from self._command(written)
        else:
            yield from self._sent(written)

    def _sent(self, written: str) -> Iterator[str]:
        sends = _SENDS.match(written)
        sql = written[sends.end() :] if sends else written
        if sends and sends[0].lower().startswith(("eval", "send_eval")):
            filled = self._filled(sql)
            if filled is None:
                return
            sql = filled
        if sql.strip():
            yield sql.strip()

    def _filled(self, text: str) -> str | None:
        """The text with the values of its variables; None where one has none."""
        if any(name not in self.variables for name in _VARIABLE.findall(text)):
            return None
        return _VARIABLE.sub(lambda found: self.variables[found[1]], text)

    def _command(self, command: str) -> Iterator[str]:
        word = _word(command)
        rest = command[len(word) :].strip()
        if word == "delimiter":
            self.delimiter = rest.removesuffix(self.delimiter).strip() or rest or ";"
        elif word == "let":
            self._let(rest)
        elif word == "source":
            yield from self._source(rest.rstrip(";"))
        elif word in _WRITTEN:
            self._skip_written(rest)

    def _let(self, rest: str) -> None:
        said = _SET_VARIABLE.match(rest)
        if said is None:
            return
        name, value = said[1], said[2].strip()
        filled = None if value.startswith("`") else self._filled(value)
        if filled is None or "query_get_value" in filled:
            self.variables.pop(name, None)
        else:
            self.variables[name] = filled

    def _source(self, path: str) -> Iterator[str]:
        filled = self._filled(path)
        text = None if filled is None or self.depth >= _DEEPEST_INCLUDE else self.include(filled)
        if text is None:
            return
        inner = _Script(text, self.include, self.variables, depth=self.depth + 1)
        yield from inner.statements()

    def _skip_written(self, rest: str) -> None:
        words = rest.replace(";", " ").split()
        ending = words[-1] if len(words) > 1 or (words and words[0].isupper()) else "EOF"
        if self.text[self.at - 1] != "\n":
            self._skip_line()
        while self.at < len(self.text):
            line = self._line()
            self._skip_line()
            if line.strip() == ending:
                return


def _word(text: str) -> str:
    found = re.match(r"\w+", text)
    return found[0].lower() if found else ""


def statements_of(text: str, include: Include = lambda _: None, variables: dict[str, str] | None = None) -> list[str]:
    """The statements of a script, without their delimiters. *variables*: those that are set before it begins."""
    return list(_Script(text, include, dict(variables or {})).statements())
