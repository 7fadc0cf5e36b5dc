"""A standalone Spark cluster on loopback: a master and workers as processes of PySpark's own scripts, executors of one core.

Its processes end with those who started them, however that ends. Executors write to the same disks as the driver, as they do where
machines share a file system.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyspark

from databases.servers import free_port
from lakes.java_classes import java_options
from sinks.contract.read_chunks import READ_CHUNKS

__all__ = ["Cluster", "ClusterError", "bare_python", "begun_stages", "executor_pids", "finished_tasks", "spark_cluster"]

HOME = Path(pyspark.__file__).parent
START_S = 90.0
JOB = "from connectors.cli import main\nmain()\n"
"""What is submitted: the command line of ``historian``."""
_EXECUTOR = b"CoarseGrainedExecutorBackend"


class ClusterError(Exception):
    """The cluster did not start."""


@dataclass(kw_only=True)
class Cluster:
    """A running cluster.

    Attributes:
        master: its URL, ``spark://127.0.0.1:PORT``.
        workers: processes, by the number with which :meth:`start_worker` starts them.
        cores: of the machine, one of which each worker has alone for itself and its executors; (): any.
    """

    directory: Path
    port: int
    pages: int
    cores: Sequence[int] = ()
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    workers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def master(self) -> str:
        """Its URL."""
        return f"spark://127.0.0.1:{self.port}"

    @property
    def events(self) -> Path:
        """The directory that applications write their events to; see :func:`finished_tasks`."""
        path = self.directory / "events"
        path.mkdir(exist_ok=True)
        return path

    def state(self) -> dict[str, Any]:
        """What the master tells: ``workers``, ``activeapps`` and more."""
        with urlopen(f"http://127.0.0.1:{self.pages}/json/", timeout=5) as page:
            found: dict[str, Any] = json.load(page)
        return found

    def start_worker(self, number: int) -> None:
        """Starts a worker of one core and of a host of its own, which has ended, or was never there, and waits until the master knows it."""
        known = self._alive()
        place = self.directory / f"worker-{number}"
        place.mkdir(exist_ok=True)
        arguments = ["--cores", "1", "--memory", "1g", "--work-dir", str(place), "--webui-port", "0"]
        pinned = ("taskset", "-c", str(self.cores[number])) if self.cores else ()
        # Spark makes a slow task again on another host only.
        host = f"127.0.0.{number + 1}"
        self.workers[number] = self._start(
            "worker.Worker", *arguments, "--host", host, self.master, before=pinned, host=host
        )
        self._wait(lambda: self._alive() > known, self.workers[number], f"worker {number}")

    def worker_of(self, process: int) -> int:
        """The number of the worker below which a process of an executor runs."""
        numbers = {worker.pid: number for number, worker in self.workers.items()}
        while process not in numbers:
            process = _parent(process)
        return numbers[process]

    def kill_worker(self, number: int) -> None:
        """Kills a worker and its executors, as the loss of a machine would."""
        worker = self.workers.pop(number)
        executors = executor_pids(worker.pid)
        for process in (worker.pid, *executors):
            os.kill(process, signal.SIGKILL)
        worker.wait()

    def command(
        self, *arguments: str, conf: Mapping[str, str] | None = None, python: str = sys.executable
    ) -> list[str]:
        """``spark-submit`` of the command line ``historian`` with *arguments*, in client mode; *python*: of executors."""
        job = self.directory / "job.py"
        job.write_text(JOB)
        settings = {**self.settings(), "spark.pyspark.driver.python": sys.executable, "spark.pyspark.python": python}
        options = [
            part for name, value in {**settings, **(conf or {})}.items() for part in ("--conf", f"{name}={value}")
        ]
        return [str(HOME / "bin" / "spark-submit"), "--master", self.master, *options, str(job), *arguments]

    def settings(self) -> dict[str, str]:
        """Settings of an application on this cluster."""
        return {
            "spark.executor.cores": "1",
            "spark.executor.memory": "900m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.extraJavaOptions": java_options(),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": self.events.as_uri(),
        }

    def logs_of_executors(self) -> dict[Path, str]:
        """What executors of all applications have written to standard error, their Python's too."""
        return {path: path.read_text(errors="replace") for path in self.directory.glob("worker-*/*/*/stderr")}

    def stop(self) -> None:
        """Ends all of it."""
        for number in list(self.workers):
            self.kill_worker(number)
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def _alive(self) -> int:
        return sum(worker["state"] == "ALIVE" for worker in self.state()["workers"])

    def _start(
        self, kind: str, *arguments: str, before: Sequence[str] = (), host: str = "127.0.0.1"
    ) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": java_options(),
        }
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
        with (self.directory / f"{kind}-{len(self.processes)}.log").open("ab") as log:
            process = subprocess.Popen(
                [shutil.which("setpriv") or "/usr/bin/setpriv", "--pdeathsig", "KILL", *before, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def _wait(self, is_so: Any, process: subprocess.Popen[bytes], what: str) -> None:
        until_s = time.monotonic() + START_S
        while process.poll() is None and time.monotonic() < until_s:
            try:
                if is_so():
                    return
            except (OSError, HTTPException, ValueError):  # a page that is not whole yet among them
                pass
            time.sleep(0.1)
        logs = "\n".join(
            f"{path}:\n{path.read_text(errors='replace')[-1500:]}" for path in self.directory.glob("*.log")
        )
        raise ClusterError(f"{what} of the Spark cluster did not start within {START_S} s; logs:\n{logs}")


@contextmanager
def spark_cluster(directory: Path, *, workers: int = 2, cores: Sequence[int] = ()) -> Iterator[Cluster]:
    """A cluster with so many workers of one core; *cores*: the one of the machine that each has.

    Raises:
        ClusterError: a process ended or did not answer, with the ends of all logs.
    """
    directory.mkdir(exist_ok=True)
    cluster = Cluster(directory=directory, port=free_port(), pages=free_port(), cores=cores)
    try:
        places = ("--host", "127.0.0.1", "--port", str(cluster.port), "--webui-port", str(cluster.pages))
        master = cluster._start("master.Master", *places)
        cluster._wait(cluster.state, master, "the master")
        for number in range(workers):
            cluster.start_worker(number)
        yield cluster
    finally:
        cluster.stop()


def bare_python(directory: Path) -> str:
    """An interpreter that has all that this one has, but for our packages, which are installed by a link."""
    venv.create(directory, symlinks=True)
    packages = sysconfig.get_path("purelib")
    # A path in a file of paths is taken as it is: what files of paths there say is not read.
    base = directory / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages" / "base.pth"
    base.write_text(packages)
    return str(directory / "bin" / "python")


def executor_pids(above: int) -> list[int]:
    """Processes of executors that process *above* has started, or all of this machine's children of it."""
    found = []
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        try:
            is_executor = _EXECUTOR in (path / "cmdline").read_bytes()
            parent = _parent(int(path.name))
        except OSError:
            continue
        if is_executor and parent == above:
            found.append(int(path.name))
    return found


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def begun_stages(events: Path, *, reads: str = READ_CHUNKS) -> set[tuple[str, int]]:
    """Stages that read what *reads* names, and that applications of *events* have begun: the application's file, and the stage's number."""
    return {
        (path.name, event["Stage Info"]["Stage ID"])
        for path in _files(events)
        for event in _events(path)
        if event["Event"] == "SparkListenerStageSubmitted"
        and any(reads == rdd["Name"] for rdd in event["Stage Info"]["RDD Info"])
    }


def finished_tasks(events: Path, *, reads: str = READ_CHUNKS) -> Counter[str]:
    """How many tasks of stages that read what *reads* names ended well, by the executor that ran them, in all applications of *events*."""
    stages = begun_stages(events, reads=reads)
    return Counter(
        event["Task Info"]["Executor ID"]
        for path in _files(events)
        for event in _events(path)
        if event["Event"] == "SparkListenerTaskEnd"
        and event["Task End Reason"]["Reason"] == "Success"
        and (path.name, event["Stage ID"]) in stages
    )


def _files(events: Path) -> list[Path]:
    return sorted(path for path in events.rglob("*") if path.is_file())


def _events(path: Path) -> list[dict[str, Any]]:
    found = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue  # the last line of one that was killed
    return [event for event in found if isinstance(event, dict) and "Event" in event]
