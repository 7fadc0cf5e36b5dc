"""Debian packages of any release, unpacked into a directory: no root, nothing installed, the system untouched.

``apt-get`` runs with a configuration of its own, whose package status is empty, so it resolves all that a package
needs. Where the archive is comes from the system's own apt settings.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

__all__ = ["DebianError", "archive", "program_in", "unpack"]

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TRIPLET = "x86_64-linux-gnu"

# Needed by maintainer scripts only, which never run here.
NOT_NEEDED = (
    "perl", "libperl", "libgdbm", "libdb5", "libbz2", "gcc-", "openssl-provider", "mariadb-common", "mysql-common",
    "libtirpc-common", "postgresql-common", "postgresql-client-common", "ssl-cert", "libllvm", "libz3",
)  # fmt: skip

CONFIGURATION = """\
Dir::State "{work}/state"; Dir::State::status "{work}/state/status"; Dir::Cache "{work}/cache";
Dir::Etc::sourcelist "{work}/sources.list"; Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null"; Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "amd64"; APT::Architectures {{ "amd64"; }}; APT::Install-Recommends "false";
APT::Sandbox::User ""; Debug::NoLocking "true"; Acquire::Languages "none"; Acquire::Retries "3";
// A mirror that was frozen some time ago serves an unstable release that calls itself expired.
Acquire::Check-Valid-Until "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
"""


class DebianError(RuntimeError):
    """apt or dpkg did not do what was asked; the message holds what they printed."""


def unpack(release: str, packages: Sequence[str], root: Path, work: Path, *, alone: Sequence[str] = ()) -> None:
    """Unpacks ``packages`` of Debian's ``release`` and all they depend on into ``root``.

    Args:
        release: a code name, such as bookworm or sid.
        packages: names; each comes with its dependencies.
        root: the directory that becomes the tree's ``/``.
        work: an empty directory for lists and downloads; the caller removes it.
        alone: names of packages that come without their dependencies.
    """
    environment = _private_apt(work)
    _update(release, work, environment)
    wanted = [*_closure(packages, environment), *alone]
    downloads = work / "debs"
    downloads.mkdir()
    _run(["apt-get", "-qq", "download", *wanted], environment, cwd=downloads)
    root.mkdir(parents=True, exist_ok=True)
    for package in sorted(downloads.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(package), str(root)], environment)


def archive() -> str:
    """The address of Debian's archive, as the system's own apt has it."""
    return _sites()["debian"]


def program_in(root: Path, program: str) -> list[str]:
    """The command that runs ``program`` of an unpacked tree with the tree's own loader and libraries."""
    libraries = [root / "usr/lib" / TRIPLET, root / "lib" / TRIPLET]
    loader = next((path for path in (lib / "ld-linux-x86-64.so.2" for lib in libraries) if path.exists()), None)
    if loader is None:
        raise DebianError(f"no loader under {root}: it is not an unpacked Debian tree")
    return [str(loader), "--library-path", ":".join(map(str, libraries)), str(root / program)]


def _private_apt(work: Path) -> dict[str, str]:
    """The environment in which apt-get uses lists, caches and status under ``work`` only."""
    for directory in ("state/lists/partial", "cache/archives/partial"):
        (work / directory).mkdir(parents=True)
    (work / "state/status").touch()
    configuration = work / "apt.conf"
    configuration.write_text(CONFIGURATION.format(work=work), encoding="utf-8")
    return {**os.environ, "APT_CONFIG": str(configuration), "LC_ALL": "C"}


def _update(release: str, work: Path, environment: dict[str, str]) -> None:
    """Fetches the release's lists, from the first archive that has them."""
    failed: list[DebianError] = []
    for sources in _sources(release):
        (work / "sources.list").write_text(sources, encoding="utf-8")
        try:
            _run(["apt-get", "-qq", "update"], environment)
        except DebianError as error:
            failed.append(error)
        else:
            return
    raise failed[0]


def _sources(release: str) -> list[str]:
    """Lists of sources to try in turn: a release that has ended loses its security updates, then moves away."""
    if not KEYRING.exists():
        raise DebianError(f"{KEYRING} is missing; install debian-archive-keyring")
    sites = _sites()
    if "debian" not in sites:
        raise DebianError(
            f"apt's own settings name no archive that ends in /debian (they name {sorted(sites.values())}); the test "
            f"servers come from Debian's packages: run on Debian, or let HISTORIAN_TEST_* name running servers"
        )
    main = f"deb [signed-by={KEYRING}] {sites['debian']} {release} main\n"
    secured = main
    if release != "sid" and "debian-security" in sites:
        secured += f"deb [signed-by={KEYRING}] {sites['debian-security']} {release}-security main\n"
    # Debian keeps ended releases on a host of its own, beside the one that its mirrors are reached by.
    return list(
        dict.fromkeys((secured, main, secured.replace("//deb.", "//archive."), main.replace("//deb.", "//archive.")))
    )


def _sites() -> dict[str, str]:
    """Where the system's own apt gets packages from, by the last part of the address."""
    environment = {key: value for key, value in os.environ.items() if key != "APT_CONFIG"}
    sites = _run(["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"], environment).split()
    return {site.rstrip("/").rpartition("/")[2]: site for site in sites}


def _closure(packages: Sequence[str], environment: dict[str, str]) -> list[str]:
    """Names of all packages that ``packages`` need on an empty system."""
    plan = _run(["apt-get", "install", "--simulate", *packages], environment)
    names = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
    return [name for name in names if not name.startswith(NOT_NEEDED)]


def _run(command: list[str], environment: dict[str, str], cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise DebianError(f"{command[0]} is missing: the test servers need a Debian system") from error
    if done.returncode != 0:
        raise DebianError(f"{' '.join(command)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout
