"""What is told, and when: by what has changed from one look at a run to the next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from connectors.config.settings import NOTIFY_EVENTS
from connectors.monitoring.picture import RunPicture, SchemaChange, TableState

__all__ = ["STOPPED", "Message", "Told", "messages", "run_ended"]

STOPPED = "table_stopped:"
"""How the incident of a table begins that is stopped."""

_SEVERITIES = {
    "schema_change": "info",
    "repair": "info",
    "dead_letters": "warning",
    "lag": "warning",
    "retention": "warning",
    "retry": "warning",
}
_MOST_CHARACTERS = 10_000
_MOST_CHANGES = 100
_ALONE = ("lag", "retention", "retry", "run_ended")
"""Of these there is one incident at a time."""
_GONE_PART = 0.5
"""A lag counts as gone below this part of the limit, so that one around it is told once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One thing that is told.

    Attributes:
        key: the same whenever the same thing is told again, so that receivers can drop repetitions.
        incident: what it begins or ends; the same for both.
        event: of :data:`connectors.config.settings.NOTIFY_EVENTS`; ``severity``: info, warning or error; ``is_over``: it ends what an earlier message told.
        table: concerned; "": none alone.
        text: one sentence; ``details``: facts by name.
    """

    key: str
    incident: str
    event: str
    connector: str
    severity: str
    text: str
    time_us: int
    table: str = ""
    is_over: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """As JSON's types, from which the message can be made again."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was told up to now, so that it is not told anew.

    Attributes:
        entry: number of the last schema change; -1: nothing was told yet.
        open: incident to the text with which it began, and when, UTC microseconds.
        run: id of a run whose begin was told as lineage, and whose end was not; "": there is none.
    """

    entry: int = -1
    open: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    run: str = ""


def messages(
    told: Told,
    picture: RunPicture,
    changes: Sequence[SchemaChange],
    dead_letters: int,
    max_lag_s: float,
    effects: Mapping[int, Sequence[Mapping[str, Any]]] = MappingProxyType({}),
    events: Collection[str] = NOTIFY_EVENTS,
) -> tuple[list[Message], Told]:
    """What is to be told now, and what has been told then.

    Args:
        changes: behind ``told.entry``, the oldest first.
        dead_letters: how many came since the last look.
        max_lag_s: from which lag on that is told.
        effects: what targets do with each change, by its number (:class:`connectors.notifications.effects.TargetEffects`).
        events: that somebody takes. What goes on meanwhile of others is told once somebody does.
    """
    found = [_of_change(picture, change, effects.get(change.number, ())) for change in changes]
    now = {
        incident: told.open.get(incident, (text, picture.taken_us))
        for incident, text in _open(told, picture, max_lag_s)
        if _event(incident) in events
    }
    for incident, (text, since_us) in now.items():
        if incident not in told.open:
            found.append(_message(picture, incident, f"{since_us}", text))
    for incident, (text, since_us) in told.open.items():
        if incident in now:
            continue
        if _event(incident) in events and _is_known(incident, picture):
            over = _message(picture, incident, f"{since_us}:over", f"over: {text}")
            found.append(replace(over, is_over=True, severity="info"))
        else:
            now[incident] = (text, since_us)
    if dead_letters:
        text = f"{dead_letters} values were kept aside as dead letters, up to plan {picture.plan}"
        found.append(_message(picture, "dead_letters:", f"{picture.taken_us}", text))
    return found, replace(told, entry=max([told.entry, *(change.number for change in changes)]), open=now)


def run_ended(told: Told, picture: RunPicture, reason: str) -> tuple[Message, Told]:
    """What is told where a run ends with an error, which is over once another one goes on."""
    text = f"the run ended: {reason}"[:_MOST_CHARACTERS]
    message = _message(picture, "run_ended:", f"{picture.taken_us}", text)
    return message, replace(told, open={**told.open, "run_ended:": (text, picture.taken_us)})


def _open(told: Told, picture: RunPicture, max_lag_s: float) -> Iterator[tuple[str, str]]:
    """What is the case now and has an end: its incident and a sentence."""
    for table in picture.tables:
        if table.state == TableState.STOPPED:
            yield f"{STOPPED}{table.name}", f"{table.name} stopped: {table.reason}"
        if table.state == TableState.REPAIRING:
            yield f"repair:{table.name}", f"{table.name} is compared with the source, and gets what differs"
    if picture.lag_s > max_lag_s * (_GONE_PART if "lag:" in told.open else 1.0):
        yield "lag:", f"the targets are {picture.lag_s:.0f} s behind, more than {max_lag_s:g} s"
    if picture.warnings:
        yield "retention:", "; ".join(picture.warnings)
    if picture.stage == "tries again":
        yield "retry:", "; ".join(("an attempt failed and is made again", *picture.notes))


def _event(incident: str) -> str:
    return incident.partition(":")[0]


def _is_known(incident: str, picture: RunPicture) -> bool:
    """Whether a look that does not find an incident shows that it is over: sinks say what they have stopped with a plan."""
    if incident in ("retry:", "run_ended:"):
        return picture.stage == "runs"
    return picture.stage in ("runs", "has ended") and picture.plan > 0


def _of_change(picture: RunPicture, change: SchemaChange, effects: Sequence[Mapping[str, Any]]) -> Message:
    text = f"{', '.join(change.tables)}: {change.statement}"[:_MOST_CHARACTERS]
    message = _message(picture, "schema_change:", f"{change.number}", text)
    did = {
        "changes": [asdict(each) for each in change.changes[:_MOST_CHANGES]],
        "tables": change.tables[:_MOST_CHANGES],
        "targets": [dict(each) for each in effects[:_MOST_CHANGES]],
    }
    severity = "warning" if any(each["stopped"] is not None for each in effects) else message.severity
    return replace(message, table=change.tables[0], time_us=change.time_us, details=did, severity=severity)


def _message(picture: RunPicture, incident: str, mark: str, text: str) -> Message:
    event, _, about = incident.partition(":")
    return Message(
        key=f"{picture.connector}:{incident}:{mark}",
        incident=f"{picture.connector}:{incident}"
        if about or event in _ALONE
        else f"{picture.connector}:{incident}{mark}",
        event=event,
        connector=picture.connector,
        severity=_SEVERITIES.get(event, "error"),
        text=text,
        time_us=picture.taken_us,
        table=about,
        details={"plan": picture.plan, "position": picture.position, "lag_s": round(picture.lag_s, 1)},
    )
