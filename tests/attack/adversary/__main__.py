"""``python -m adversary --rounds 2000 --seed 7``: rounds of all classes on all servers; ends with 1 where one found something."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adversary.classes import CLASSES, OPTIONS, servers_of
from adversary.rounds import Outcome, play, shrunk
from databases.server_builds import BUILDS
from databases.servers import Server, start_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_RARELY = 16
"""Of so many rounds of a class that needs a second server, or Spark, which takes long, one is played."""
_SHRUNK = 3
"""So many findings that look alike are made small and shown."""


class _Running(dict[str, Server]):
    """Servers, each started when it is first asked for."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory

    def __missing__(self, name: str) -> Server:
        kind, _, asked = name.partition("+")
        self[name] = start_server(kind, self._directory / name, *OPTIONS.get(asked, ()))
        return self[name]


def main() -> int:
    asked = _asked()
    logging.disable(logging.CRITICAL)
    attacks = asked.attack or list(CLASSES)
    found: list[Outcome] = []
    rounds: Counter[str] = Counter()
    stops: Counter[tuple[str, str]] = Counter()
    begun_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="adversary-") as directory:
        servers = _Running(Path(directory))
        for number in range(asked.rounds):
            seed = asked.seed * 1_000_000 + number if asked.exact is None else asked.exact
            attack = attacks[number % len(attacks)]
            if not asked.attack and _is_slow(attack) and number // len(attacks) % _RARELY:
                attack = attacks[(number + 1) % len(attacks)]
            able = asked.server or servers_of(attack)
            kind = able[number // len(attacks) % len(able)]
            second = servers[f"{kind}+second"] if getattr(CLASSES[attack], "SECOND", False) else None
            into_delta = _needs_spark(attack) or (asked.delta and number % asked.delta == asked.delta - 1)
            spark = _spark(Path(directory)) if into_delta else None
            outcome = play(attack, servers[kind], seed, spark=spark, second=second)
            rounds[attack] += 1
            stops.update((attack, name) for name, _ in outcome.stopped)
            if outcome.found:
                known = sum(other.signature == outcome.signature for other in found)
                small = outcome if asked.whole or known >= _SHRUNK else shrunk(outcome, servers[kind], spark, second)
                found.append(small)
                shown = f"as before: {outcome.signature}, seed {seed} on {kind}" if known >= _SHRUNK else small
                print(f"\n==== {len(found)}\n{shown}", flush=True)
                if asked.stop_after and len(found) >= asked.stop_after:
                    break
            elif asked.verbose:
                print(f"{outcome}\n    stopped {outcome.stopped}, refused {outcome.refused}", flush=True)
        for server in servers.values():
            server.kill()
    _sum_up(rounds, stops, found, time.monotonic() - begun_s)
    return 1 if found else 0


def _needs_spark(attack: str) -> bool:
    return getattr(CLASSES[attack], "SPARK", False)


def _is_slow(attack: str) -> bool:
    return getattr(CLASSES[attack], "SECOND", False) or _needs_spark(attack)


def _asked() -> Any:
    parser = argparse.ArgumentParser(prog="adversary")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--exact", type=int, help="the seed that a failure printed")
    parser.add_argument("--attack", action="append", choices=[*CLASSES])
    parser.add_argument("--server", action="append", help="of these alone: " + ", ".join(BUILDS))
    parser.add_argument("--delta", type=int, default=0, help="each so many rounds go through Spark into Delta")
    parser.add_argument("--stop-after", type=int, default=0)
    parser.add_argument("--whole", action="store_true", help="do not shrink what is found")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


_session: list[SparkSession] = []


def _spark(directory: Path) -> SparkSession:
    if not _session:
        from connectors.spark.jvm import delta_jars
        from sinks.session import spark_session

        settings = {
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={directory / 'derby'}",
            "spark.local.dir": str(directory / "local"),
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.adaptive.enabled": "false",
        }
        _session.append(spark_session(jars=delta_jars(), name="adversary", settings=settings))
    return _session[0]


def _sum_up(rounds: Counter[str], stops: Counter[tuple[str, str]], found: list[Outcome], seconds: float) -> None:
    print(f"\n{sum(rounds.values())} rounds in {seconds:.0f} s, {len(found)} found something")
    kinds = Counter((outcome.attack, outcome.kind) for outcome in found)
    for attack, count in sorted(rounds.items()):
        told = ", ".join(f"{kind} {n}" for (name, kind), n in sorted(kinds.items()) if name == attack)
        stopped = ", ".join(f"{stop} {n}" for (name, stop), n in sorted(stops.items()) if name == attack)
        print(f"  {attack:12} {count:5} rounds; found: {told or 'nothing'}; stops: {stopped or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
