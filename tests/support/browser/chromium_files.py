"""A headless Chromium for tests: Debian's package, unpacked into the cache, no installation."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from connectors.spark.jvm import cache_directory
from databases import debian
from databases.server_builds import placed

__all__ = ["BROWSER_NAME", "browser_command", "browser_environment", "prepare"]

BROWSER_NAME = "chromium"
_RELEASE = "bookworm"
_PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core")
_PROGRAM = "usr/lib/chromium/chromium-headless-shell"
_GLIBC = (
    "ld-linux-x86-64",
    "libc.so",
    "libm.so",
    "libpthread",
    "libdl.so",
    "librt.so",
    "libresolv",
    "libanl",
    "libmvec",
)
# Chromium starts itself again by name, which a loader of another tree does not follow: it takes the system's.
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{root}/usr/share/fonts</dir><cachedir>{directory}/fontcache</cachedir></fontconfig>
"""
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


def prepare() -> Path:
    """The directory of Debian's programs, fetched if need be; its file VERSION says which they are.

    Raises:
        DebianError: they cannot be had, or do not run here.
    """
    directory = cache_directory() / "test-servers" / BROWSER_NAME
    with placed(directory) as place:
        if place is not None:
            with tempfile.TemporaryDirectory(prefix="historian-apt-") as work:
                debian.unpack(_RELEASE, _PACKAGES, place / "root", Path(work))
            for library in (place / "root").rglob("*.so*"):
                if library.name.startswith(_GLIBC) and library.parent.name == debian.TRIPLET:
                    library.unlink()
            (place / "VERSION").write_text(_version(place / "root"), encoding="utf-8")
    return directory


def _version(root: Path) -> str:
    done = subprocess.run(
        [str(root / _PROGRAM), "--version"],
        env=browser_environment(root, root),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise debian.DebianError(f"{root / _PROGRAM} does not run ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout.split()[-1] + "\n"


def browser_command(profile: Path) -> list[str]:
    """The command that starts it with the empty directory *profile*; it is driven through its descriptors 3 and 4."""
    return [str(prepare() / "root" / _PROGRAM), *_FLAGS, f"--user-data-dir={profile}"]


def browser_environment(root: Path, directory: Path) -> dict[str, str]:
    """What programs of the unpacked tree *root* need to find their libraries and fonts; a file is written into *directory*."""
    fonts = directory / "fonts.conf"
    fonts.write_text(_FONTS.format(root=root, directory=directory), encoding="utf-8")
    here = (
        f"usr/lib/{debian.TRIPLET}",
        f"lib/{debian.TRIPLET}",
        f"usr/lib/{debian.TRIPLET}/pulseaudio",
        "usr/lib/chromium",
    )
    libraries = [root / each for each in here]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries)), "FONTCONFIG_FILE": str(fonts)}
