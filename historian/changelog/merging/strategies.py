"""How a table that arrives as whole snapshots, new records, upserts or changes becomes changelog rows.

A strategy is data: :func:`historian.changelog.merging.batches.merge` applies it to Arrow tables, ``pyspark_historian.merging.merge`` to
DataFrames. They are those of Open Data Fabric's ingestion, made strict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from historian.changelog.operations import RESERVED_COLUMNS
from historian.errors import HistorianError

__all__ = ["Append", "ChangelogStream", "Ledger", "Snapshot", "Strategy", "UpsertStream", "merged_columns"]

_EVENT_TIME = "event_time"


class _Keyed:
    """What strategies with a key share."""

    __slots__ = ()

    key: tuple[str, ...]

    def __post_init__(self) -> None:
        key: object = self.key  # what a caller gives may be of any type
        if not key or not isinstance(key, tuple):
            raise HistorianError(
                f"{type(self).__name__} needs the key's columns", expected='key=("id",)', found=repr(key)
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(_Keyed):
    """Each batch is the whole table: what is new comes as +A, what is gone as -R, what differs as -C and +C.

    A column that came is NULL in rows from before, one that went is NULL in new rows. A row whose event time alone is
    another one differs, but one without event time does not differ by that.

    Attributes:
        key: tells rows apart; never NULL, and once in a batch.
        compare_columns: columns that decide whether a row differs; by default all.
    """

    key: tuple[str, ...]
    compare_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertStream(_Keyed):
    """Each record is the new row of its key, or with ``op`` -R says that it goes; the last one of a batch counts.

    What changes nothing gives no rows: an equal row, or -R of a key that is not there. -R carries the row that was
    there, whatever the record says.

    Attributes:
        key: tells rows apart; never NULL.
    """

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogStream(_Keyed):
    """Each batch is a changelog with ``op``, which goes on where the state ends; its order is kept.

    It is held to the ODF profile of :mod:`historian.changelog.validation`; -R and -C without event time take that of their row.

    Attributes:
        key: tells rows apart; never NULL.
    """

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger(_Keyed):
    """Each batch holds records that never change, some of them known: those with a new key come as +A, by event time.

    Of a key that is known the first record stays. A key with two different records in one batch is refused.

    Attributes:
        key: tells records apart; never NULL.
    """

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Each batch is new: all rows come as +A, by event time."""


Strategy: TypeAlias = Snapshot | UpsertStream | ChangelogStream | Ledger | Append


def merged_columns(
    strategy: Strategy, news: Mapping[str, object], former: Mapping[str, object] | None
) -> tuple[str, ...]:
    """The data columns that a merge gives: the state's in their order, then those that come new.

    Args:
        strategy: of the merge.
        news: type by name of the batch's columns.
        former: the same of the state; None: there is none.

    Raises:
        HistorianError: a name is taken by the changelog, a column of the strategy is missing, or a column has two types.
    """
    held = {} if former is None else former
    _check_names(strategy, news, held)
    data = tuple(name for name in {**held, **news} if name not in (_EVENT_TIME, "op"))
    key = set(getattr(strategy, "key", ()))
    wanted = [("batch", key, news), ("batch and the state", {*getattr(strategy, "compare_columns", ())}, data)]
    if former is not None:
        wanted.append(("state", {*key, _EVENT_TIME}, former))
    for where, names, found in wanted:
        if names - set(found):
            raise HistorianError(f"columns are missing from the {where}", expected=sorted(names), found=sorted(found))
    if isinstance(strategy, ChangelogStream) and "op" not in news:
        raise HistorianError("a changelog has operations", expected="a column op", found=sorted(news))
    for name in set(news) & set(held):
        if news[name] != held[name]:
            raise HistorianError(
                "a column of the batch has another type than in the state",
                where=name,
                expected=held[name],
                found=news[name],
                next_step="cast one of them",
            )
    return data


def _check_names(strategy: Strategy, news: Mapping[str, object], held: Mapping[str, object]) -> None:
    free = {_EVENT_TIME, "op"} if isinstance(strategy, UpsertStream | ChangelogStream) else {_EVENT_TIME}
    taken = [name for name in news if name in RESERVED_COLUMNS and name not in free]
    taken += [name for name in held if name in RESERVED_COLUMNS and name != _EVENT_TIME]
    if taken:
        raise HistorianError(
            "data columns are named like columns of the changelog",
            expected=f"no column {', '.join(sorted(set(RESERVED_COLUMNS) - free))}",
            found=", ".join(taken),
            next_step="rename them, or leave them out",
        )
