"""The steps of docker/Dockerfile, run outside of Docker in a clean root, and what runs from it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from image import built_image

ROOT = Path(__file__).parent.parent
CONFIG = "name: shop\nsource: {type: binlog-files, directory: shop/binlog}\nsinks: [{type: delta, path: lake}]\nrun: {http: 127.0.0.1:9464}\n"
LONGEST_S = 300


@pytest.mark.soak
@pytest.mark.slow
def test_the_image_runs_from_a_read_only_root_without_rights_or_network_and_ends_at_sigterm(tmp_path: Path) -> None:
    """Some minutes: a Debian is made, packages and jars are fetched, kernels compiled."""
    dist, data = tmp_path / "dist", tmp_path / "data"
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(dist)], cwd=ROOT, check=True)
    (wheel,) = dist.glob("*.whl")
    shutil.copytree(ROOT / "examples" / "shop", data / "shop")
    (data / "shop.yaml").write_text(CONFIG)
    context = {"docker/install.sh": ROOT / "docker" / "install.sh", "dist/*.whl": wheel}

    with built_image(ROOT / "docker" / "Dockerfile", context) as image:
        for path in (data, *data.rglob("*")):
            os.chown(path, int(image.user), int(image.user))
        health = " ".join(map(shlex.quote, image.health))
        once = image.run(f"{' '.join(image.entrypoint)} run shop.yaml --once", data)
        stream = image.run(
            f"{' '.join(image.entrypoint)} run shop.yaml & run=$!; "
            f"for second in $(seq {LONGEST_S}); do {health} >/dev/null 2>&1 && break; sleep 1; done; "
            f"{health} && echo healthy; id -u; touch /opt/historian/x 2>&1; kill -TERM $run; wait $run; echo ended $?",
            data,
        )

    assert once.returncode in (0, 1), once.stderr[-3000:]
    assert "compil" not in once.stderr
    assert list((data / "lake").glob("*/_delta_log"))
    assert {path.stat().st_uid for path in (data / "lake").rglob("*")} == {10001}
    told = stream.stdout.splitlines()
    assert "healthy" in told, stream.stderr[-3000:]
    assert "10001" in told
    assert any("Read-only" in line for line in told)
    assert told[-1] in ("ended 0", "ended 1"), stream.stderr[-3000:]
