"""``historian init``: a first configuration from a live server."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.terminal.outcome import ending, tell
from connectors.cli.terminal.sizes import counted
from historian.errors import ConfigError

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.connection import ServerAddress

__all__ = ["init"]

_VARIABLE = "HISTORIAN_DB_PASSWORD"
_SERVER = re.compile(r"(?P<host>\[[^\]]+\]|[^:\[\]]+)(?::(?P<port>\d{1,5}))?")


@ending
def init(
    server: Annotated[str, typer.Argument(metavar="HOST[:PORT]", help="The server.", show_default=False)],
    out: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="What is written.", show_default=False)],
    *,
    user: Annotated[str, typer.Option("--user", help="Who replicates.")] = "cdc",
    password_env: Annotated[
        str, typer.Option("--password-env", metavar="NAME", help="The environment variable with the password.")
    ] = _VARIABLE,
    database: Annotated[
        list[str] | None,
        typer.Option(
            "--database", metavar="D", help="One whose tables are wanted; may be given again. By default all."
        ),
    ] = None,
) -> None:
    """Write a first configuration from a live server: its tables with sizes and keys, and what `check` says of it.

    The password is read from the environment variable, or asked for on a terminal. The file refers to the variable and does not hold the password.
    The connector is called as the file is. Nothing is written to the server.
    """
    from connectors.check import run_checks
    from connectors.check.draft import draft
    from connectors.config import load_config

    name = out.stem
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or out.suffix not in (".yaml", ".yml"):
        raise typer.BadParameter("the file is to be called NAME.yaml, of letters, digits, _ and -")
    if out.exists():
        raise ConfigError("there is such a file already", problems=(f"expected a new file @ {out}",))
    password = _password(user, password_env)
    address = _address(server, user, password)
    drafted = draft(name, address, f"${{env:{password_env}}}", database or ())
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(drafted.text())
    except OSError as error:
        raise ConfigError("the file cannot be written", problems=(f"{error.strerror} @ {out}",)) from error
    try:
        results = run_checks(load_config(out, environment={**os.environ, password_env: password}))
    except BaseException:
        out.unlink()
        raise
    out.write_text(drafted.text(results), encoding="utf-8")
    failed = sum(result.status == "failed" for result in results)
    tables = sum(map(len, drafted.tables.values()))
    told = f"{counted(tables, 'table')}; of {len(results)} checks {failed} failed"
    first = (
        "" if password_env in os.environ else f"put the password into the environment variable {password_env}, then "
    )
    tell(f"{out}: {told}. Next: {first}`historian {'check' if failed else 'run'} {out}`")


def _address(server: str, user: str, password: str) -> ServerAddress:
    from connectors.readers.binlog.transport.connection import ServerAddress

    match = _SERVER.fullmatch(server)
    if match is None:
        raise typer.BadParameter(f"expected HOST or HOST:PORT, like db.internal:3306 (got {server})")
    host = match["host"].strip("[]")
    return ServerAddress(host=host, port=int(match["port"] or 3306), user=user, password=password)


def _password(user: str, variable: str) -> str:
    password = os.environ.get(variable)
    if password is not None:
        return password
    if not sys.stdin.isatty():
        problem = f"expected the environment variable {variable} @ --password-env"
        raise ConfigError("the password is not known", problems=(problem,))
    return str(typer.prompt(f"Password of {user}", hide_input=True, err=True))
