"""Tells what happens to a run while it goes on, from threads of its own: the run waits for none of it."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from connectors.monitoring.observer import Observer, Observers, WrittenPlan
from connectors.monitoring.stored import StoredTables
from connectors.monitoring.watching import Watch, watched
from connectors.notifications.channels import ChannelFailed, channel_name, send
from connectors.notifications.messages import Told, messages, run_ended
from connectors.notifications.outbox import Outbox
from connectors.tracking.recorded import recorded_store
from historian.errors import HistorianError

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from connectors.config.settings import ChannelConfig, NotifyConfig

__all__ = ["notified"]

_log = logging.getLogger(__name__)
_EVERY_S = 1.0
_LAST_S = 5.0
"""A run that ends waits so long for its last messages; what is left is sent by the next run."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0


@contextmanager
def notified(config: PipelineConfig, notify: NotifyConfig) -> Iterator[Observer]:
    """What is to be told of a run, whose observer this is, is told inside the ``with``."""
    letters = _DeadLetters()
    with watched(config) as watch:
        notifier = _Notifier(config, notify, watch, letters)
        notifier.start()
        try:
            yield Observers(watch, letters)
        except HistorianError as error:
            notifier.reason = str(error).splitlines()[0]
            raise
        finally:
            watch.stop()  # its last picture has all that the run did
            notifier.stop()


class _DeadLetters(Observer):
    """Counts values that were kept aside."""

    def __init__(self) -> None:
        self.count = 0

    def written(self, written: WrittenPlan) -> None:
        """As of :class:`Observer`."""
        self.count += written.dead_letters


class _Notifier:
    """Looks at a run once a second, and gives what is new to the channels.

    Attributes:
        reason: the error with which the run ends; "": it ends without one.
    """

    def __init__(self, config: PipelineConfig, notify: NotifyConfig, watch: Watch, letters: _DeadLetters) -> None:
        self.reason = ""
        self._config = config
        self._channels = {channel_name(each): each for each in notify.channels}
        self._max_lag_s = notify.max_lag_s
        self._watch = watch
        self._letters = letters
        self._told_letters = 0
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._work, name="historian notify", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Looks a last time, and leaves channels some seconds for what they have not taken yet."""
        self._stops.set()
        self._thread.join()

    def _work(self) -> None:
        with ExitStack() as stack:
            tables = stack.enter_context(closing(StoredTables(self._config)))
            outbox: Outbox | None = None
            senders: list[_Sender] = []
            is_last = False
            while not is_last:
                is_last = self._stops.wait(_EVERY_S)
                try:
                    if outbox is None and (store := recorded_store(self._config)) is not None:
                        outbox = Outbox(stack.enter_context(closing(store)), self._channels)
                        senders = [_Sender(outbox, name, channel) for name, channel in self._channels.items()]
                    if outbox is not None:
                        self._tell(outbox, tables, is_last=is_last)
                except HistorianError as error:  # the store does not answer; a later look finds what is new
                    _log.warning("nothing can be told for now: %s", error)
                for sender in senders:
                    sender.wake()
            until_s = time.monotonic() + _LAST_S
            for sender in senders:
                sender.stop(until_s)

    def _tell(self, outbox: Outbox, tables: StoredTables, *, is_last: bool) -> None:
        tables.read()
        # What a history had before anyone was told is no news.
        told = outbox.told if outbox.told.entry >= 0 else Told(entry=tables.last_number)
        letters, picture = self._letters.count, self._watch.picture
        new = letters - self._told_letters
        found, told = messages(told, picture, tables.changes_behind(told.entry), new, self._max_lag_s)
        if is_last and self.reason:
            found.append(run_ended(picture, self.reason))
        outbox.add(
            {name: [one for one in found if one.event in channel.events] for name, channel in self._channels.items()},
            told,
        )
        self._told_letters = letters


class _Sender:
    """Gives the messages of one channel to it, one after the other, again and again until it takes them."""

    def __init__(self, outbox: Outbox, name: str, channel: ChannelConfig) -> None:
        self._outbox = outbox
        self._name = name
        self._channel = channel
        self._wakes = threading.Event()
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

    def _work(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            self._wakes.wait()
            self._wakes.clear()
            try:
                while (message := self._outbox.first(self._name)) is not None:
                    send(self._channel, message)
                    self._outbox.taken(self._name, message.key)
                    pause_s = _FIRST_PAUSE_S
            except HistorianError as error:
                if isinstance(error, ChannelFailed):
                    self._note(error)
                self._wakes.set()
                if time.monotonic() + pause_s > self._until_s:
                    return
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            else:
                if self._until_s < math.inf:
                    return

    def _note(self, error: ChannelFailed) -> None:
        _log.warning("%s", error)
        try:
            self._outbox.failed(self._name, str(error.found), round(time.time() * 1e6))
        except HistorianError as why:
            _log.warning("that cannot be noted: %s", why)
