"""A build's initialised data directory, made once and copied for each server, and the options that name its files.

As a script: fetches and initialises the builds named on the command line, or all, so that servers start at once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from databases.server_builds import BUILDS, Build, build, fetch, placed

__all__ = ["copy_data", "file_options", "prepare", "write_options"]

# What MariaDB's own installer feeds to `--bootstrap`, in its order; a release that lacks one has nothing to put there.
MARIADB_SYSTEM_SQL = (
    "m*_system_tables.sql",
    "m*_performance_tables.sql",
    "m*_system_tables_data.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "m*_sys_schema.sql",
)


def file_options(kind: Build) -> tuple[str, ...]:
    """Options for a server of ``kind`` to find its own files, and to keep its redo log small."""
    root = kind.root
    if kind.jar is not None:
        options = [f"basedir={root}", f"lc_messages_dir={root}/share"]
    else:
        share = next(
            path for path in (root / "usr/share/mariadb", root / "usr/share/mysql") if (path / "english").exists()
        )
        charsets = next(path for path in (root / "usr/share/mysql/charsets", share / "charsets") if path.exists())
        options = [
            f"basedir={root}/usr",
            f"lc_messages_dir={share}",
            f"character_sets_dir={charsets}",
            f"plugin_dir={root}/usr/lib/mysql/plugin",
        ]
    newer = kind.flavor == "mysql" and kind.series >= (8, 0)
    options.append("innodb_redo_log_capacity=16M" if newer else "innodb_log_file_size=8M")
    if os.geteuid() == 0:
        options.append("user=root")
    return tuple(options)


def write_options(path: Path, options: tuple[str, ...]) -> None:
    """Writes an option file; where an option stands twice the last one counts."""
    path.write_text("[mysqld]\n" + "\n".join(options) + "\n", encoding="utf-8")


def copy_data(kind: Build, target: Path) -> None:
    """Makes ``target`` a fresh data directory of ``kind``."""
    command = ["cp", "-a", "--reflink=auto", str(prepare(kind)), str(target)]
    subprocess.run(command, check=True)


def prepare(kind: Build) -> Path:
    """The build's initialised data directory, made if need be. It has no identity: a copy makes its own server_uuid."""
    directory = fetch(kind) / "data"
    if not directory.exists():
        with placed(directory) as place:
            if place is not None:
                _initialise(kind, place)
                (place / "auto.cnf").unlink(missing_ok=True)
    return directory


def _initialise(kind: Build, place: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="historian-init-") as work:
        options = Path(work, "my.cnf")
        write_options(
            options, (*file_options(kind), f"datadir={place}", f"tmpdir={work}", f"log_error={work}/error.log")
        )
        command = [*kind.command(), f"--defaults-file={options}"]
        if kind.flavor == "mariadb":
            command += ["--bootstrap", "--skip-grant-tables"]
        else:
            command += ["--initialize-insecure"]
        done = subprocess.run(
            command, input=_system_sql(kind), capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode != 0:
            log = Path(work, "error.log")
            said = log.read_text(errors="replace") if log.exists() else ""
            raise RuntimeError(f"{kind.name} could not make a data directory:\n{done.stdout}{done.stderr}{said}")


def _system_sql(kind: Build) -> str:
    """What a MariaDB server reads at bootstrap; MySQL's makes its tables by itself."""
    if kind.flavor == "mysql":
        return ""
    (share,) = {path.parent for path in kind.root.glob("usr/share/m*/fill_help_tables.sql")}
    statements = "create database if not exists mysql;\nuse mysql;\n"
    statements += "set @auth_root_socket=NULL;\nset @skip_auth_anonymous=1;\n"
    for pattern in MARIADB_SYSTEM_SQL:
        statements += "".join(path.read_text(encoding="utf-8") for path in sorted(share.glob(pattern)))
    return statements


def main() -> None:
    """Prepares builds side by side and prints the version of each."""
    from browser import chromium_files
    from databases import java_parts, postgres, registry
    from monitoring import prometheus

    wanted = [build(name) for name in sys.argv[1:]] or list(BUILDS.values())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for kind, data in zip(wanted, pool.map(prepare, wanted), strict=True):
            version = (data.parent / "VERSION").read_text(encoding="utf-8").split()[0]
            sys.stdout.write(f"  {kind.name:12} {version}\n")
            sys.stdout.flush()
    if not sys.argv[1:]:
        version = (postgres.prepare() / "VERSION").read_text(encoding="utf-8").strip()
        sys.stdout.write(f"  {postgres.NAME:12} {version}\n")
        sys.stdout.write(
            f"  prometheus   {prometheus.promtool('--version', directory=Path.cwd()).split()[2].rstrip(',')}\n"
        )
        for part in ("kafka", "connect", "avro_converter", "maxwell"):
            sys.stdout.write(f"  {part:12} {len(java_parts.jars_of(part))} jars\n")
        registry.prepare()
        sys.stdout.write(f"  registry     {registry.REVISION}\n")
        version = (chromium_files.prepare() / "VERSION").read_text(encoding="utf-8").strip()
        sys.stdout.write(f"  {chromium_files.BROWSER_NAME:12} {version}\n")


if __name__ == "__main__":
    main()
