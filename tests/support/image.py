"""The steps of a Dockerfile, run without an engine: in roots that debootstrap makes, which have nothing of this machine but whom it trusts.

Needs root, and Linux's `unshare`. What is kept in a root's /data is its only place to write while the image runs, as with ``docker run --read-only``.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from databases.debian import archive, unpack

__all__ = ["Image", "built_image"]

RELEASE = "bookworm"
BASE = re.compile(r"python:3\.11-slim-bookworm")
"""What Debian's own Python of that release stands for here."""
TRUSTED = ("usr/local/share/ca-certificates", "etc/pip.conf", "etc/resolv.conf", "etc/hosts")
KEPT = ("PIP_", "SSL_", "REQUESTS_", "PYSPARK_HISTORIAN_IVY")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(slots=True)
class Image:
    """A root with what an image has, and what its Dockerfile says of how it runs."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    user: str = "0"
    directory: str = "/"
    entrypoint: tuple[str, ...] = ()
    health: tuple[str, ...] = ()

    def build(self, command: str) -> None:
        """Runs a step, as root, with the network."""
        kept = {name: os.environ[name] for name in os.environ if name.startswith(KEPT)}
        given = {"DEBIAN_FRONTEND": "noninteractive", "HOME": "/root", **kept, **self.environment}
        _run(f'mount -t proc proc "$1/proc"; exec chroot "$1" {_told(given)} sh -euc "$2"', self.root, command)

    def run(self, script: str, data: Path, user: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs a shell's script as the image's user, or as *user*, from a root that is read-only, without a network but loopback; *data* is /data."""
        given = {"HOME": "/nonexistent", **self.environment}
        setup = (
            "ip link set lo up",
            'mount --bind "$1" "$1"',
            'mount -t proc proc "$1/proc"',
            'mount -t tmpfs tmpfs "$1/tmp"',
            'mount --bind "$3" "$1/data"',
            'mount -o remount,bind,ro "$1"',
            f'cd "$1{self.directory}"',
            f'exec chroot --userspec={user or self.user} "$1" {_told(given)} sh -uc "cd {self.directory}; $2"',
        )
        return _started("; ".join(setup), self.root, script, data, network=False)


@contextmanager
def built_image(dockerfile: Path, context: Mapping[str, Path]) -> Iterator[Image]:
    """The image of *dockerfile*'s last stage; *context* has what its COPY takes, by pattern."""
    with tempfile.TemporaryDirectory(prefix="historian-image-") as name:
        work = Path(name)
        work.chmod(0o755)
        base = work / "base"
        _bootstrap(base, work / "debootstrap")
        stages: dict[str, Image] = {}
        image = Image(base)
        for word, text in _steps(dockerfile):
            if word == "FROM":
                found = BASE.match(text)
                assert found is not None, f"another base: {text}"
                stage = text.partition(" AS ")[2] or "last"
                subprocess.run(["cp", "--archive", base, work / stage], check=True)
                image = stages[stage] = Image(work / stage)
            else:
                _take(image, word, text, context, stages)
        yield image


def _steps(dockerfile: Path) -> Iterator[tuple[str, str]]:
    lines = [line for line in dockerfile.read_text().splitlines() if not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            word, _, text = line.strip().partition(" ")
            yield word, text.strip()


def _take(image: Image, word: str, text: str, context: Mapping[str, Path], stages: Mapping[str, Image]) -> None:
    match word:
        case "RUN":
            image.build(text)
        case "COPY":
            *names, to = [part for part in text.split() if not part.startswith("--")]
            copied = re.match(r"--from=(\w+)", text)
            for name in names:
                source = stages[copied[1]].root / name.lstrip("/") if copied else context[name]
                into = image.root / to.lstrip("/")
                into.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cp", "--archive", f"{source}/." if source.is_dir() else source, into], check=True)
        case "ENV":
            for pair in shlex.split(text):
                key, _, value = pair.partition("=")
                image.environment[key] = value.replace("$PATH", image.environment["PATH"])
        case "USER":
            image.user = text
        case "WORKDIR":
            image.directory = text
        case "ENTRYPOINT":
            image.entrypoint = _words(text)
        case "HEALTHCHECK":
            image.health = _words(text.partition(" CMD ")[2])
        case "EXPOSE" | "STOPSIGNAL" | "CMD":
            return
        case _:
            raise AssertionError(f"a step that is not known here: {word} {text}")


def _words(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def _bootstrap(root: Path, work: Path) -> None:
    """A minimal Debian with Python, which has nothing of this machine's but whom it trusts."""
    tool = work / "tool"
    (work / "apt").mkdir(parents=True)
    unpack(RELEASE, [], tool, work / "apt", alone=["debootstrap"])
    subprocess.run(
        [
            tool / "usr/sbin/debootstrap",
            "--variant=minbase",
            "--include=ca-certificates,python3,python3-venv",
            RELEASE,
            root,
            archive(),
        ],
        env={
            **os.environ,
            "DEBOOTSTRAP_DIR": str(tool / "usr/share/debootstrap"),
            "PATH": f"{os.environ['PATH']}:{PATH}",
        },
        check=True,
        stdout=subprocess.DEVNULL,
    )
    for name in TRUSTED:
        source = Path("/", name)
        if source.is_dir():
            shutil.copytree(source, root / name, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy(source, root / name)
    Image(root).build("update-ca-certificates")


def _told(environment: Mapping[str, str]) -> str:
    return " ".join(["env -i", *(shlex.quote(f"{name}={value}") for name, value in environment.items())])


def _run(setup: str, root: Path, command: str) -> None:
    done = _started(setup, root, command, root, network=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def _started(setup: str, root: Path, command: str, data: Path, *, network: bool) -> subprocess.CompletedProcess[str]:
    """All that is mounted, and each process left over, goes when the shell ends."""
    spaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", *([] if network else ["--net"])]
    shell = ["sh", "-euc", setup, "image", str(root), command, str(data)]
    return subprocess.run([*spaces, *shell], check=False, capture_output=True, text=True)
