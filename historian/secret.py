"""A text that is never printed."""

from __future__ import annotations

__all__ = ["Secret"]


class Secret:
    """Holds a text; shows it to who asks for :attr:`text` alone. Two of equal text are equal."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "Secret(...)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)
