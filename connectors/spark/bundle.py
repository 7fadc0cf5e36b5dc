"""One archive with the code that executors need: our packages, compiled kernels, and what else they lack.

``spark.archives=historian.zip#historian`` unpacks it beside each executor; see :mod:`sinks.spark_settings` for what finds it there.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from historian.errors import HistorianError

__all__ = ["Bundle", "BundleError", "make_bundle"]

_PACKAGES = ("connectors", "historian", "pyspark_historian", "sinks")
_NAME = "pyspark-historian"
_CLUSTERS_OWN = {"pyspark", "py4j", "delta-spark"}
"""Spark brings them, and another version beside it would break it."""
_COMPILED = ("__pycache__", ".nbi", ".nbc")
_LOOK_S = 0.5
_EPOCH = (1980, 1, 1, 0, 0, 0)
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class BundleError(HistorianError):
    """The archive cannot be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """An archive that was made: its size, and the distributions in it beside ours, each with its version."""

    path: Path
    size_bytes: int
    kernels: int
    distributions: Mapping[str, str]


def make_bundle(
    path: Path,
    extra: Sequence[str] = (),
    *,
    cpu: str | None = None,
    reached: Callable[[float], object] = lambda _: None,
) -> Bundle:
    """Writes the archive to *path*, whole or not at all. The same code gives the same names and contents.

    Args:
        path: of the file, whose former content is replaced.
        extra: distributions of this environment that the cluster lacks, with those that they need; not Spark's own.
        cpu: what kernels are compiled for: None is the processor here, ``generic`` any of its family.
        reached: is called now and then with the part that is done, 0 to 1.

    Raises:
        BundleError: a distribution is not installed here, the kernels do not compile, or the file cannot be written.
    """
    found = _with_needs(extra)
    with tempfile.TemporaryDirectory(prefix="historian-bundle-") as work:
        kernels = _compiled(Path(work), cpu, reached)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
                for name, file in sorted({**_own_files(), **_files_of(found.values()), **kernels}.items()):
                    archive.writestr(_entry(name), file.read_bytes())
            unfinished.replace(path)
        except OSError as error:
            raise BundleError("the archive cannot be written", where=str(path), found=str(error)) from error
        finally:
            unfinished.unlink(missing_ok=True)  # Ctrl-C leaves none either.
    return Bundle(
        path=path,
        size_bytes=path.stat().st_size,
        kernels=sum(name.endswith(".nbi") for name in kernels),
        distributions={name: each.version for name, each in sorted(found.items())},
    )


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.external_attr = 0o644 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _own_files() -> dict[str, Path]:
    files = {}
    for name in _PACKAGES:
        folder = Path(str(importlib.import_module(name).__file__)).parent
        for path in folder.rglob("*"):
            if path.is_file() and not any(part in str(path) for part in _COMPILED):
                files[f"packages/{name}/{path.relative_to(folder)}"] = path
    # So that packages find their own version there.
    return {**files, **dict(_metadata_of(distribution(_NAME)))}


def _metadata_of(found: Distribution) -> Iterator[tuple[str, Path]]:
    for file in found.files or ():
        if file.parts[0].endswith(".dist-info") and file.name in ("METADATA", "entry_points.txt"):
            yield f"packages/{file}", Path(str(found.locate_file(file)))


def _files_of(distributions: Iterable[Distribution]) -> dict[str, Path]:
    files = {}
    for each in distributions:
        for file in each.files or ():
            path = Path(str(each.locate_file(file)))
            if ".." not in file.parts and "__pycache__" not in file.parts and path.is_file():
                files[f"packages/{file}"] = path
    return files


def _with_needs(names: Sequence[str]) -> dict[str, Distribution]:
    """The distributions of those names and all that they need here, but for the cluster's own."""
    found: dict[str, Distribution] = {}
    waiting = [(_normal(name), True) for name in names]
    while waiting:
        name, is_asked = waiting.pop()
        if name in found or name in _CLUSTERS_OWN or name == _NAME:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError as error:
            if not is_asked:
                continue  # an extra, or of another system
            raise BundleError(
                "a distribution is not installed here", where=name, next_step="install it for this interpreter"
            ) from error
        needed = [text for text in found[name].requires or () if "extra ==" not in text]
        waiting += [(_normal(match[0]), False) for match in map(_REQUIREMENT.match, needed) if match is not None]
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _compiled(directory: Path, cpu: str | None, reached: Callable[[float], object]) -> dict[str, Path]:
    """Files of compiled kernels: made in a process of its own, since numba says at its start where it keeps them."""
    from historian.jit import kept_code

    kernels: Any = importlib.import_module("connectors.compile")
    for name, path in kept_code():  # What serves there too need not be compiled again; the rest is.
        target = directory / name
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, target)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(directory)}
    if cpu is not None:
        environment["NUMBA_CPU_NAME"] = cpu
    with subprocess.Popen(
        [sys.executable, "-m", "connectors.compile"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            while (told := _told(process)) is None:
                reached(kernels.compiled_part(directory))
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise BundleError("the kernels do not compile", found=told[-2000:])
    return {f"kernels/{path.relative_to(directory)}": path for path in sorted(directory.rglob("*")) if path.is_file()}


def _told(process: subprocess.Popen[str]) -> str | None:
    """What it wrote to standard error; None: it runs yet."""
    try:
        return process.communicate(timeout=_LOOK_S)[1]
    except subprocess.TimeoutExpired:
        return None
