"""The HTTP endpoint of several connectors: one port, one ``/metrics`` whose series say the connector, and the pages of each under its name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from connectors.monitoring.endpoint import Answer, Watched, listening, verdict
from connectors.monitoring.observer import Observer, Observers
from connectors.monitoring.process import joined, process_registry

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

    from connectors.config import PipelineConfig

__all__ = ["Together", "served_together"]

_AT_ONCE = 8
"""So many connectors are asked for their status at a time."""
_LEAST_SILENCE_S = 60.0
_REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.MISDIRECTED_REQUEST)


class Together:
    """What is told of several connectors, by name, and of their *process*. From any thread."""

    def __init__(self, watched: Mapping[str, Watched], process: CollectorRegistry | None = None) -> None:
        self._watched = watched
        self._ended: dict[str, str] = {}
        labelled = CollectorRegistry()
        labelled.register(_Labelled({name: each.own for name, each in watched.items()}, self._ended))
        self.registry = labelled if process is None else joined(labelled, process)

    def observer(self, name: str) -> Observer:
        """Who is told what that connector's run does."""
        return self._watched[name].observer if name in self._watched else Observers()

    def ended(self, name: str, failure: str) -> None:
        """Takes note of a connector's end; *failure* is "" where it came to its end."""
        self._ended[name] = failure

    def answer(self, path: str, accept: str, authorization: str, host: str) -> Answer:
        """What stands under *path*. A connector that ended does not make the process a dead one."""
        _, name, rest = [*path.split("/", 2), "", ""][:3]
        if name in self._watched and path.startswith(f"/{name}/"):
            return self._watched[name].pages.answer(f"/{rest}", accept, authorization, host)
        living = [each.pages.health for name, each in self._watched.items() if name not in self._ended]
        match path:
            case "/health":
                return verdict(sorted({reason for each in living for reason in each.dead()}))
            case "/ready":
                failed = sum(bool(failure) for failure in self._ended.values())
                reasons = [f"{failed} of {len(self._watched)} connectors have failed"] if failed else []
                return verdict([*reasons, *sorted({reason for each in living for reason in each.not_ready()})])
            case "/metrics" if self._watched:
                first = next(iter(self._watched.values())).pages
                return replace(first, registry=self.registry).answer(path, accept, authorization, host)
            case "/status":
                return self._status(accept, authorization, host)
        known = ["/metrics", "/health", "/ready", "/status", "/NAME/", "/NAME/status"]
        return Answer.of({"error": "not found", "known": known}, HTTPStatus.NOT_FOUND)

    def _status(self, accept: str, authorization: str, host: str) -> Answer:
        """All at once, since each waits for a store and a source of its own; so many that a process of many keeps threads for its work."""
        names = list(self._watched)

        def asked(name: str) -> Answer:
            return self._watched[name].pages.answer("/status", accept, authorization, host)

        with ThreadPoolExecutor(_AT_ONCE, "status") as pool:
            answers = list(pool.map(asked, names))
        for answer in answers:
            if answer.status in _REFUSED:
                return answer  # Whoever is refused by one is told of none.
        return Answer.of(
            {"connectors": {name: self._told(name, answer) for name, answer in zip(names, answers, strict=True)}}
        )

    def _told(self, name: str, answer: Answer) -> dict[str, Any]:
        failure = self._ended.get(name)
        state = "runs" if failure is None else "failed" if failure else "ended"
        said: dict[str, Any] = json.loads(answer.body)
        return {"state": state, "failure": failure or ""} | said


@contextmanager
def served_together(configs: Sequence[PipelineConfig]) -> Iterator[Together]:
    """Serves all *configs* inside of the ``with``, where the first one that says ``run.http`` says; nothing where none does.

    Raises:
        ConfigError: nobody can listen there.
    """
    says = next((config for config in configs if config.run.http is not None), None)
    limits = None if says is None else says.run.http
    if says is None or limits is None:
        yield Together({})
        return
    # Quiet ones among many let hear of themselves seldom.
    patient = replace(limits, max_silence_s=max(limits.max_silence_s, _LEAST_SILENCE_S))
    process = process_registry()
    watched = {config.name: Watched.of(config, patient, process) for config in configs}
    together = Together(watched, process)
    with ExitStack() as stack:
        for each in watched.values():
            stack.enter_context(closing(each))
        stack.enter_context(listening(limits, together.answer, says))
        yield together


class _Labelled(Collector):
    """The series of several registries, each with the label ``connector``."""

    def __init__(self, registries: Mapping[str, CollectorRegistry], ended: Mapping[str, str]) -> None:
        self._registries = registries
        self._ended = ended

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for name, registry in self._registries.items():
            for metric in registry.collect():
                family = families.get(metric.name)
                if family is None:
                    family = Metric(metric.name, metric.documentation, metric.type, metric.unit)
                    families[metric.name] = family
                family.samples += [_of(name, sample) for sample in metric.samples]
        failed = Metric("historian_connector_failed", "1 where the connector's run has failed for good.", "gauge")
        for name in self._registries:
            failed.add_sample(failed.name, {"connector": name}, float(bool(self._ended.get(name))))
        yield from [*families.values(), failed]


def _of(connector: str, sample: Sample) -> Sample:
    return sample._replace(labels={"connector": connector, **sample.labels})
