"""The house as a table: for each package its modules, lines, floors of imports and circles. ``make structure`` prints it.

Every import counts, those for types and those inside functions too. A *room* is a package; its *face* is its ``__init__``. A
module's *floor* in its room is one above the highest of those in the room that it imports.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

__all__ = ["PACKAGES", "House", "Import", "circles"]

PACKAGES = ("connectors", "historian", "pyspark_historian", "sinks")


@dataclass(frozen=True, slots=True)
class Import:
    """One module imports another one; ``name``: what it takes from it, "" for the module as a whole."""

    importer: str
    imported: str
    name: str


class House:
    """The packages below a directory, read from their source; nothing of them is run."""

    def __init__(self, root: Path, packages: Iterable[str] = PACKAGES) -> None:
        files = (file for package in packages for file in sorted((root / package).rglob("*.py")))
        self.files = {self._name(file.relative_to(root)): file for file in files}
        self.rooms = {name for name, file in self.files.items() if file.name == "__init__.py"}

    @staticmethod
    def _name(file: Path) -> str:
        parts = file.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def room(self, module: str) -> str:
        """The package that a module stands in; a face stands in its own."""
        return module if module in self.rooms else module.rpartition(".")[0]

    def modules(self, room: str) -> list[str]:
        """The modules of a room, without its face and without those of rooms in it."""
        return [name for name in self.files if name not in self.rooms and self.room(name) == room]

    def lines(self, room: str) -> int:
        """Lines of a room's modules and of its face."""
        return sum(len(self.files[name].read_text().splitlines()) for name in (room, *self.modules(room)))

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """All imports of one of the house's modules by another one."""
        return tuple(
            found
            for name, file in self.files.items()
            for node in ast.walk(ast.parse(file.read_text()))
            for found in self._found(name, node)
            if found.imported != name
        )

    def _found(self, importer: str, node: ast.AST) -> list[Import]:
        if isinstance(node, ast.Import):
            return [Import(importer, each.name, "") for each in node.names if each.name in self.files]
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            return []
        bound = _bound(self.files[node.module]) if node.module in self.rooms else set()
        found = []
        for each in node.names:
            whole = f"{node.module}.{each.name}"
            if whole in self.files and each.name not in bound:
                found.append(Import(importer, whole, ""))
            elif node.module in self.files:
                found.append(Import(importer, node.module, each.name))
        return found

    def module_circles(self) -> list[list[str]]:
        """Modules that import each other in a loop."""
        return circles({name: self._imported(name) for name in self.files})

    def room_circles(self) -> list[list[str]]:
        """Rooms whose modules import each other's in a loop. Faces only hand names on, so that they are left out."""
        edges: dict[str, set[str]] = {room: set() for room in self.rooms}
        for each in self.imports:
            if each.importer not in self.rooms:
                edges[self.room(each.importer)].add(self.room(each.imported))
        return circles({room: imported - {room} for room, imported in edges.items()})

    def floors(self, room: str) -> int:
        """How many modules of a room stand above one another."""
        inside = {name: self._imported(name) for name in self.modules(room)}
        heights: dict[str, int] = {}

        def height(name: str) -> int:
            if name not in heights:
                heights[name] = 1  # ends a loop, which is another rule's
                heights[name] = 1 + max((height(other) for other in inside[name] if other in inside), default=0)
            return heights[name]

        return max((height(name) for name in inside), default=0)

    def _imported(self, name: str) -> set[str]:
        return self._by_importer.get(name, set())

    @cached_property
    def _by_importer(self) -> Mapping[str, set[str]]:
        edges: dict[str, set[str]] = defaultdict(set)
        for each in self.imports:
            edges[each.importer].add(each.imported)
        return edges

    def named_by_face(self, room: str) -> set[str]:
        """Modules that a room's face names: takes names from, or lists in its docstring."""
        tree = ast.parse(self.files[room].read_text())
        listed = (ast.get_docstring(tree) or "").partition("Open to other rooms:")[2].split("``")[1::2]
        return {each.imported for each in self.imports if each.importer == room} | {f"{room}.{name}" for name in listed}


def _bound(face: Path) -> set[str]:
    """Names that a face binds itself, which hide modules of the same name."""
    body = ast.parse(face.read_text()).body
    bound = {alias.asname or alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names}
    return bound | {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Nodes that reach each other, sorted; by Tarjan's algorithm."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        numbers[node] = lowest[node] = len(numbers)
        waiting.append(node)
        for other in edges.get(node, ()):
            if other not in numbers:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in waiting:
                lowest[node] = min(lowest[node], numbers[other])
        if lowest[node] == numbers[node]:
            at = waiting.index(node)
            if len(waiting) - at > 1:
                found.append(sorted(waiting[at:]))
            del waiting[at:]

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10 * len(edges) + 1000))
    for node in edges:
        if node not in numbers:
            visit(node)
    return sorted(found)


def _print(house: House, write: Callable[[str], object] = print) -> None:
    write(f"{'room':<48}{'modules':>8}{'floors':>8}{'lines':>8}")
    for room in sorted(house.rooms):
        write(f"{room:<48}{len(house.modules(room)):>8}{house.floors(room):>8}{house.lines(room):>8}")
    write(f"circles of modules: {house.module_circles() or 'none'}")
    write(f"circles of rooms: {house.room_circles() or 'none'}")


if __name__ == "__main__":
    _print(House(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
