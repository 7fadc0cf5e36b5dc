"""Options of the data source, typed and checked, and the configuration that they name or are."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectors.config import BinlogFilesSource, KafkaSource, ServerSource, load_config, parse_config, parse_value
from connectors.tracking.first_schema import begins_with_copies, place_of
from historian.errors import ConfigError, PositionUnknown, SourceError
from historian.history.prefix import covers
from historian.positions import parse_position

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from connectors.readers.base import Reader
    from connectors.tracking.tracker import Tracker
    from historian.plans.plans import Plan
    from historian.positions import LogPosition

__all__ = ["OPTIONS", "SourceOptions", "source_options"]

OPTIONS = (
    "config",
    "config_text",
    "table",
    "name",
    "store",
    "schema_at",
    "on_schema_change",
    "columns",
    "dropped",
    "absent",
    "from",
    "to",
    "until",
    "after_plan",
    "path",
)
"""Names of all options but those of the configuration's own keys."""

_SECTIONS = ("source", "history", "run", "types")
_CHANGES = ("restart", "fail", "rescue")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NAMELESS = "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The source's options, checked.

    Attributes:
        config: path of the configuration's file; "" where *document* is it.
        document: the configuration itself: YAML, or a mapping of its keys.
        schema_at: "earliest", "latest", or a position.
        on_schema_change: "restart", "fail" or "rescue".
        columns: names of the typed rows' columns; None: all.
    """

    config: str = ""
    document: str | Mapping[str, Any] | None = None
    table: str | None = None
    name: str | None = None
    store: str | None = None
    schema_at: str = "latest"
    on_schema_change: str = "restart"
    columns: tuple[str, ...] | None = None
    dropped: bool = False
    missing: bool = False
    begin: str | None = None
    end: str | None = None
    until: str | None = None
    after_plan: int = 0

    def configuration(self) -> PipelineConfig:
        """The configuration, read anew. References in it are filled in by the process that asks."""
        if self.document is None:
            return load_config(self.config)
        return parse_config(self.document, file=Path("config_text" if isinstance(self.document, str) else "options"))

    def reader(self) -> Reader:
        """A reader of the configured log."""
        from connectors.tracking.sources import make_reader

        return make_reader(self.configuration().source)

    def tracker(self, *, ephemeral: bool = False, start: str | None = None) -> Tracker:
        """A tracker on the configured store, or on one in memory for a batch read; *start*: where it begins, if not ``from``."""
        from connectors.tracking.sources import make_tracker
        from historian.store import Store

        url = self.store if self.store is not None else "sqlite://" if ephemeral else None
        config = self.configuration()
        if isinstance(config.source, KafkaSource) and config.source.normalize is not None:
            raise ConfigError(
                "this source reads topics as they are, and has no state from which former rows come",
                problems=("expected no normalisation, or a lake that `historian run` writes @ $.source.normalize",),
                where=str(config.path),
            )
        begin = config.source.log_start if self.begin is None else self.begin
        begin = begin if start is None else start
        if begins_with_copies(begin):
            raise ConfigError(
                "this source reads the log alone, and copies no rows that tables hold already",
                problems=(
                    f"expected the option from, or changes_only, earliest or a position @ $.source.start (got {begin})",
                ),
                where=str(config.path),
            )
        store = Store.open(config.history.store if url is None else url)
        if any(not progress.is_done for progress in store.copies().values()):
            store.close()
            raise ConfigError(
                "the store is a connector's that copies tables: this source would read their changes before their rows",
                problems=("expected the option store with another one @ $.store",),
                where=str(config.path),
            )
        return make_tracker(config, store=store, start=begin)

    @contextmanager
    def batch(self) -> Iterator[tuple[Tracker, int, list[Plan]]]:
        """A tracker, the plans of a batch that it has made, and before them the number of the timeline entry that they begin behind.

        The log before ``from`` is passed over for its schemas, where nothing but its statements says which are in force there.
        """
        config, limit_bytes = self.configuration(), self.batch_bytes()
        has_place = self.begin not in (None, "earliest", "latest") and not config.source.schema
        passed = self.begin if has_place and isinstance(config.source, BinlogFilesSource) else None
        tracker = self.tracker(ephemeral=True, start=None if passed is None else config.source.log_start)
        try:
            if passed is not None:
                place_of(tracker.reader, passed)  # A log that does not hold it would be passed over to its end.
            if has_place and isinstance(config.source, ServerSource) and self._lacks_schemas(tracker):
                tracker.close()
                passed, tracker = self.begin, self.tracker(ephemeral=True, start="earliest")
            number = 0
            for plan in tracker.plans_until(passed, limit_bytes=limit_bytes) if passed is not None else ():
                number = plan.number
            begin = tracker.history.first_number if number == 0 else tracker.stored(number).version
            if self.end is None:
                tracker.stop_at_present_end()
            else:
                _check_held(tracker.reader, self.end)
            found = []
            while (following := tracker.plan_after(number, limit_bytes=limit_bytes, until=self.end)) is not None:
                found.append(following)
                number = following.number
            yield tracker, begin, found
        finally:
            tracker.close()

    def _lacks_schemas(self, tracker: Tracker) -> bool:
        """Whether the server cannot say what a table that is read was where *tracker* begins: statements behind that changed it."""
        catalog = tracker.history.catalog_at(tracker.history.first_number)
        if self.table is None:
            return any(tracker.captured(name) for name in catalog.unknown_tables)
        # What is called so by now may have had another name there.
        return bool(catalog.unknown_tables) and all(str(name) != self.table for name in catalog.tables)

    def batch_bytes(self) -> int:
        """How much of the log one plan takes at most."""
        return self.configuration().run.max_batch_bytes


def _check_held(reader: Reader, text: str) -> None:
    """Raises :class:`SourceError` where the log does not hold the position *text*: a batch would read to the log's end for it."""
    wanted, end = parse_position(text, reader.flavor), reader.end()
    with suppress(PositionUnknown):  # a file of another log
        if covers(end, wanted) or _is_behind_last(reader, end, wanted):
            return
    raise SourceError(
        'the log does not hold the position of the option "to"',
        where=text,
        expected="a position up to the log's end",
        found=f"a log that ends at {end}{f', which is {end.at}' if wanted.file and end.gtids else ''}",
        next_step='name a position that the log holds; without "to" a batch ends where the log does',
    )


def _is_behind_last(reader: Reader, end: LogPosition, wanted: LogPosition) -> bool:
    """Whether *wanted* lies among events behind the log's last transaction, as the one that closes a file."""
    return wanted.file == end.file != "" and wanted.offset - end.offset <= reader.waiting_bytes(end)


def source_options(options: Mapping[str, str], *, streaming: bool | None = None) -> SourceOptions:
    """The *options* of a batch or, *streaming*, of a stream; None: of which of the two Spark has not said yet.

    Raises:
        ConfigError: with every problem, each as ``reason @ $.option (got value)``.
    """
    given = {key.lower(): value for key, value in options.items()}
    keys = {key: value for key, value in given.items() if key.partition(".")[0] in _SECTIONS and "." in key}
    problems = _named_configurations(given, keys)
    problems += [_unknown(key) for key in sorted(set(given) - set(OPTIONS) - set(keys))]
    if streaming is not None:
        problems += _stream_problems(given, keys) if streaming else _batch_problems(given)
    problems += _value_problems(given)
    columns = tuple(name.strip() for name in given["columns"].split(",")) if "columns" in given else None
    if columns is not None and ("" in columns or len(set(columns)) < len(columns)):
        problems.append(f"expected names with commas between, each once @ $.columns (got {given['columns']!r})")
    if problems:
        raise ConfigError('options of format("historian") cannot be used', problems=tuple(problems))
    return SourceOptions(
        config=given.get("config", ""),
        document=None if given.get("config") else given.get("config_text") or _document(keys),
        table=given.get("table"),
        name=given.get("name"),
        store=given.get("store"),
        schema_at=given.get("schema_at", "latest"),
        on_schema_change=given.get("on_schema_change", _CHANGES[0]).lower(),
        columns=columns,
        dropped=given.get("dropped", "false").lower() == "true",
        missing=given.get("absent", "false").lower() == "true",
        begin=given.get("from"),
        end=given.get("to"),
        until=given.get("until"),
        after_plan=int(given.get("after_plan", "0")),
    )


def _named_configurations(given: Mapping[str, str], keys: Mapping[str, str]) -> list[str]:
    """What is wrong with where the configuration stands: in a file, in a text, or in options of its keys' names."""
    ways = [name for name in ("config", "config_text") if given.get(name)] + ["source.…"] * bool(keys)
    if not ways:
        return ['missing @ $.config (say .option("config", "pipeline.yaml"), config_text, or source.type and the like)']
    if len(ways) > 1:
        return [f"expected one of them, the configuration stands in {' and '.join(ways)} @ $.{ways[1]}"]
    return []


def _batch_problems(given: Mapping[str, str]) -> list[str]:
    """What says nothing to a batch, and would be taken for a bound; with a name the batch would have the schema of that stream."""
    instead = {"until": "say to", "after_plan": "say from", "name": "a batch has none"}
    return [f"expected with readStream only @ $.{key} ({instead[key]})" for key in instead if key in given]


def _stream_problems(given: Mapping[str, str], keys: Mapping[str, str]) -> list[str]:
    """What a stream needs besides: a name where it is typed, and a store that outlives it."""
    problems = ["expected with read only @ $.to (say until)"] if "to" in given else []
    if given.get("table") and not given.get("name"):
        problems.append("missing @ $.name (a typed stream remembers its schema under a name)")
    has_store = given.get("config") or "store" in given or "history.store" in keys
    if not has_store and not _names_store(given.get("config_text", "")):
        problems.append("missing @ $.store (a stream keeps its plans there: the URL of a store)")
    return problems


def _names_store(text: str) -> bool:
    """Whether a configuration names its store. One that cannot be read is told of where it is read, with all that is wrong."""
    document = parse_value(text)
    if text and not isinstance(document, dict):
        return True
    history = (document or {}).get("history")
    return isinstance(history, dict) and "store" in history


def _value_problems(given: Mapping[str, str]) -> list[str]:
    """What is wrong with single values."""
    problems = []
    if _CONTROL.search(given.get("name", "")):
        problems.append(f"expected a name without control characters @ $.name (got {given['name']!r})")
    if not given.get("after_plan", "0").isdigit():
        problems.append(f"not a number @ $.after_plan (got {given['after_plan']!r})")
    problems += [
        f"neither true nor false @ $.{key} (got {given[key]!r})"
        for key in ("absent", "dropped")
        if given.get(key, "false").lower() not in ("true", "false")
    ]
    if given.get("on_schema_change", _CHANGES[0]).lower() not in _CHANGES:
        problems.append(f"expected {', '.join(_CHANGES)} @ $.on_schema_change (got {given['on_schema_change']!r})")
    problems += [
        f"expected with the option table only @ $.{key}"
        for key in ("schema_at", "columns", "dropped", "absent")
        if key in given and not given.get("table")
    ]
    return problems


def _unknown(key: str) -> str:
    near = difflib.get_close_matches(key, OPTIONS, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(OPTIONS)}, and source.host and the like"
    return f"unknown option @ $.{key} ({hint})"


def _document(keys: Mapping[str, str]) -> dict[str, Any]:
    """The configuration whose keys are options: ``source.host`` and the like, with values as they would stand in YAML."""
    document: dict[str, Any] = {"name": _NAMELESS}
    for key, text in sorted(keys.items()):
        *parents, last = key.split(".")
        place = document
        for parent in parents:
            if not isinstance(place.get(parent), dict):
                place[parent] = {}
            place = place[parent]
        place[last] = parse_value(text)
    return document
