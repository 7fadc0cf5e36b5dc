"""A build's initialised data directory, made once and copied for each server, and the options that name its files."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from server_builds import Build, fetch, placed

__all__ = ["copy_data", "file_options", "write_options"]

# What MariaDB's own installer feeds to `--bootstrap`, in its order; a release that lacks one has nothing to put there.
MARIADB_SYSTEM_SQL = (
    "m*_system_tables.sql",
    "m*_performance_tables.sql",
    "m*_system_tables_data.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "m*_sys_schema.sql",
)


def file_options(build: Build) -> tuple[str, ...]:
    """Options for a server of ``build`` to find its own files, and to keep its redo log small."""
    root = build.root
    if build.jar is not None:
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
    newer = build.flavor == "mysql" and build.series >= (8, 0)
    options.append("innodb_redo_log_capacity=16M" if newer else "innodb_log_file_size=8M")
    if os.geteuid() == 0:
        options.append("user=root")
    return tuple(options)


def write_options(path: Path, options: tuple[str, ...]) -> None:
    """Writes an option file; where an option stands twice the last one counts."""
    path.write_text("[mysqld]\n" + "\n".join(options) + "\n", encoding="utf-8")


def copy_data(build: Build, target: Path) -> None:
    """Makes ``target`` a fresh data directory of ``build``."""
    command = ["cp", "-a", "--reflink=auto", str(_template(build)), str(target)]
    subprocess.run(command, check=True)


def _template(build: Build) -> Path:
    """An initialised data directory without identity: each copy makes its own server_uuid."""
    directory = fetch(build) / "data"
    if not directory.exists():
        with placed(directory) as place:
            if place is not None:
                _initialise(build, place)
                (place / "auto.cnf").unlink(missing_ok=True)
    return directory


def _initialise(build: Build, place: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="historian-init-") as work:
        options = Path(work, "my.cnf")
        write_options(options, (*file_options(build), f"datadir={place}", f"log_error={work}/error.log"))
        command = [*build.command(), f"--defaults-file={options}"]
        if build.flavor == "mariadb":
            command += ["--bootstrap", "--skip-grant-tables"]
        else:
            command += ["--initialize-insecure"]
        done = subprocess.run(
            command, input=_system_sql(build), capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode != 0:
            log = Path(work, "error.log")
            said = log.read_text(errors="replace") if log.exists() else ""
            raise RuntimeError(f"{build.name} could not make a data directory:\n{done.stdout}{done.stderr}{said}")


def _system_sql(build: Build) -> str:
    """What a MariaDB server reads at bootstrap; MySQL's makes its tables by itself."""
    if build.flavor == "mysql":
        return ""
    (share,) = {path.parent for path in build.root.glob("usr/share/m*/fill_help_tables.sql")}
    statements = "create database if not exists mysql;\nuse mysql;\n"
    statements += "set @auth_root_socket=NULL;\nset @skip_auth_anonymous=1;\n"
    for pattern in MARIADB_SYSTEM_SQL:
        statements += "".join(path.read_text(encoding="utf-8") for path in sorted(share.glob(pattern)))
    return statements
