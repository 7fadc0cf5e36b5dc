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
from adversary.script import FOLLOW, Follow, Forget, Script, Step
from servers import Server

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

    def __str__(self) -> str:
        lake = "Delta" if self.delta else "files"
        lines = [f"attack {self.attack}, seed {self.seed}, on {self.server}, into {lake}"]
        lines += [f"tables {self.script.tables}, settings {self.script.said}"]
        return "\n".join([*lines, *(f"    {text}" for text in self.said), *(f"  FOUND {text}" for text in self.found)])


def script_of(attack: str, server: str, seed: int) -> Script:
    """The steps of a round; the connector runs at their end."""
    module = CLASSES[attack]
    script = module.script(random.Random(f"{attack} {server} {seed}"), server)
    return replace(script, steps=(*script.steps, FOLLOW))


def play(
    attack: str, server: Server, seed: int, *, script: Script | None = None, spark: SparkSession | None = None
) -> Outcome:
    """Runs a round; with *spark* into Delta. The server's databases and log are its own."""
    script = script_of(attack, server.name, seed) if script is None else script
    prepare(server)
    outcome = Outcome(seed=seed, attack=attack, server=server.name, script=script, delta=spark is not None)
    with _directory() as directory, contextlib.closing(Actors(server)) as actors:
        lake = FileLake(server, directory, script) if spark is None else DeltaLake(server, directory, script, spark)
        try:
            for step in script.steps:
                _take(step, actors, lake)
            known = lake.known()
            held = server_rows(server, lake.config.source.tables)
            outcome.stopped.extend(stops(known))
            outcome.found.extend(findings(known, held, script))
            if isinstance(lake, FileLake) and not outcome.found and seed % 4 == 0:
                outcome.found.extend(replay_findings(lake, known, random.Random(seed)))
        except Exception as error:  # noqa: BLE001 whatever ends a run is a finding, unless the attack says so
            if type(error).__name__ not in script.fails:
                outcome.found.append(f"ends with {type(error).__name__}: {error}\n{_where(error)}")
        return replace(outcome, said=actors.said, refused=actors.refused)


def shrunk(found: Outcome, server: Server, spark: SparkSession | None = None) -> Outcome:
    """The same finding with fewer steps, as far as leaving out one after the other, or several, goes."""
    best, tries = found, 0
    size = max(1, len(found.script.steps) // 2)
    while size:
        at = 0
        while at < len(best.script.steps) and tries < _SHRINKS:
            steps = [*best.script.steps[:at], *best.script.steps[at + size :]]
            tries += 1
            again = play(found.attack, server, found.seed, script=replace(best.script, steps=steps), spark=spark)
            if again.kind == found.kind:
                best = again
            else:
                at += size
        size //= 2
    return best


def _take(step: Step, actors: Actors, lake: FileLake | DeltaLake) -> None:
    if isinstance(step, Follow):
        actors.said.append(str(step))
        lake.follow(step)
    elif isinstance(step, Forget):
        actors.said.append(str(step))
        lake.forget()
    else:
        actors.take(step)


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
