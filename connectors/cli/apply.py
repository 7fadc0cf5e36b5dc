"""``historian apply``: a changed configuration takes effect, in the connector that runs or in a run of its own."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.plan import print_effects
from connectors.cli.run import replicated
from connectors.cli.terminal.arguments import Config, configured
from connectors.cli.terminal.outcome import ExitCode, ending, tell
from connectors.cli.terminal.sessions import session
from historian.errors import ConfigError, LeaseHeld

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from connectors.reconfiguration.reloads import Reload
    from historian.store import Owner, Store

__all__ = ["apply", "is_done_by_another"]

_POLL_S = 0.2


@ending
def apply(
    config: Config,
    *,
    wait_s: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", help="How long the connector that runs is waited for.")
    ] = 600.0,
) -> None:
    """Show what a changed configuration would do, as `plan` does, and do it.

    Where the connector runs on this machine, it is told to read its YAML again, and goes on with it between two plans. Where it does not
    run, a run up to the log's present end does it. Ends with 1 where the change is refused; nothing is changed then.
    """
    from connectors.reconfiguration.foresight import foresee

    settings = configured(config)
    with session(f"apply {settings.name}", settings.sink_paths, settings.run.spark) as spark:
        effects = foresee(settings, spark)
        print_effects(effects)
        if effects.is_refused:
            tell("nothing was changed; correct the configuration, and look again with `historian plan`")
            raise typer.Exit(ExitCode.FAILED)
        if not is_done_by_another(settings, wait_s):
            replicated(settings, once=True, until=None, live=False, spark=spark)


def is_done_by_another(settings: PipelineConfig, wait_s: float) -> bool:
    """Has the connector that runs do it; False where none runs.

    Raises:
        LeaseHeld: another process has the lease that cannot be told.
        ConfigError: the connector has refused it.
    """
    from connectors.tracking.recorded import recorded_store

    store = recorded_store(settings)
    if store is None:
        return False
    with closing(store):
        owner = store.holder(settings.name)
        if owner is None:
            return False
        before = _listener(store, settings, owner)
        tell(f"{owner} runs the connector, and is told to read {settings.path} again")
        try:
            os.kill(owner.pid, signal.SIGHUP)
        except ProcessLookupError:
            return False
        except PermissionError as error:
            raise LeaseHeld(
                "the process that runs the connector belongs to another user",
                where=settings.name,
                found=str(owner),
                next_step=f"as its user: kill -HUP {owner.pid}; or systemctl reload",
            ) from error
        _wait(store, settings, before, wait_s)
    tell("the connector runs with the changed configuration")
    return True


def _listener(store: Store, settings: PipelineConfig, owner: Owner) -> Reload:
    """The newest note of the run of *owner*, which can be told.

    Raises:
        LeaseHeld: it is no run that listens, it reads another file, or it is not on this machine.
    """
    from connectors.reconfiguration.reloads import Reload
    from historian.store import Owner

    noted, here = Reload.parse(store.reload()), Owner.here()
    if noted is None or noted.owner != owner:
        raise LeaseHeld(
            "another command has the connector, and does not read a configuration again",
            where=settings.name,
            found=str(owner),
            next_step="wait for its end, or end it; then apply again",
        )
    if noted.path != str(settings.path):
        raise LeaseHeld(
            "the connector runs with another file",
            where=settings.name,
            expected=str(settings.path),
            found=noted.path,
            next_step=f"change that file, and apply it; or end {owner}",
        )
    if (owner.host, owner.boot, owner.pid_namespace) != (here.host, here.boot, here.pid_namespace):
        raise LeaseHeld(
            "the connector runs where this command cannot tell it",
            where=settings.name,
            found=str(owner),
            next_step=f"send SIGHUP to process {owner.pid} there: kill -HUP {owner.pid}, or systemctl reload",
        )
    return noted


def _wait(store: Store, settings: PipelineConfig, before: Reload, wait_s: float) -> None:
    """Until the run goes on with *settings*.

    Raises:
        ConfigError: it has refused them.
        LeaseHeld: it has ended meanwhile, or has not looked in time.
    """
    from connectors.reconfiguration.noted import NotedConfig
    from connectors.reconfiguration.reloads import Reload

    until_s = time.monotonic() + wait_s
    while time.monotonic() < until_s:
        noted, held = Reload.parse(store.reload()), NotedConfig.parse(store.configuration())
        if noted is not None and noted.at_us != before.at_us:
            if noted.outcome == "refused":
                raise ConfigError(
                    "the connector that runs has refused the configuration, and goes on with the one that it has",
                    problems=noted.problems,
                    where=str(settings.path),
                )
            # It listens again once it holds source, store and sinks.
            is_held = held is not None and held.mark == NotedConfig.of(settings, held.salt).mark
            if noted.outcome == "listens" and is_held:
                return
        if before.owner.is_gone():
            raise LeaseHeld(
                "the connector that runs has ended meanwhile",
                where=settings.name,
                next_step="look at its log; `historian run` starts it with the changed configuration",
            )
        time.sleep(_POLL_S)
    raise LeaseHeld(
        "the connector that runs has not taken the configuration in time",
        where=settings.name,
        expected=f"an answer within {wait_s:g} s",
        next_step="look at its log and at `historian status`; it takes it between two plans",
    )
