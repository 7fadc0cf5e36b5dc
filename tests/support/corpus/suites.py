"""The servers' own suites of tests, from Debian's packages: fetched once into the cache, unpacked without installing, never kept here.

Of a package only the scripts of ``mysqltest`` stay, and what they include.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from connectors.spark.jvm import cache_directory
from databases import debian
from databases.server_builds import Flavor, placed

__all__ = ["SUITES", "Suite", "fetch"]

_SCRIPTS = frozenset((".test", ".inc"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A package of Debian's ``release``, and the server of the same source that takes its statements."""

    package: str
    release: str
    flavor: Flavor
    server: str

    @property
    def directory(self) -> Path:
        """Where the scripts lie once they are fetched, in the tree that the suite has."""
        return cache_directory() / "test-suites" / self.package

    def scripts(self) -> list[Path]:
        """The suite's scripts, in the order of their paths."""
        return sorted(self.directory.rglob("*.test"))


SUITES = {
    suite.flavor: suite
    for suite in (
        Suite(package="mysql-testsuite", release="sid", flavor="mysql", server="mysql9"),
        Suite(package="mariadb-test-data", release="trixie", flavor="mariadb", server="mariadb118"),
    )
}


def fetch(suite: Suite) -> Path:
    """The suite's directory, fetched if it is not there yet. Safe to call from several processes at once."""
    with placed(suite.directory) as place:
        if place is not None:
            with tempfile.TemporaryDirectory(prefix="historian-suite-") as work:
                tree = Path(work, "tree")
                debian.unpack(suite.release, (), tree, Path(work, "apt"), alone=(suite.package,))
                _keep_scripts(tree, place)
    return suite.directory


def _keep_scripts(tree: Path, place: Path) -> None:
    root = next(path.parent for path in sorted(tree.rglob("include")) if (path.parent / "suite").is_dir())
    for script in root.rglob("*"):
        if script.suffix in _SCRIPTS and script.is_file():
            target = place / script.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(script, target)
