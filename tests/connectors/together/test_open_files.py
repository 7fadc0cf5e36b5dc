"""The limit of open files of a process of many connectors."""

from __future__ import annotations

import resource

import pytest

from connectors.together.open_files import allow_files


@pytest.mark.parametrize(
    "held,expected,says",
    [
        ((1024, 4096), (3456, 4096), False),
        ((4096, 4096), (4096, 4096), False),
        ((1024, resource.RLIM_INFINITY), (3456, resource.RLIM_INFINITY), False),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), (resource.RLIM_INFINITY, resource.RLIM_INFINITY), False),
        ((1024, 2048), (2048, 2048), True),
    ],
)
def test_the_limit_grows_to_what_the_connectors_need_and_the_system_allows(
    held: tuple[int, int],
    expected: tuple[int, int],
    says: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = {resource.RLIMIT_NOFILE: held}
    monkeypatch.setattr(resource, "getrlimit", limits.__getitem__)
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)

    allow_files(200)

    assert (limits[resource.RLIMIT_NOFILE], says) == (expected, bool(caplog.messages))
