"""Tells what happens to a run while it goes on, and its lineage, from threads of its own: the run waits for none of it."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

from connectors.monitoring.observer import Observer, Observers, WrittenPlan
from connectors.monitoring.stored import StoredTables
from connectors.monitoring.watching import Watch, watched
from connectors.notifications.channels import Channel, ChannelFailed, MessageRefused, lineage_channel, notify_channel
from connectors.notifications.effects import TargetEffects
from connectors.notifications.lineage import LineageTeller
from connectors.notifications.messages import STOPPED, Told, messages, run_ended
from connectors.notifications.outbox import Outbox
from connectors.tracking.recorded import recorded_store
from historian.errors import HistorianError

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from connectors.monitoring.picture import SchemaChange

__all__ = ["notified"]

_log = logging.getLogger(__name__)
_EVERY_S = 1.0
_LAST_S = 5.0
"""A run that ends waits so long for its last messages; what is left is sent by the next run."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_PAUSES = 20.0
"""A look is followed by a pause at least so many times as long."""


@contextmanager
def notified(config: PipelineConfig, *, is_stream: bool) -> Iterator[Observer]:
    """What is to be told of a run, whose observer this is, is told inside the ``with``.

    Args:
        is_stream: whether the run goes on until it is ended.

    Raises:
        ConfigError: the package is missing that events of lineage need.
    """
    written = _Written()
    with watched(config) as watch:
        notifier = _Notifier(config, watch, written, is_stream=is_stream)
        notifier.start()
        try:
            yield Observers(watch, written)
        except Exception as error:
            notifier.reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise
        finally:
            watch.stop()  # its last picture has all that the run did
            notifier.stop()


class _Written(Observer):
    """What its plans say of a run.

    Attributes:
        letters: values that were kept aside.
        first_version: of the history at the end of the first plan; ``last_version``: of the last one; None: none was written yet.
    """

    def __init__(self) -> None:
        self.letters = 0
        self.first_version: int | None = None
        self.last_version: int | None = None

    def written(self, written: WrittenPlan) -> None:
        """As of :class:`Observer`."""
        self.letters += written.dead_letters
        if self.first_version is None:
            self.first_version = written.plan.version
        self.last_version = written.plan.version


class _Notifier:
    """Looks at a run once a second, and gives what is new to the channels.

    Attributes:
        reason: the error with which the run ends; "": it ends without one.
    """

    def __init__(self, config: PipelineConfig, watch: Watch, written: _Written, *, is_stream: bool) -> None:
        self.reason = ""
        self._config = config
        notify, openlineage = config.notify, config.run.openlineage
        channels = [] if notify is None else [notify_channel(each) for each in notify.channels]
        self._lineage: LineageTeller | None = None
        if openlineage is not None:
            channels.append(lineage_channel(openlineage))
            self._lineage = LineageTeller(config, openlineage, is_stream=is_stream)
        self._channels = {each.name: each for each in channels}
        self._effects = TargetEffects(config)
        self._events = frozenset(event for each in channels for event in each.events)
        self._max_lag_s = math.inf if notify is None else notify.max_lag_s
        self._watch = watch
        self._written = written
        self._told_letters = 0
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._work, name="historian notify", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Looks a last time, and leaves channels some seconds for what they have not taken yet."""
        self._stops.set()
        self._thread.join(2 * _LAST_S)

    def _work(self) -> None:
        with ExitStack() as stack:
            tables = stack.enter_context(closing(StoredTables(self._config)))
            outbox: Outbox | None = None
            senders: list[_Sender] = []
            is_last, pause_s = False, _EVERY_S
            while not is_last:
                is_last = self._stops.wait(pause_s)
                begun_s = time.monotonic()
                # Before a run holds its lease, another one may have the messages.
                if outbox is None and self._watch.was_open:
                    outbox = self._opened(stack)
                    if outbox is not None:
                        senders = [_Sender(outbox, channel) for channel in self._channels.values()]
                if outbox is not None:
                    self._tell(outbox, tables, is_last=is_last)
                for sender in senders:
                    sender.wake()
                pause_s = max(_EVERY_S, _PAUSES * (time.monotonic() - begun_s))
            if outbox is None:
                self._tell_end()
            until_s = time.monotonic() + _LAST_S
            for sender in senders:
                sender.stop(until_s)
            if outbox is not None:
                _save(outbox)

    def _opened(self, stack: ExitStack) -> Outbox | None:
        try:
            store = recorded_store(self._config)
            return None if store is None else Outbox(stack.enter_context(closing(store)), self._channels)
        except HistorianError as error:
            _log.warning("nothing can be told for now: %s", error)
            return None

    def _tell(self, outbox: Outbox, tables: StoredTables, *, is_last: bool) -> None:
        try:
            tables.read()
        except HistorianError as error:  # that a store does not answer is told too, of what was known before
            _log.warning("the store cannot be read: %s", error)
            if outbox.told.entry < 0:
                return
        letters, picture = self._written.letters, self._watch.picture
        told = outbox.told
        if told.entry < 0:
            # What a history had before anyone was told is no news. What came behind the first plan is.
            first = self._written.first_version
            told = Told(entry=tables.last_number if first is None else first)
        new = letters - self._told_letters
        changes = tables.changes_behind(told.entry)
        effects = self._effects_of(changes, tables, told) if "schema_change" in self._events else {}
        found, told = messages(told, picture, changes, new, self._max_lag_s, effects, self._events)
        if is_last and self.reason and "run_ended" in self._events:
            ended, told = run_ended(told, picture, self.reason)
            found.append(ended)
        if self._lineage is not None:
            more, told = self._lineage.tell(told, tables, picture, self._written.last_version)
            found += more
            if is_last:
                more, told = self._lineage.end(told, picture, self.reason)
                found += more
        outbox.add(
            {name: [one for one in found if one.event in channel.events] for name, channel in self._channels.items()},
            told,
        )
        self._told_letters = letters
        _save(outbox)

    def _effects_of(
        self, changes: Sequence[SchemaChange], tables: StoredTables, told: Told
    ) -> dict[int, list[dict[str, Any]]]:
        """What targets do with each of the changes, by their numbers."""
        if not changes:
            return {}
        # What is found with the same look may have stopped behind them.
        stopped = {name: text for each, (text, _) in told.open.items() if (name := each.removeprefix(STOPPED)) != each}
        try:
            targets = tables.noted_targets()
        except HistorianError:
            targets = []
        return {each.number: self._effects.of(tables.history, each.number, targets, stopped) for each in changes}

    def _tell_end(self) -> None:
        """Tells of a run that ended before it held its lease: once, and kept nowhere."""
        ended, _ = run_ended(Told(), self._watch.picture, self.reason)
        for channel in self._channels.values() if self.reason else ():
            if ended.event in channel.events:
                try:
                    channel.send(ended)
                except ChannelFailed as error:
                    _log.warning("%s", error)


def _save(outbox: Outbox) -> None:
    try:
        outbox.save()
    except HistorianError as error:
        _log.warning("what is to be told cannot be kept for now: %s", error)


class _Sender:
    """Gives the messages of one channel to it, one after the other, again and again until it takes them."""

    def __init__(self, outbox: Outbox, channel: Channel) -> None:
        self._outbox = outbox
        self._name = name = channel.name
        self._channel = channel
        self._wakes = threading.Event()
        self._ends = threading.Event()
        self._until_s = math.inf
        self._thread = threading.Thread(target=self._work, name=f"historian notify {name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There may be messages."""
        self._wakes.set()

    def stop(self, until_s: float) -> None:
        """Ends once all are taken, or at that time of the monotonic clock."""
        self._until_s = until_s
        self._wakes.set()
        self._thread.join(max(0.0, until_s - time.monotonic()))
        self._ends.set()

    def _work(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._ends.is_set():
            self._wakes.wait()
            self._wakes.clear()
            if self._send_all():
                pause_s = _FIRST_PAUSE_S
                if self._until_s < math.inf:
                    return
                continue
            self._wakes.set()
            if time.monotonic() + pause_s > self._until_s or self._ends.wait(pause_s):
                return
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _send_all(self) -> bool:
        """Whether the channel has all messages now, but for those that it refuses."""
        while (message := self._outbox.first(self._name)) is not None and not self._ends.is_set():
            is_refused = False
            try:
                self._channel.send(message)
            except MessageRefused as error:
                is_refused = True
                _log.warning("%s", error)
            except Exception as error:  # noqa: BLE001 a channel that fails in a new way is tried again, too
                _log.warning("%s: %s", self._name, error if isinstance(error, ChannelFailed) else type(error).__name__)
                found = str(error.found) if isinstance(error, ChannelFailed) else type(error).__name__
                self._outbox.failed(self._name, found, round(time.time() * 1e6))
                return False
            self._outbox.taken(self._name, message.key, is_refused=is_refused)
        return True
