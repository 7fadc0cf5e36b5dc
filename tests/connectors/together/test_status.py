"""The status of many connectors: each is asked, several at a time, and who is refused by one is refused by all."""

from __future__ import annotations

import json
import threading
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from connectors.monitoring.endpoint import Answer
from connectors.together.endpoint import Together

AT_ONCE = 8


class Asked:
    """Connectors whose answers wait until as many are asked as may be at once."""

    def __init__(self, count: int) -> None:
        self._turn = threading.Lock()
        self._all_there = threading.Barrier(AT_ONCE, timeout=60)
        self._inside = 0
        self.most = 0
        self.together = Together({f"c{number}": self._watched(number) for number in range(count)})

    def _watched(self, number: int) -> Any:
        def answer(path: str, accept: str, authorization: str, host: str) -> Answer:
            assert ("/status", "text/json", "", "localhost") == (path, accept, authorization, host)
            self._wait()
            return Answer.of({"plan": number})

        return SimpleNamespace(
            pages=SimpleNamespace(answer=answer, health=None), own=CollectorRegistry(), observer=None
        )

    def _wait(self) -> None:
        with self._turn:
            self._inside += 1
            self.most = max(self.most, self._inside)
        self._all_there.wait()
        with self._turn:
            self._inside -= 1
        self._all_there.wait()


def test_the_status_of_many_connectors_is_asked_of_several_at_a_time_and_of_no_more() -> None:
    asked = Asked(3 * AT_ONCE)
    asked.together.ended("c2", "no such server")

    answer = asked.together.answer("/status", "text/json", "", "localhost")

    found = json.loads(answer.body)["connectors"]
    assert [(f"c{number}", number) for number in range(3 * AT_ONCE)] == [
        (name, each["plan"]) for name, each in found.items()
    ]
    assert {"state": "failed", "failure": "no such server", "plan": 2} == found["c2"]
    assert AT_ONCE == asked.most


def test_who_is_refused_the_status_of_one_connector_is_refused_that_of_all() -> None:
    refused = Answer.of({"error": "no"}, HTTPStatus.UNAUTHORIZED)
    pages = SimpleNamespace(answer=lambda *_: refused, health=None)

    together = Together({"one": SimpleNamespace(pages=pages, own=CollectorRegistry(), observer=None)})  # type: ignore[dict-item]

    assert refused == together.answer("/status", "", "", "")


def test_where_no_connector_is_watched_there_is_none_to_ask() -> None:
    together = Together({})

    assert {"connectors": {}} == json.loads(together.answer("/status", "", "", "").body)
    assert HTTPStatus.NOT_FOUND == together.answer("/metrics", "", "", "").status
