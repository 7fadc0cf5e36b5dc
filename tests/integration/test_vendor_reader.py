"""Random DML and DDL on real servers: each row image is the one that the server's own reader prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from databases.server_builds import BUILDS
from databases.servers import Server
from databases.vendor_reader import Image, printed_images, spelled_images
from historian.changelog.chunks import Chunk
from historian.plans.plans import Plan
from replicas.follower import Follower
from workload.run import Workload
from workload.seeds import seeds

DATABASES = ("shop", "archive")
BETWEEN = ("mysql8", "mariadb1011")
"""Servers between the oldest and the newest one of their flavor."""


class Speller(Follower):
    """Keeps the images of what it takes, in the vendor's spelling."""

    def __init__(self, server: Server, directory: Path) -> None:
        super().__init__(server, directory)
        self.images: Counter[Image] = Counter()

    def took(self, plan: Plan, chunks: list[Chunk]) -> None:
        self.images += spelled_images(chunks, plan.tables, self.server.flavor)


@pytest.mark.parametrize("seed", seeds([5]))
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.soak] * (n in BETWEEN)) for n in BUILDS])
def test_images_are_those_that_the_servers_reader_prints(
    name: str, seed: int, fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = fresh_server(name)
    Workload(server, seed, changes=2_000, ddls=20, writers=2, databases=DATABASES).run()
    speller = Speller(server, tmp_path)
    speller.run()

    printed = printed_images(BUILDS[name], server.binlog_files(), DATABASES)

    ours, theirs = list((speller.images - printed).items()), list((printed - speller.images).items())
    assert (ours[:3], theirs[:3]) == ([], [])
    assert printed.total() > 2_000
