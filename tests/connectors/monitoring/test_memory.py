"""What is told of memory: Arrow's, and Java's where there is one, whose answer nobody waits for."""

from __future__ import annotations

import os
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import pyarrow as pa
from prometheus_client import CollectorRegistry, generate_latest

from connectors.monitoring.memory import HeapUse, JavaHeap, MemoryMetrics, java_process

if TYPE_CHECKING:
    import pytest


def _told(metrics: MemoryMetrics) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(metrics)
    lines = [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.split(" ") for line in lines)}


def test_memory_of_arrow_and_of_java_is_told() -> None:
    held = pa.array(range(100_000))
    told = _told(MemoryMetrics(lambda: HeapUse(used=7, limit=70), os.getpid))

    assert told["process_arrow_memory_bytes"] == pa.total_allocated_bytes() >= held.nbytes
    assert told["process_java_resident_memory_bytes"] > held.nbytes
    assert told['jvm_memory_used_bytes{area="heap"}'] == 7
    assert told['jvm_memory_max_bytes{area="heap"}'] == 70


def test_nothing_is_told_of_a_java_that_is_not_there() -> None:
    told = _told(MemoryMetrics(lambda: None, lambda: None))
    assert set(told) == {"process_arrow_memory_bytes"}


def test_nobody_waits_for_a_java_that_hangs_and_it_is_asked_once() -> None:
    goes_on, has_answered = threading.Event(), threading.Event()
    asked: list[int] = []
    clock_s = [0.0]

    def ask() -> HeapUse:
        asked.append(1)
        goes_on.wait()
        has_answered.set()
        return HeapUse(used=1, limit=2)

    heap = JavaHeap(ask, clock_s=lambda: clock_s[0])
    assert heap() is None
    clock_s[0] = 1000.0
    assert heap() is None
    goes_on.set()
    assert has_answered.wait(30)
    _joined("historian heap")
    assert heap() == HeapUse(used=1, limit=2)
    _joined("historian heap")
    assert len(asked) == 2


def test_a_spark_that_is_half_imported_is_none_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))

    assert java_process() is None


def test_java_is_known_before_there_is_a_spark_context(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = SimpleNamespace(totalMemory=lambda: 9, freeMemory=lambda: 2, maxMemory=lambda: 70)
    lang = SimpleNamespace(Runtime=SimpleNamespace(getRuntime=lambda: runtime))
    spark = ModuleType("pyspark")
    spark.SparkContext = SimpleNamespace(  # type: ignore[attr-defined]
        _active_spark_context=None,
        _gateway=SimpleNamespace(proc=SimpleNamespace(pid=os.getpid())),
        _jvm=SimpleNamespace(java=SimpleNamespace(lang=lang)),
    )
    monkeypatch.setitem(sys.modules, "pyspark", spark)
    heap = JavaHeap()
    heap()
    _joined("historian heap")

    assert java_process() == os.getpid()
    assert heap() == HeapUse(used=7, limit=70)


def _joined(name: str) -> None:
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(30)
