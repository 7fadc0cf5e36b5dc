"""Where a connector stands, as its store and its source tell: what `historian status` and the endpoint show as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import asdict, fields
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from connectors.config import ServerSource, limits_in_force, named_limits
from connectors.monitoring.copies import copies_left_s, copies_reading, copies_state, copies_wait, time_text
from connectors.monitoring.normalization import normalized_tables
from connectors.monitoring.retention import log_kept_s, log_warnings
from connectors.monitoring.targets import MOST_LISTED, ListedTargets, listed_targets
from connectors.page.phrases import LAG_UNITS
from historian.errors import HistorianError, ValueUnrepresentable
from historian.positions import KAFKA, LogPosition, parse_position
from historian.values.policies import FAIL

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from connectors.readers.base import PartitionLag, Reader
    from historian.history.history import History
    from historian.schema.snapshots import Column
    from historian.store import Store
    from sinks.contract.base import TargetStatus

__all__ = ["connector_state", "or_reason", "told_targets"]

T = TypeVar("T")
_RESET = "the log ends before what was read of it: it was reset, and a run is refused; `historian check` says what can be done"


def connector_state(
    config: PipelineConfig,
    store: Store | None,
    *,
    history: Callable[[], History] | None = None,
    reader: Reader | None = None,
    kept_s: Callable[[], float | None] | None = None,
    lists_all: bool = True,
) -> dict[str, Any]:
    """What the store says, and how far the log goes on behind it. Without a store it is where the log ends.

    What it costs goes by what is told: the history is read where a value of some column is told of, and no target or copy that is not listed.

    Args:
        history: gives that of the store, as it is now; by default it is read.
        reader: of the source; by default one is made, and closed.
        kept_s: for how long the source keeps its log; by default it is asked.
        lists_all: of more than :data:`MOST_LISTED` targets those that are up to date are listed too, and as many copies that are done.
    """
    from connectors.tracking.recorded import reached_plan, stopped_tables

    found: dict[str, Any] = {
        "name": config.name,
        "connector": None,
        "tracked": None,
        "last_plan": None,
        "retry": None,
        "lag": None,
        "log_kept_s": None,
        "log_left_s": None,
        "warnings": [],
        "schema_versions": 0,
        "copies": [],
        "copies_paused": False,
        "copies_wait": None,
        "copies_reading": None,
        "copy_limits": None,
        "stopped": [],
        "nulled": [],
        "nulled_defaults": [],
        "normalized": [],
        "messages": {},
        "targets": None,
        "target_counts": None,
        "notifications": [],
    }
    plan = None if store is None else reached_plan(store)
    if store is not None:
        resolved, history = store.resolved(), cache(store.history if history is None else history)
        found |= {
            "connector": store.connector(config.name),
            "tracked": None if resolved is None else _position(resolved),
            "retry": store.retry() or None,
            "schema_versions": store.last_number(),
            "copies": copies_state(store, most=None if lists_all else MOST_LISTED),
            "copies_paused": store.copy_orders().paused,
            "copies_wait": copies_wait(store),
            "copies_reading": copies_reading(store, config.name),
            "copy_limits": _copy_limits(config, store),
            "stopped": [asdict(each) | {"table": str(each.table)} for each in stopped_tables(store)],
            "nulled": _nulled(store, history),
            "normalized": list(normalized_tables(store, history)),
            "messages": store.message_counts(),
            "notifications": list(_notifications(store)),
        }
        if plan is not None:
            found["last_plan"] = {
                "number": plan.number,
                "end": _position(plan.end),
                "made": time_text(plan.system_time_us),
                "tables": plan.tables,
            }
            found["nulled_defaults"] = list(_nulled_defaults(config, store, history, plan.version))
    found["lag"] = or_reason(lambda: _lag(config, None if plan is None else plan.end, reader))
    noted = None if store is None else listed_targets(store, plan, lists_all=lists_all)
    if noted is not None:
        found |= told_targets(config, noted, found["lag"])
    if "unknown" not in found["lag"]:
        all_s = None if store is None else copies_left_s(store)
        kept = or_reason(partial(log_kept_s, config) if kept_s is None else kept_s)
        found |= _retention(kept, found, 0 if plan is None else plan.system_time_us, all_s)
        if found["lag"].pop("ends_before", False):
            found["warnings"].append(_RESET)
    return found


def told_targets(config: PipelineConfig, found: ListedTargets, lag: Mapping[str, Any]) -> dict[str, Any]:
    """``targets``: with how far each is behind the log: when its plan was made, and transactions where there are GTIDs. ``target_counts``: of all.

    Args:
        lag: as :func:`connector_state` gives it.
    """
    return {"targets": _target_rows(config, found.listed, lag), "target_counts": found.counts}


def _target_rows(
    config: PipelineConfig, targets: Iterable[TargetStatus], lag: Mapping[str, Any]
) -> list[dict[str, Any]]:
    end = lag.get("log_end")
    ended = parse_position(end["gtids"], config.source.flavor) if end is not None and end["gtids"] else None
    behind: dict[str, int | None] = {"": None}
    rows = []
    for target in targets:
        if ended is not None and target.position not in behind:
            behind[target.position] = ended.transactions_since(parse_position(target.position, config.source.flavor))
        row = {each.name: getattr(target, each.name) for each in fields(target)}
        made_us = row.pop("made_us")
        row["made"] = time_text(made_us) if made_us else None
        row["behind"] = behind.get(target.position)
        rows.append(row)
    return rows


def _position(position: LogPosition) -> dict[str, str]:
    return {"gtids": position.gtids, "at": str(position.at) if position.file else ""}


def or_reason(ask: Callable[[], T]) -> T | dict[str, str]:
    """An answer from a part that may be out of reach, else why there is none: status is for bad days too."""
    try:
        return ask()
    except HistorianError as error:
        return {"unknown": str(error)}


def _lag(config: PipelineConfig, reached: LogPosition | None, held: Reader | None) -> dict[str, Any]:
    """What the log holds behind the last plan that was written: transactions where it has GTIDs, messages of topics, else bytes in the same file."""
    from connectors.tracking.sources import make_reader

    with nullcontext(held) if held is not None else closing(make_reader(config.source)) as reader:
        end = reader.near_end()
        start = reader.start() if reached is None else reached
        partitions = reader.partition_lags(start)
    lag: dict[str, Any] = {"log_end": _position(end)}
    if reached is not None and _ends_before(end, reached):
        lag["ends_before"] = True
    if end.flavor == KAFKA:
        lag |= {
            "messages": sum(each.messages for each in partitions),
            "partitions": [_partition(each) for each in partitions],
        }
    elif not end.gtids:
        lag["bytes"] = end.offset - start.offset if end.file == start.file else None
    else:
        behind = end.transactions_since(start)
        lag |= {} if behind is None else {"transactions": behind}
    return lag


def _ends_before(end: LogPosition, reached: LogPosition) -> bool:
    """Whether a server's log ends before what was read of it; files tell it, since GTIDs of what is being committed come late."""
    if not end.file or not reached.file or end.server != reached.server or end.at.base != reached.at.base:
        return False
    return not end.at.covers(reached.at)


def _partition(lag: PartitionLag) -> dict[str, Any]:
    age_s = None if lag.since_us is None else max(0.0, time.time() - lag.since_us / 1e6)
    return {
        "partition": lag.partition,
        "messages": lag.messages,
        "seconds": round(age_s, 3) if age_s is not None else None if lag.messages else 0,
    }


def _retention(
    kept_s: float | dict[str, str] | None, found: dict[str, Any], made_us: int, all_s: int | None
) -> dict[str, Any]:
    """For how long the source keeps its log, and how long that is for the log behind the last plan, made at *made_us*; *all_s*: copies take."""
    if kept_s is None or isinstance(kept_s, dict):
        return {"log_kept_s": kept_s}
    is_behind = made_us and any(found["lag"].get(key) != 0 for key in LAG_UNITS if key in found["lag"])
    lag_s = max(0.0, time.time() - made_us / 1e6) if is_behind else 0.0
    copies = [(copy["table"], copy["left_s"]) for copy in found["copies"]]
    return {
        "log_kept_s": round(kept_s),
        "log_left_s": round(max(0.0, kept_s - lag_s)),
        "warnings": list(log_warnings(kept_s, lag_s, copies, all_s)),
    }


def _copy_limits(config: PipelineConfig, store: Store) -> dict[str, dict[str, Any]] | None:
    """The limits of copies in force, by name, and whether `historian backfill --limit` set each; None: nothing is copied from files."""
    if not isinstance(config.source, ServerSource):
        return None
    said = dict(store.copy_orders().limits)
    in_force = named_limits(limits_in_force(config.source.backfill, said.items()))
    return {name: {"value": value, "is_configured": name not in said} for name, value in in_force.items()}


def _notifications(store: Store) -> Iterator[dict[str, Any]]:
    """Channels with messages that they have not taken, as :class:`connectors.notifications.outbox.Outbox` keeps them."""
    for name, channel in json.loads(store.notifications() or "{}").get("channels", {}).items():
        if channel["pending"] or channel["given_up"]:
            since_us = channel["since_us"]
            yield {
                "channel": name,
                "waiting": len(channel["pending"]),
                "given_up": channel["given_up"],
                "error": channel["error"],
                "since": time_text(since_us) if since_us else None,
            }


def _nulled(store: Store, history: Callable[[], History]) -> list[dict[str, Any]]:
    """Values that cannot be represented and stand as NULL in the targets, such as 0000-00-00, by column."""
    found = []
    for (table_id, column_id), count in sorted(store.nulled().items()):
        snapshots = [v.snapshot for v in history().versions_of(table_id) if v.snapshot is not None]
        holding = [s for s in snapshots if s.column_by_id(column_id) is not None]
        column = holding[-1].column_by_id(column_id) if holding else None
        table = str(holding[-1].name) if holding else f"table {table_id}"
        found.append({"table": table, "column": column.name if column else f"column {column_id}", "values": count})
    return found


def _nulled_defaults(
    config: PipelineConfig, store: Store, history: Callable[[], History], last: int
) -> Iterator[dict[str, str]]:
    """Defaults that cannot be represented, such as 0000-00-00, up to entry *last*: rows from before have NULL in their place.

    The log does not say how many rows there were.
    """
    from historian.schema.edits import AddColumn

    for number in store.columns_added('"initial":"' if _may_null_numbers(config) else "-00"):
        for table_id in [version.table_id for version in history().versions_by(number) if number <= last]:
            # A column's form depends on its first name, and so on all versions.
            chain = config.types.applied(history().versions_of(table_id))
            version = next(each for each in chain if each.number == number)
            for column in (edit.column for edit in version.edits if isinstance(edit, AddColumn)):
                if _became_null(column) and config.source.tables(version.name):
                    yield {
                        "table": str(version.name),
                        "column": column.name,
                        "default": column.initial or "",
                        "statement": version.entry.statement,
                    }


def _may_null_numbers(config: PipelineConfig) -> bool:
    """Whether other defaults than dates may be NULL."""
    values = [dict(rule.values) for rule in config.types.rules]
    return any(each.get(reason, FAIL) != FAIL for each in values for reason in ("int64_overflow", "invalid_boolean"))


def _became_null(column: Column) -> bool:
    from historian.values.texts import initial_value

    if not column.initial_known or column.initial is None:
        return False
    try:
        return initial_value(column) is None
    except ValueUnrepresentable:  # such a column stops its table, which says why
        return False
