"""Spark's door to the ``historian`` format: Spark looks for ``DefaultSource`` in every module named ``pyspark_*``.

The Arrow half of its functions does not belong here (:mod:`historian.changelog`).

Open to other rooms: ``columns``, ``conversions``, ``errors``, ``merging``, ``replication``, ``session``, ``state``, ``validation``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

    from pyspark_historian.replication import replicate

__all__ = ["DefaultSource", "replicate"]


def __getattr__(name: str) -> Any:
    if name == "replicate":
        from pyspark_historian.replication import replicate

        return replicate
    if name != "DefaultSource":
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        from connectors.spark.data_source import HistorianSource
    except ImportError as error:
        return _unavailable(error)
    return HistorianSource


def _unavailable(error: ImportError) -> type[DataSource]:
    """A source named ``historian`` that raises ``error``'s reason as soon as Spark asks it for anything."""
    from pyspark.sql.datasource import DataSource

    reason = (
        f"the format 'historian' cannot be loaded: {type(error).__name__}: {error}. A folder named 'connectors', "
        f"'historian' or 'sinks' beside the job shadows the installed packages; a missing one means that the wheel of "
        f"pyspark-historian is not installed for this interpreter"
    )

    def refuse(*_: object) -> NoReturn:
        raise ImportError(reason)

    # Made here, not at module level, so that it is pickled by value and carries the reason to Spark's other processes.
    # `schema` is the first thing Spark asks for; `__init__` must not be overridden.
    members = {"name": classmethod(lambda _: "historian"), "schema": refuse, "reader": refuse, "streamReader": refuse}
    return type("DefaultSource", (DataSource,), members)
