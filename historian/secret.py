"""A text that is never printed, and a mark of one that may be kept where others read."""

from __future__ import annotations

import hashlib
from functools import lru_cache

__all__ = ["Secret", "mark_of"]


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


@lru_cache(maxsize=256)
def mark_of(secret: str, salt: bytes) -> str:
    """What tells a secret from another one, and not which it is: four hexadecimal digits, the same each time.

    Each guess costs much time and memory. One in 65,536 guesses has the mark, so who tries many words is left with many that fit.
    """
    return hashlib.scrypt(secret.encode(), salt=salt, n=2**14, r=8, p=1, dklen=2).hex()
