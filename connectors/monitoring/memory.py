"""Memory of a run beside that of the Python process: what Arrow holds in it, and Spark's Java process where there is one.

They are a process's, and so the same for all its connectors. Names are those that Java's own client of Prometheus has.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

__all__ = ["HeapUse", "JavaHeap", "MemoryMetrics", "java_process"]

_EVERY_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeapUse:
    """Bytes of Java's heap: those in use, garbage that was not collected yet among them, and as many as it may have."""

    used: int
    limit: int


class JavaHeap:
    """How full Java's heap is, asked now and then in a thread of its own: a Java that hangs keeps nobody who asks.

    Args:
        ask: for the use; None: there is no Java.
        clock_s: a clock that never goes back.
    """

    def __init__(
        self, ask: Callable[[], HeapUse | None] | None = None, *, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = _asked_heap if ask is None else ask
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._asked_s: float | None = None
        self._is_asked = False
        self._use: HeapUse | None = None

    def __call__(self) -> HeapUse | None:
        """The last answer; None too while there is none. From any thread; returns at once."""
        now_s = self._clock_s()
        with self._lock:
            is_old = not self._is_asked and (self._asked_s is None or now_s - self._asked_s > _EVERY_S)
            if is_old:
                self._asked_s, self._is_asked = now_s, True
        if is_old:
            threading.Thread(target=self._learn, name="historian heap", daemon=True).start()
        return self._use

    def _learn(self) -> None:
        try:
            self._use = self._ask()
        finally:
            self._is_asked = False


class MemoryMetrics(Collector):
    """What :class:`JavaHeap` and the system say of memory.

    Args:
        heap: of Java.
        java: the number of Java's process on this machine; None: there is none.
    """

    def __init__(
        self, heap: Callable[[], HeapUse | None] | None = None, java: Callable[[], int | None] | None = None
    ) -> None:
        self._heap = JavaHeap() if heap is None else heap
        self._java = java_process if java is None else java

    def describe(self) -> Iterable[Metric]:
        """Nothing: the names are asked for without a look."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """The families; those of Java only where it is known."""
        yield GaugeMetricFamily("process_arrow_memory_bytes", "Memory that Arrow holds.", pa.total_allocated_bytes())
        resident = _resident(self._java())
        if resident is not None:
            yield GaugeMetricFamily("process_java_resident_memory_bytes", "Of Spark's Java process.", resident)
        use = self._heap()
        if use is not None:
            used = GaugeMetricFamily("jvm_memory_used_bytes", "Java's memory in use.", labels=["area"])
            used.add_metric(["heap"], use.used)
            limit = GaugeMetricFamily("jvm_memory_max_bytes", "As much as it may be.", labels=["area"])
            limit.add_metric(["heap"], use.limit)
            yield from (used, limit)


def java_process() -> int | None:
    """Which process Spark's driver is in, where this one has started it."""
    process = getattr(getattr(_spark(), "_gateway", None), "proc", None)
    return None if process is None else int(process.pid)


def _spark() -> Any:
    """What PySpark knows of Java, with a context or before there is one. It is not imported for it, and may be half imported by another thread."""
    return getattr(sys.modules.get("pyspark"), "SparkContext", None)


def _resident(process: int | None) -> int | None:
    """Bytes of memory that a process has; None: none, or it is gone."""
    if process is None:
        return None
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def _asked_heap() -> HeapUse | None:
    from py4j.protocol import Py4JError

    jvm = getattr(_spark(), "_jvm", None)
    if jvm is None:
        return None
    try:
        runtime = jvm.java.lang.Runtime.getRuntime()
        return HeapUse(used=runtime.totalMemory() - runtime.freeMemory(), limit=runtime.maxMemory())
    except (Py4JError, OSError, AttributeError):  # it ends
        return None
