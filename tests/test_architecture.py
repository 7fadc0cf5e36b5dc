"""The house keeps its shape: sizes, surfaces, directions of imports, light packages, errors that travel."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from historian.errors import HistorianError

ROOT = Path(__file__).parent.parent
PACKAGES = ("connectors", "historian", "pyspark_historian", "sinks")
MODULE_LINES = 500
FUNCTION_LINES = 80
HEAVY = ("pyspark", "pymysql", "pymysqlreplication", "delta", "numba", "pandas", "confluent_kafka")


def _modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_name(path): path for path in _modules()}


def test_the_four_packages_are_found() -> None:
    assert set(PACKAGES) <= set(MODULES)


def test_modules_are_small() -> None:
    scripts = [path for folder in ("examples", "benchmarks") for path in (ROOT / folder).rglob("*.py")]

    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in (*_modules(), *scripts)}

    assert {} == {path: count for path, count in lines.items() if count > MODULE_LINES}


def test_functions_are_small() -> None:
    found = {
        f"{name}.{node.name}": _code_lines(node)
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert {} == {name: count for name, count in found.items() if count > FUNCTION_LINES}


def _code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function after its docstring."""
    first = function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]
    return (function.end_lineno or 0) - first.lineno + 1


@pytest.mark.parametrize("name", MODULES)
def test_all_lists_just_what_is_public(name: str) -> None:
    tree = ast.parse(MODULES[name].read_text())

    listed, defined, imported = _surface(tree)

    assert [] == sorted(listed - defined - imported), "listed, but not there"
    assert [] == sorted(defined - listed), "public, but not listed"
    if MODULES[name].name != "__init__.py":
        assert [] == sorted(listed & imported), "a module lists what it defines; packages re-export"


def _surface(tree: ast.Module) -> tuple[set[str], set[str], set[str]]:
    """Names in ``__all__``, public names that a module defines, and names that it imports."""
    listed: set[str] = set()
    defined: set[str] = set()
    imported: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
            if node.name == "__getattr__":
                imported |= {text.value for text in ast.walk(tree) if _is_text(text)}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            if "__all__" in names and node.value is not None:
                listed |= set(ast.literal_eval(node.value))
            defined |= names
    # Constants and type variables may be left out: siblings share many, users need few.
    public = {name for name in defined if not name.startswith("_") and (name in listed or not name.isupper())}
    return listed, public, imported


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_is_light(package: str) -> None:
    code = f"import sys, {package}; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_a_process_that_looks_at_the_data_source_alone_loads_nothing_that_reads() -> None:
    """Spark starts one to ask each format for its name."""
    code = "import sys, pyspark_historian; pyspark_historian.DefaultSource.name(); print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert set() == {"numpy", "pyarrow", "pydantic", "yaml", "historian.schema"} & set(done.stdout.split())


def test_imports_point_at_the_core() -> None:
    code = (
        "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command(['--no-cache']))"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_only_the_composition_knows_sinks() -> None:
    importers = {
        name
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
        if module.split(".")[0] == "sinks" and not name.startswith("sinks")
    }

    composition = (
        "connectors.sink_kinds",
        "connectors.lineage.datasets",
        "connectors.monitoring.stored",
        "connectors.page.lake",
        "connectors.pipeline.comparing",
        "connectors.pipeline.continuous",
        "connectors.pipeline.counting",
        "connectors.pipeline.opening",
        "connectors.pipeline.pipeline",
        "connectors.pipeline.decoding",
        "connectors.pipeline.dry_run",
        "connectors.pipeline.lakes",
        "connectors.pipeline.normalizing",
        "connectors.check.generated",
        "connectors.check.keys",
        "connectors.check.object_storage",
        "connectors.check.rules",
        "connectors.check.shards",
        "connectors.cli",
        "connectors.monitoring.state",
        "connectors.monitoring.targets",
        "connectors.notifications.effects",
        "connectors.reconfiguration.sink_effects",
        "connectors.together.runs",
        "pyspark_historian.replication",
        "pyspark_historian.session",
    )
    assert set() == {name for name in importers if not name.startswith(composition)}


def _errors() -> Iterator[type[HistorianError]]:
    for name in MODULES:
        importlib.import_module(name)
    waiting = [HistorianError]
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting += kind.__subclasses__()


def test_errors_survive_pickling() -> None:
    for kind in _errors():
        required = [
            parameter
            for parameter in list(inspect.signature(kind).parameters.values())
            if parameter.default is parameter.empty
            and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
        ]
        by_name = {each.name: each.name for each in required if each.kind is each.KEYWORD_ONLY}
        error = kind(*[each.name for each in required if each.name not in by_name], **by_name)

        copy = pickle.loads(pickle.dumps(error))

        assert (type(copy), str(copy), vars(copy)) == (kind, str(error), vars(error))
        assert isinstance(copy.retryable, bool)


def test_every_error_says_what_it_is() -> None:
    assert [] == [kind.__name__ for kind in _errors() if not kind.__doc__]


def test_the_text_names_no_registry_and_no_place_of_one_machine() -> None:
    # Put together here, so that this file does not name them either.
    words = [
        "pypi" + ".org",
        "python" + "hosted",
        "repo1" + ".maven",
        "deb.debian" + ".org",
        "/tmp/" + "boot",
        "/work" + "/",
        "/root" + "/",
    ]
    skipped = {"uv.lock"}  # has to name the public index

    offenders = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in _project_files()
        if path.name not in skipped
        for word in words
        if word.encode() in path.read_bytes()
    ]

    assert [] == offenders


def _project_files() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for path in (ROOT / name for name in listing.stdout.split("\0") if name) if path.is_file()]
