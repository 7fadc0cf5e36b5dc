"""A client of the endpoint of a run: its pages, and its metrics as samples by name and labels."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

__all__ = ["Endpoint", "Samples"]

LONGEST_S = 120
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Endpoint:
    """A client of the endpoint at *port*."""

    def __init__(self, port: int) -> None:
        self._port = port

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def samples(self) -> Samples:
        status, text = self.get("/metrics")
        assert status == 200
        families = text_string_to_metric_families(text)
        return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}

    def wait(self, is_there: Callable[[Samples], bool]) -> Samples:
        """The metrics once *is_there* says so of them; nobody need listen before."""
        until = time.monotonic() + LONGEST_S
        while True:
            try:
                if is_there(samples := self.samples()):
                    return samples
            except OSError:
                samples = {}
            assert time.monotonic() < until, samples
            time.sleep(0.2)

    def is_ready(self) -> bool:
        try:
            return self.get("/ready")[0] == 200
        except OSError:
            return False
