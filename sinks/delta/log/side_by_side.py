"""Threads that write different tables at once, each with a Spark session of its own where Spark must change one.

Delta takes the transaction identifier of an UPDATE or MERGE from settings of the session that runs it, so that two at once
need two sessions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

from sinks.contract.late_java import made

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["THREADS", "own_session", "side_by_side"]

THREADS = 8
"""So many tables at once: commits wait for storage and for Java far longer than they compute here."""

_POOL = "spark.scheduler.pool"

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_helper = threading.local()


def side_by_side(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """What *work* gives for each of *items*, in their order; up to :data:`THREADS` are worked at at once.

    Once one raises no other is begun; when those under way have ended, what the first of them in order raised is raised.
    """
    if len(items) < 2:
        return [work(item) for item in items]
    pool = ThreadPoolExecutor(min(THREADS, len(items)), "tables", _begin, _share())
    try:
        futures = [pool.submit(work, item) for item in items]
        wait(futures, return_when=FIRST_EXCEPTION)
    finally:
        pool.shutdown(cancel_futures=True)
    # They begin in order, so that none before the first that raised was cancelled.
    return [future.result() for future in futures]


def own_session(spark: SparkSession) -> SparkSession:
    """A session like *spark* whose settings no other thread of :func:`side_by_side` changes; elsewhere *spark* itself.

    It is there: one that was to come is made.
    """
    spark = made(spark)
    if not hasattr(_helper, "sessions"):
        return spark
    sessions: dict[SparkSession, SparkSession] = _helper.sessions
    if spark not in sessions:
        sessions[spark] = _like(spark)
    return sessions[spark]


def _share() -> tuple[Any, str | None]:
    """The context of Spark, and the pool in which jobs of this thread are: they have equal shares where several connectors run."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context  # noqa: SLF001 there is no public way to one that may not be there
    return context, None if context is None else context.getLocalProperty(_POOL)


def _begin(context: Any, pool: str | None) -> None:
    _helper.sessions = {}
    if pool is not None:
        context.setLocalProperty(_POOL, pool)


def _like(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    fresh = session.conf.getAll
    for name, value in spark.conf.getAll.items():
        if fresh.get(name) != value and session.conf.isModifiable(name):
            session.conf.set(name, value)
    return session
