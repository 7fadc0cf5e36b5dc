"""One round: a class of attack with a random member, on one server, followed into a lake and compared."""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from adversary.actors import Actors, prepare
from adversary.classes import CLASSES
from adversary.held import server_rows
from adversary.lakes import DeltaLake, FileLake
from adversary.oracle import findings, stops
from adversary.replays import replay_findings
from adversary.script import FOLLOW, Failover, Follow, Forget, Look, Script, Step, Torn
from databases.replication import follow, promote, wait_for
from databases.servers import Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Outcome", "Servers", "play", "script_of", "shrunk"]

Servers = Callable[[str], Server]
_SHRINKS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a round found. ``said``: the SQL as it ran; ``stopped``: names of stops with their reasons."""

    seed: int
    attack: str
    server: str
    script: Script
    found: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    stopped: list[tuple[str, str]] = field(default_factory=list)
    refused: int = 0
    delta: bool = False

    @property
    def kind(self) -> str:
        """Of the first finding."""
        return self.found[0].split(":", 1)[0] if self.found else ""

    @property
    def signature(self) -> str:
        """What findings that look alike have in common."""
        words = self.found[0].split(":")[:2] if self.kind.endswith("stop") else [self.kind]
        return " ".join([self.attack, *words])

    def __str__(self) -> str:
        lake = "Delta" if self.delta else "files"
        lines = [f"attack {self.attack}, seed {self.seed}, on {self.server}, into {lake}"]
        lines += [f"tables {self.script.tables}, settings {self.script.said}"]
        return "\n".join([*lines, *(f"    {text}" for text in self.said), *(f"  FOUND {text}" for text in self.found)])


def script_of(attack: str, server: str, seed: int) -> Script:
    """The steps of a round; the connector runs at their end."""
    module = CLASSES[attack]
    script = module.script(random.Random(f"{attack} {server} {seed}"), server)
    torn = any(isinstance(step, Torn) for step in script.steps)
    return replace(script, steps=(*script.steps, Torn(1) if torn else FOLLOW))


def play(
    attack: str,
    server: Server,
    seed: int,
    *,
    script: Script | None = None,
    spark: SparkSession | None = None,
    second: Server | None = None,
) -> Outcome:
    """Runs a round; with *spark* into Delta. The servers' databases and logs are its own.

    Args:
        second: of the same kind, for scripts with a failover.
    """
    script = script_of(attack, server.name, seed) if script is None else script
    outcome = Outcome(seed=seed, attack=attack, server=server.name, script=script, delta=spark is not None)
    prepare(server)
    with (
        _directory() as directory,
        _standby(server, second, script) as standby,
        contextlib.closing(Actors(server)) as actors,
    ):
        lake = FileLake(server, directory, script) if spark is None else DeltaLake(server, directory, script, spark)
        try:
            present = server
            for step in script.steps:
                present = _take(step, actors, lake, present, standby)
            known = lake.known()
            held = server_rows(present, lake.config.source.tables, where=script.where, computed=script.computed)
            outcome.stopped.extend(stops(known))
            outcome.found.extend(findings(known, held, script))
            looks = any(isinstance(step, Look) for step in script.steps)  # tail shows what is captured now
            is_whole = script.start == "earliest" and not looks
            if isinstance(lake, FileLake) and is_whole and not outcome.found and seed % 4 == 0:
                outcome.found.extend(replay_findings(lake, known, random.Random(seed)))
        except Exception as error:  # noqa: BLE001 whatever ends a run is a finding, unless the attack says so
            if not _is_right(error, script):
                outcome.found.append(f"ends with {type(error).__name__}: {error}\n{_where(error)}")
        return replace(outcome, said=actors.said, refused=actors.refused)


@contextlib.contextmanager
def _standby(server: Server, second: Server | None, script: Script) -> Iterator[Server | None]:
    """A replica of *server*, where the script needs one."""
    if second is None or not any(isinstance(step, Failover) for step in script.steps):
        yield None
        return
    second.clear()
    follow(second, server)
    try:
        yield second
    finally:
        promote(second)


def shrunk(found: Outcome, server: Server, spark: SparkSession | None = None, second: Server | None = None) -> Outcome:
    """The same finding with fewer steps, as far as leaving out one after the other, or several, goes."""
    best, tries = found, 0
    size = max(1, len(found.script.steps) // 2)
    while size:
        at = 0
        while at < len(best.script.steps) - size and tries < _SHRINKS:  # the last run stays
            steps = [*best.script.steps[:at], *best.script.steps[at + size :]]
            tries += 1
            again = play(
                found.attack, server, found.seed, script=replace(best.script, steps=steps), spark=spark, second=second
            )
            if again.kind == found.kind:
                best = again
            else:
                at += size
        size //= 2
    return best


def _take(step: Step, actors: Actors, lake: FileLake | DeltaLake, server: Server, standby: Server | None) -> Server:
    """Takes a step; the server that is the source behind it."""
    if isinstance(step, (Follow, Forget, Failover, Torn, Look)):
        actors.said.append(str(step))
    if isinstance(step, Follow):
        lake.follow(step)
    elif isinstance(step, Forget):
        lake.forget()
    elif isinstance(step, Look):
        lake.look(step.tables)
    elif isinstance(step, Failover):
        if standby is not None and server is not standby:
            gtids = "SELECT @@gtid_binlog_pos" if server.flavor == "mariadb" else "SELECT @@gtid_executed"
            wait_for(standby, str(server.sql(gtids)[0][0]))
            promote(standby)
            actors.go_to(standby)
            lake.go_to(standby)
            return standby
    elif isinstance(step, Torn):
        if isinstance(lake, FileLake):
            lake.follow_copy(server, step.share)
        else:
            lake.follow(FOLLOW)
    else:
        actors.take(step)
    return server


def _is_right(error: Exception, script: Script) -> bool:
    """Whether a run may end so: by the error's name, or by words of its text."""
    return any(part == type(error).__name__ or (" " in part and part in str(error)) for part in script.fails)


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return "\n".join(f"    {Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)


@contextlib.contextmanager
def _directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="attack-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
