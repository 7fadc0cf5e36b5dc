"""Files with which people install a connector: they hold together, their schemas accept them, and what they install runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config

ROOT = Path(__file__).parent.parent
DOCKER = ROOT / "docker"
NOBODY = 65534


@pytest.fixture(scope="module")
def manifests() -> dict[str, Any]:
    text = (DOCKER / "kubernetes" / "historian.yaml").read_text()
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


@pytest.mark.parametrize("kind", ["ConfigMap", "Service", "StatefulSet"])
def test_kubernetes_takes_the_manifest(manifests: dict[str, Any], kind: str) -> None:
    kubernetes_validate.validate(manifests[kind], "1.31", strict=True)


def test_the_manifests_configuration_loads_with_what_its_pod_mounts(manifests: dict[str, Any], tmp_path: Path) -> None:
    (pod,) = manifests["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    mounts = {mount["mountPath"]: mount["name"] for mount in pod["volumeMounts"]}
    text = manifests["ConfigMap"]["data"]["shop.yaml"]
    for name in re.findall(r"\$\{file:(.*?)\}", text):
        assert mounts[str(Path(name).parent)] == "secrets"
        (tmp_path / Path(name).name).write_text("a secret")
    (tmp_path / "shop.yaml").write_text(text.replace("/run/secrets/historian", str(tmp_path)))

    config = load_config(tmp_path / "shop.yaml")

    assert f"/etc/historian/{config.path.name}" in pod["args"]
    assert all(path.startswith(("/data", "sqlite:////data")) for path in (*config.sink_paths, config.history.store))
    assert config.run.http is not None
    assert [config.run.http.port] == [port["containerPort"] for port in pod["ports"]]
    assert {"/health", "/ready"} == {
        pod[f"{probe}Probe"]["httpGet"]["path"] for probe in ("liveness", "readiness", "startup")
    }


def test_the_command_line_takes_what_pod_and_unit_say(manifests: dict[str, Any]) -> None:
    (pod,) = manifests["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    unit = (DOCKER / "systemd" / "historian@.service").read_text()
    (started,) = re.findall(r"^ExecStart=\S+ (.*)$", unit, re.MULTILINE)
    for arguments in (pod["args"], started.split()):
        # A file that is not there is the first thing that is wrong.
        told = CliRunner().invoke(app, arguments)
        assert (told.exit_code, "no such file" in told.output.lower()) == (2, True), told.output


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = (DOCKER / "systemd" / "historian@.service").read_text()
    # The program need not be there where the unit is checked.
    (tmp_path / "historian@shop.service").write_text(unit.replace("/opt/historian/bin/historian", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "historian@shop.service")],
        check=False,
        capture_output=True,
        text=True,
    )
    told = [line for line in done.stderr.splitlines() if "historian@" in line]
    assert (done.returncode, told) == (0, [])


def test_the_image_has_what_its_steps_name() -> None:
    lines = (DOCKER / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (docker/\S+)", lines, re.MULTILINE)
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    unit = (DOCKER / "systemd" / "historian@.service").read_text()
    for variable in ("PYSPARK_HISTORIAN_CACHE", "NUMBA_CACHE_DIR"):
        (image,) = re.findall(rf"{variable}=(\S+)", lines)
        assert [image] == re.findall(rf"{variable}=(\S+)", unit)
        assert image.replace("/opt/historian", '="$prefix') in (DOCKER / "install.sh").read_text()
    assert "USER 10001" in lines


@pytest.mark.soak
@pytest.mark.slow
def test_what_is_installed_runs_as_a_user_without_rights_and_compiles_nothing() -> None:
    """The steps of the image, outside of it: some minutes."""
    # Directories of pytest are closed to other users.
    with tempfile.TemporaryDirectory(prefix="historian-installed-") as directory:
        Path(directory).chmod(0o755)
        _install_and_run(Path(directory))


def _install_and_run(tmp_path: Path) -> None:
    dist, prefix, work = tmp_path / "dist", tmp_path / "historian", tmp_path / "work"
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(dist)], cwd=ROOT, check=True)
    (wheel,) = dist.glob("*.whl")
    # A Python of the system: one in somebody's home is out of reach for others.
    bare = {"PATH": f"/usr/bin:/bin:{os.environ['PATH']}", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    kept = {name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "UV_", "JAVA", "SSL_"))}
    subprocess.run(["sh", str(DOCKER / "install.sh"), str(wheel), str(prefix)], env={**kept, **bare}, check=True)
    work.mkdir()
    shutil.copytree(ROOT / "examples" / "shop", work / "shop")
    (work / "shop.yaml").write_text(
        "name: shop\nsource: {type: binlog-files, directory: shop/binlog}\nsinks: [{type: delta, path: lake}]\n"
    )
    for path in (work, *work.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    installed = {
        **bare,
        "HOME": "/nonexistent",
        "PATH": f"{prefix}/bin:/usr/bin:/bin",
        "PYSPARK_HISTORIAN_CACHE": f"{prefix}/share/historian",
        "NUMBA_CACHE_DIR": f"{prefix}/kernels",
        "NUMBA_CPU_NAME": "generic",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }

    done = subprocess.run(
        [f"{prefix}/bin/historian", "--log-level", "info", "run", "shop.yaml", "--once"],
        cwd=work,
        env=installed,
        user=NOBODY,
        group=NOBODY,
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode in (0, 1), done.stderr[-3000:]
    assert "compil" not in done.stderr
    assert list((work / "lake").glob("*/_delta_log"))
