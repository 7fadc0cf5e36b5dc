"""The page's list of tables, and what happened to the connector as a whole, as JSON's types."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from connectors.page.lake import LakeFacts, RecordedTable
from connectors.page.phrases import lag_text, place_form
from historian.names import TableName

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from historian.history.history import History
    from historian.store import Store

__all__ = ["HistoryFacts", "not_up_to_date", "overview"]

_TARGET_FACTS = ("target", "kind", "plan", "position", "made", "behind", "writer", "stopped", "ended")
_COPY_STATES = {
    "copying": "copying",
    "repairing": "repairing",
    "waiting": "waiting",
    "ends with the next plan": "copying",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFacts:
    """What is kept of a history: it is large once all its versions were read.

    Attributes:
        horizon: before which position versions were forgotten; "": none were.
        gaps: from where, to where, and why the log was not read.
    """

    last_number: int
    horizon: str
    gaps: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, history: History) -> HistoryFacts:
        """Those of *history*."""
        return cls(
            last_number=history.last_number,
            horizon="" if history.horizon is None else str(history.horizon.position),
            gaps=tuple((str(gap.start), str(gap.end), gap.reason) for gap in history.gaps),
        )


def overview(
    config: PipelineConfig,
    store: Store | None,
    history: HistoryFacts | None,
    state: Mapping[str, Any],
    tables: Sequence[tuple[int, Mapping[str, Any]]],
    lake: LakeFacts,
) -> dict[str, Any]:
    """All of the page but timelines and repairs.

    Args:
        state: as :func:`connectors.monitoring.state.connector_state` gives it.
        tables: captured ones: id, and what is known of its schema.
        lake: what it tells without Spark.
    """
    last = state["last_plan"]
    targets = _targets(store, state, lake)
    standing = _Standing(state, targets, {table_id for table_id, _ in tables})
    rows = [
        {"id": table_id, **facts, **standing.of(table_id, facts), **_decided(lake.tables.get(table_id))}
        for table_id, facts in tables
    ]
    return {
        "connector": config.name,
        "source": f"{config.source.flavor} {config.source.place}",
        "sinks": [f"{sink.type} {sink.place}" for sink in config.sinks],
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "tracked": _place(state["tracked"]),
        "plan": None if last is None else {"number": last["number"], "made": last["made"], "end": _place(last["end"])},
        "lag": _lag(state["lag"]),
        "lag_known": "unknown" not in state["lag"],
        "kept_s": state["log_kept_s"] if isinstance(state["log_kept_s"], int) else None,
        "left_s": state["log_left_s"],
        "entries": 0 if history is None else history.last_number,
        "horizon": "" if history is None else history.horizon,
        "tables": rows,
        "warnings": list(state["warnings"]),
        "notes": [f"tries again: {state['retry']}"] if state["retry"] else [],
        "stopped": [row for row in state["stopped"] if config.source.tables(_name(row["table"]))],
        "gaps": [] if history is None else list(history.gaps),
        "copies": list(state["copies"]),
        "cut": _cut(targets),
    }


def not_up_to_date(state: Mapping[str, Any], targets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Names of the tables that are stopped, are copied, or have a target that is behind, some of them more than once.

    Args:
        state: as of :func:`overview`; *targets*: its.
    """
    newest = max((target["plan"] for target in targets), default=0)
    yield from (row["table"] for row in state["stopped"])
    yield from (row["table"] for row in state["copies"] if row["state"] != "done")
    yield from (row["table"] for row in targets if row["stopped"] or (not row["ended"] and row["plan"] < newest))


class _Standing:
    """How each table stands, by its name, which is its last one."""

    def __init__(
        self, state: Mapping[str, Any], targets: Mapping[str, list[dict[str, Any]]], table_ids: Collection[int]
    ) -> None:
        whose = {target["table_id"] for rows in targets.values() for target in rows}
        self._of_none = whose - {*table_ids}  # not known, or as of a table that others are shards of
        self._stopped = {row["table"]: row["reason"] for row in state["stopped"]}
        self._copies = {row["table"]: row for row in state["copies"]}
        self._targets = targets
        self._newest = max((target["plan"] for rows in targets.values() for target in rows), default=0)

    def of(self, table_id: int, facts: Mapping[str, Any]) -> dict[str, Any]:
        name = facts["name"]
        # Of several tables that had the name the lake knows whose each target is; else those of former ones have ended.
        is_gone = facts["schema"] == "gone"
        mine = [
            target
            for target in self._targets.get(name, [])
            if (is_gone or not target["ended"])
            and (target["table_id"] == table_id or target["table_id"] in self._of_none)
        ]
        state, reason = self._state(facts, mine)
        behind = [target["behind"] for target in mine if target["behind"] is not None and not target["ended"]]
        known = [target["bytes"] for target in mine if target["bytes"] is not None]
        return {
            "state": state,
            "reason": reason,
            "behind": max(behind, default=None),
            "bytes": sum(known) if known else None,
            "targets": mine,
        }

    def _state(self, facts: Mapping[str, Any], mine: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
        name = facts["name"]
        stopped = self._stopped.get(name) or next((target["stopped"] for target in mine if target["stopped"]), "")
        if stopped:
            return "stopped", stopped
        if facts["schema"] == "gone":
            return "dropped", ""
        if facts["schema"] != "known":
            return "unknown", facts["schema"]
        copy = self._copies.get(name)
        if copy is not None and copy["state"] in _COPY_STATES:
            return _COPY_STATES[copy["state"]], ""
        if not mine:
            return "no targets", ""
        return (
            "behind" if any(target["plan"] < self._newest for target in mine if not target["ended"]) else "up to date"
        ), ""


def _decided(recorded: RecordedTable | None) -> dict[str, Any]:
    return {
        "decided_upto": 0 if recorded is None else recorded.upto,
        "decisions": [] if recorded is None else list(recorded.decisions),
    }


def _targets(store: Store | None, state: Mapping[str, Any], lake: LakeFacts) -> dict[str, list[dict[str, Any]]]:
    """Targets by table.

    ``holds``: the last entry of the history that what a target holds was written under; None: not known any more. Of a stopped one
    ``stopped_in`` is the plan in which it did, and ``stopped_upto`` the last entry that this plan knew.
    """
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    plans = _Plans(store)
    for row in state["targets"] if isinstance(state["targets"], list) else ():
        size = lake.size(row)
        facts = {name: row[name] for name in _TARGET_FACTS}
        facts |= {name: size.get(name) for name in ("version", "files", "bytes", "rows")}
        recorded = lake.table(row)
        facts["table_id"] = None if recorded is None else recorded.table_id
        # What a stopped target is said to hold is that nothing of later plans comes to it.
        stopped_in = recorded.stopped_in if recorded is not None and row["stopped"] else 0
        holds = plans.version(plans.previous(stopped_in) if stopped_in else row["plan"])
        facts |= {"holds": holds, "stopped_in": stopped_in, "stopped_upto": plans.version(stopped_in)}
        found[row["table"]].append(facts)
    return found


class _Plans:
    """The few plans that targets stand at, each read once."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._read: dict[int, tuple[int, int] | None] = {0: (0, 0)}

    def version(self, number: int | None) -> int | None:
        """The last entry that a plan knew; None: the plan is forgotten."""
        found = None if number is None else self._of(number)
        return None if found is None else found[0]

    def previous(self, number: int) -> int | None:
        found = self._of(number)
        return None if found is None else found[1]

    def _of(self, number: int) -> tuple[int, int] | None:
        if number not in self._read:
            plan = None if self._store is None else self._store.plan(number)
            self._read[number] = None if plan is None else (plan.version, plan.previous)
        return self._read[number]


def _cut(targets: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any] | None:
    """The newest position that all targets hold which are still written; None: there are none."""
    alive = [target for rows in targets.values() for target in rows if not target["stopped"] and not target["ended"]]
    first = min(alive, key=lambda target: target["plan"], default=None)
    left_out = sorted(
        target["target"] or table
        for table, rows in targets.items()
        for target in rows
        if target["stopped"] or target["ended"]
    )
    if first is None:
        return None
    return {"plan": first["plan"], "position": first["position"], "targets": len(alive), "left_out": left_out}


def _lag(lag: Mapping[str, Any]) -> str:
    if "unknown" in lag:
        return f"not known: {lag['unknown']}"
    return lag_text(lag) or "not known: the log has moved on to another file"


def _place(position: Mapping[str, str] | None) -> str:
    return "" if position is None else place_form(position)


def _name(table: str) -> TableName:
    database, _, name = table.partition(".")
    return TableName(database, name)
