"""Spark sessions with Delta: one that is made here, one of ``spark-submit``, and one beside a session that somebody else has made."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from historian.errors import HistorianError
from sinks.late_session import LateSession, start_java
from sinks.spark_settings import DELTA_EXTENSION, chosen_settings, is_local, said_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SessionUnusable", "late_session", "runs_here", "session_beside", "sessions_beside", "spark_session"]

_PYTHON = "spark.pyspark.python"
_NAME = "spark.app.name"
_HEAP = "spark.driver.memory"
_ZONE = "spark.sql.session.timeZone"
_CONNECT_VARIABLES = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")


class SessionUnusable(HistorianError):
    """A Spark session that replication cannot run in."""


def spark_session(
    *,
    jars: Sequence[Path] = (),
    master: str | None = None,
    name: str = "historian",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The running Spark session as it is, or a new one that reads and writes Delta.

    Under ``spark-submit`` master and settings are those that it was given, and ours where it says nothing.

    Args:
        jars: Delta's jars; leave them out where the cluster has them.
        master: where Spark runs; with ``local`` it listens on the loopback interface only. None: where
            ``spark-defaults.conf`` says, else ``local[*]``.
        name: that the session is listed under.
        settings: further Spark settings, which win over ours and over ``spark-defaults.conf``.

    Raises:
        SessionUnusable: the environment asks for Spark Connect.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:  # noqa: SLF001 there is no public way to ask
        # A builder with settings would change those of the session that runs.
        return SparkSession.builder.getOrCreate()
    chosen = _chosen(jars, master, name, settings)
    os.environ["PYSPARK_PYTHON"] = chosen[_PYTHON]
    if SparkContext._gateway is None:  # noqa: SLF001 same
        start_java(chosen)
    builder = SparkSession.builder
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def late_session(
    *,
    jars: Sequence[Path],
    master: str | None,
    name: str,
    settings: Mapping[str, str],
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
    java: Callable[[], AbstractContextManager[int | None]] = nullcontext,
) -> SparkSession | LateSession:
    """The same, made when it is needed (:class:`~sinks.late_session.LateSession`) where it runs on this machine and none runs yet.

    Args:
        around: what a session is made in that is made now.
        java: what Java is started in later, as of :class:`~sinks.late_session.LateSession`.
    """
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None or not runs_here(settings.get("spark.master", master)):  # noqa: SLF001 same
        with around():
            return spark_session(jars=jars, master=master, name=name, settings=settings)
    return LateSession(_chosen(jars, master, name, settings), java)


def _chosen(jars: Sequence[Path], master: str | None, name: str, settings: Mapping[str, str] | None) -> dict[str, str]:
    """All settings of a new session. Under ``spark-submit`` Java gets what it lacks of *jars*."""
    from pyspark import SparkConf, SparkContext

    said = said_settings()
    _refuse_connect({**said, **(settings or {})})
    if _is_submitted():
        SparkContext._ensure_initialized()  # noqa: SLF001 spark-submit has said all before Python began
        given = dict(SparkConf().getAll())
        _refuse_connect(given)
        jars = () if _has_delta(jars) else jars
        chosen = chosen_settings({**(settings or {}), **given}, {}, master=None, jars=",".join(map(str, jars)))
        name = _submitted_name(given, name)
        if _HEAP not in given:
            del chosen[_HEAP]  # Java is there already.
    else:
        chosen = chosen_settings(said, settings or {}, master=master, jars=",".join(map(str, jars)))
    # Workers must run an interpreter that has our packages; what the environment says wins over the setting.
    chosen.setdefault(_PYTHON, _python(chosen["spark.master"]))
    return {**chosen, _NAME: name}


def runs_here(master: str | None = None) -> bool:
    """Whether a session with *master*, as :func:`spark_session` takes it, needs no other machine to reach this one."""
    return not _is_submitted() and is_local(master or said_settings().get("spark.master", "local[*]"))


def session_beside(spark: SparkSession) -> SparkSession:
    """A session of its own in the Spark context of *spark*, with our SQL settings; no setting of *spark* is changed.

    It begins with what *spark* says by ``spark.conf``.

    Raises:
        SessionUnusable: *spark* is a client of Spark Connect, was stopped, or has no Delta.
    """
    return sessions_beside(spark)()


def sessions_beside(spark: SparkSession) -> Callable[[], SparkSession]:
    """What makes such sessions, from any thread, all with what *spark* says now: Java is asked once for that, and not by each of many.

    Raises:
        SessionUnusable: as of :func:`session_beside`.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise SessionUnusable(
            "replication needs the driver's own Spark session, and this is a client of Spark Connect",
            expected="a session of the process that plans, commits and holds the connector's lease",
            found=f"{type(spark).__module__}.{type(spark).__qualname__}, whose driver is another process",
            next_step="run `historian run` or replicate() in a job of the cluster (spark-submit); "
            "the tables that it writes can be read by Spark Connect",
        )
    context: Any = spark.sparkContext
    if context._jsc is None:  # noqa: SLF001 there is no public way to ask
        raise SessionUnusable("the Spark session was stopped", next_step="make a new one")
    said = spark.conf.getAll
    if DELTA_EXTENSION not in said.get("spark.sql.extensions", "") or not _loads(spark._jvm):  # noqa: SLF001 same
        raise SessionUnusable(
            "the Spark session has no Delta, which cannot be added to a session that runs",
            expected=f"spark.sql.extensions with {DELTA_EXTENSION}, and Delta's jars",
            found=f"spark.sql.extensions={said.get('spark.sql.extensions', '')}",
            next_step="make the session with pyspark_historian.session.local_session(), which takes a master too; see "
            "docs/how-to/run-on-a-cluster.md",
        )
    conf = spark.newSession().conf
    fresh, ours = conf.getAll, chosen_settings({}, {}, master=context.master, jars="")
    wanted = {**ours, **said, _ZONE: ours[_ZONE]}
    differing = {name: value for name, value in wanted.items() if fresh.get(name) != value}
    settings = {name: value for name, value in differing.items() if name == _ZONE or conf.isModifiable(name)}

    def made() -> SparkSession:
        session = spark.newSession()
        for name, value in settings.items():
            session.conf.set(name, value)
        return session

    return made


def _is_submitted() -> bool:
    """Whether ``spark-submit`` has started this process, and its Java is there already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _submitted_name(given: Mapping[str, str], name: str) -> str:
    """The name that ``spark-submit`` was given; where it was given none it says that of the script."""
    said = given.get(_NAME, "")
    return name if said in ("", Path(sys.argv[0]).name) else said


def _refuse_connect(settings: Mapping[str, str]) -> None:
    """Whatever of it PySpark looks at; *settings* are those of the configuration and of ``spark-defaults.conf``."""
    said = [f"{name}={_shown(os.environ[name])}" for name in _CONNECT_VARIABLES if os.environ.get(name)]
    if settings.get("spark.remote"):
        said.append(f"spark.remote={_shown(settings['spark.remote'])}")
    if settings.get("spark.api.mode", os.environ.get("SPARK_API_MODE", "")).lower() == "connect":
        said.append("spark.api.mode=connect")
    if said:
        raise SessionUnusable(
            "Spark Connect cannot run what writes the lake: a connector plans and commits in the driver's own process",
            found=", ".join(said),
            next_step="unset it, and name the cluster by run.spark.master or spark-submit --master",
        )


def _shown(remote: str) -> str:
    """The address, without its parameters: a token is one of them."""
    return remote.partition(";")[0]


def _python(master: str) -> str:
    """Executors elsewhere may have another interpreter, which the environment names."""
    return sys.executable if is_local(master) else os.environ.get("PYSPARK_PYTHON", sys.executable)


def _has_delta(jars: Sequence[Path]) -> bool:
    """Whether Java, which ``spark-submit`` has started, has Delta among its own jars. Else its driver is given *jars*."""
    from pyspark import SparkContext

    jvm: Any = SparkContext._jvm  # noqa: SLF001 no session is there yet
    if _loads(jvm):
        return True
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if "MutableURLClassLoader" not in [base.getSimpleName() for base in _classes(loader)]:
        raise SessionUnusable("spark-submit has started Java without Delta", next_step="name Delta's jars by --jars")
    for jar in jars:
        loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    return False


def _loads(jvm: Any) -> bool:
    from py4j.protocol import Py4JJavaError

    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(DELTA_EXTENSION)
    except Py4JJavaError:
        return False
    return True


def _classes(value: Any) -> list[Any]:
    """The class of a Java object, and those that it descends from."""
    found = [value.getClass()]
    while (above := found[-1].getSuperclass()) is not None:
        found.append(above)
    return found
