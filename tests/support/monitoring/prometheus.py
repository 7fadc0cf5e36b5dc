"""A real Prometheus for tests: Debian's package, a free loopback port, no installation."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from connectors.spark.jvm import cache_directory
from databases import debian
from databases.server_builds import placed
from databases.servers import ServerError, free_port

__all__ = ["Prometheus", "prepare", "promtool", "started_prometheus"]

START_S = 60


def prepare() -> Path:
    """The directory of Debian's programs, fetched if need be."""
    directory = cache_directory() / "test-servers" / "prometheus"
    with placed(directory) as place:
        if place is not None:
            with tempfile.TemporaryDirectory(prefix="historian-apt-") as work:
                debian.unpack("bookworm", ["libc6"], place / "root", Path(work), alone=["prometheus"])
    return directory


def promtool(*arguments: str, directory: Path) -> str:
    """What Prometheus' own tool says, run in *directory*; an error of it is one of ours."""
    command = [*debian.program_in(prepare() / "root", "usr/bin/promtool"), *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServerError(f"promtool {' '.join(arguments)}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Prometheus:
    """A client of a running server."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self._url}/api/v1/{path}?{query}", timeout=30) as answer:
            return json.load(answer)["data"]

    def samples(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of each sample that an expression has now."""
        found = self.ask("query", query=expression)["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]


@contextmanager
def started_prometheus(directory: Path, targets: Sequence[str], rules: Path) -> Iterator[Prometheus]:
    """A server that scrapes *targets* each second under the job's name of ours, with alerts of *rules*; it is ended behind the ``with``."""
    jobs = [{"job_name": "historian", "static_configs": [{"targets": list(targets)}]}]
    times = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config = directory / "prometheus.json"  # JSON is YAML
    config.write_text(json.dumps({"global": times, "rule_files": [str(rules)], "scrape_configs": jobs}))
    port = free_port()
    command = [
        *debian.program_in(prepare() / "root", "usr/bin/prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    log = directory / "prometheus.log"
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            _wait(process, port, log)
            yield Prometheus(port)
        finally:
            process.terminate()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until_s:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise ServerError(f"Prometheus did not start; the end of {log}:\n{log.read_text(errors='replace')[-2000:]}")
