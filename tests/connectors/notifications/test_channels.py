"""Channels and their ways to fail: each is an error that says nothing secret, and a sender goes on behind it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.config.settings import ChannelConfig, OpenLineageConfig
from connectors.monitoring.picture import RunPicture
from connectors.notifications import notifier
from connectors.notifications.channels import (
    Channel,
    ChannelFailed,
    MessageRefused,
    channel_name,
    lineage_channel,
    notify_channel,
)
from connectors.notifications.messages import Message, Told, run_ended
from connectors.notifications.outbox import Outbox
from historian.store import Store

MESSAGE, _ = run_ended(Told(), RunPicture(taken_us=1, connector="shop", source="here", sinks=()), "no lease")


@contextmanager
def _answering(answer: bytes) -> Iterator[str]:
    """The address of an endpoint that says just that."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/secret-path"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "answer, kind",
    [
        (b"no HTTP at all\r\n\r\n", ChannelFailed),
        (b"", ChannelFailed),
        (b"HTTP/1.1 503 Busy\r\n\r\n", ChannelFailed),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", ChannelFailed),
        (b"HTTP/1.1 413 Large\r\n\r\n", MessageRefused),
    ],
)
def test_a_webhook_that_does_not_take_a_message_says_so_without_its_address(
    answer: bytes, kind: type[Exception]
) -> None:
    with _answering(answer) as url, pytest.raises(ChannelFailed) as raised:
        notify_channel(ChannelConfig(webhook=url)).send(MESSAGE)
    assert (type(raised.value), "secret-path" in str(raised.value)) == (kind, False)


@pytest.mark.parametrize(
    "command, found",
    [
        (("/nonexistent/program", "secret"), "No such file"),
        (("sh", "-c", "printf '\\377' >&2; exit 3", "secret"), "ended with 3"),
        (("sh", "-c", "sleep 60", "secret"), "no end within"),
    ],
)
def test_a_command_that_fails_says_so_without_its_arguments(
    command: tuple[str, ...], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.notifications.channels._COMMAND_TIMEOUT_S", 0.2)
    channel = ChannelConfig(command=command)
    with pytest.raises(ChannelFailed, match=found) as raised:
        notify_channel(channel).send(MESSAGE)
    assert "secret" not in f"{raised.value}{channel!r}"


def test_channels_that_differ_in_anything_have_names_of_their_own() -> None:
    at = ChannelConfig(webhook="https://events.example/v2", template="pagerduty", routing_key="a")
    others = (
        replace(at, routing_key="b"),
        replace(at, events=("lag",)),
        ChannelConfig(command=("curl", "a")),
        ChannelConfig(command=("curl", "b")),
        ChannelConfig(),
    )
    names = {channel_name(each) for each in (at, *others)}
    assert len(names) == 6
    assert not any("v2" in name for name in names)


def test_many_words_have_the_mark_of_a_channels_secret_and_a_name_of_lineage_has_none() -> None:
    keys = [ChannelConfig(webhook="https://h/", template="pagerduty", routing_key=key) for key in ("summer", "winter")]
    marks = [channel_name(each).rpartition("(")[2].removesuffix(")") for each in keys]
    assert marks[0][:4] == marks[1][:4], "what is no secret"
    assert [8, 8] == [len(mark) for mark in marks], "more digits tell which of many words it is"

    names = {lineage_channel(OpenLineageConfig(url="https://h/v1", api_key=key)).name for key in ("summer", "winter")}
    assert {"openlineage at h"} == names


def test_a_sender_goes_on_behind_errors_and_gives_up_what_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[Exception | None] = [UnicodeError("new"), ChannelFailed("busy"), MessageRefused("large"), None]
    taken: list[str] = []

    def given(message: Message) -> None:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome
        taken.append(message.key)

    monkeypatch.setattr(notifier, "_FIRST_PAUSE_S", 0.01)
    with closing(Store.open(f"sqlite:///{tmp_path}/store.db")) as store:
        outbox = Outbox(store, ["one"])
        outbox.add({"one": [replace(MESSAGE, key="first"), replace(MESSAGE, key="second")]}, Told(entry=3))
        outbox.save()
        assert "first" in store.notifications()
        sender = notifier._Sender(outbox, Channel(name="one", events=(), send=given))
        sender.wake()
        sender.stop(notifier.time.monotonic() + 30)
        outbox.save()
        assert (["second"], []) == (taken, outcomes)
        assert Outbox(store, ["one"]).told == Told(entry=3)
        assert '"given_up": 1' in store.notifications()
        assert "first" not in store.notifications()
