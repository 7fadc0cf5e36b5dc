"""Any byte of recorded files flipped, cut or repeated: a clear error, or the right rows; nothing outside a buffer is read.

``DAMAGE_CASES`` says how many damaged files there are in all, ``DAMAGE_SEED`` which.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from databases.server_builds import BUILDS
from databases.servers import Server
from logs import damage
from logs.log_files import events_of
from logs.recordings import recorded

CASES = int(os.environ.get("DAMAGE_CASES", "1000"))
SEED = int(os.environ.get("DAMAGE_SEED", "1"))
ROOT = Path(damage.__file__).parents[3]


def _python(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A process whose Arrow buffers end it when something was written behind them."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests/support")])
    environment = {**os.environ, "PYTHONPATH": paths, "ARROW_DEBUG_MEMORY_POOL": "abort"}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("checksum", [True, False], ids=["crc32", "none"])
def test_damage_is_an_error_that_says_where_or_does_not_matter(
    request: pytest.FixtureRequest, tmp_path: Path, *, checksum: bool
) -> None:
    recordings = [recorded(request.getfixturevalue(name), checksum=checksum) for name in BUILDS]
    (tmp_path / "recordings").write_bytes(pickle.dumps(recordings))

    done = _python(damage.__file__, tmp_path / "recordings", str(SEED), str(CASES // 2))

    *cases, last = done.stdout.splitlines() or [""]
    assert done.returncode == 0, f"ended with {done.returncode} over {last or cases[-1:]}\n{done.stderr}"
    found = json.loads(last)
    assert found["wrong"] == []
    outcomes = Counter(found["outcomes"])
    print(f"{len(cases)} cases, seed {SEED}: {dict(outcomes)}")
    assert len(cases) == CASES // 2
    tailed = sum(int(case.partition(", case ")[2].partition(":")[0]) % damage.CASES_TAILED == 0 for case in cases)
    for way, count in {"scan": len(cases), "read": len(cases), "tail": tailed}.items():
        ends = Counter({name: times for name, times in outcomes.items() if name.startswith(f"{way}: ")})
        assert ends.total() == count
        assert ends[f"{way}: LogCorrupt"] > count // 4
    assert min(outcomes["packets: found"], outcomes["packets: refused"]) > len(cases) // 50
    if checksum:
        assert outcomes["scan: wrong"] == outcomes["read: wrong"] == 0
    else:
        assert min(outcomes["scan: right"], outcomes["read: right"]) > len(cases) // 20


# ---- what would be seen ----------------------------------------------------------------------------------------------
def test_a_read_behind_guarded_memory_ends_the_process() -> None:
    read = "import ctypes; from logs import guarded; room = guarded.guarded(b'abc'); print(ctypes.string_at(room.ctypes.data, {}))"

    within, behind = (_python("-c", read.format(size)) for size in (3, 4))

    assert (within.returncode, within.stdout) == (0, "b'abc'\n")
    assert (behind.returncode, behind.stdout) == (-signal.SIGSEGV, "")


def test_a_byte_written_behind_an_arrow_buffer_ends_the_process() -> None:
    write = "import ctypes, pyarrow; b = pyarrow.allocate_buffer(128); ctypes.memset(b.address, 7, {}); del b"

    within, behind = (_python("-c", write.format(size)) for size in (128, 129))

    assert within.returncode == 0
    assert behind.returncode == -signal.SIGABRT


@pytest.mark.parametrize("checksum", [True, False], ids=["crc32", "none"])
@pytest.mark.parametrize("name", ["mysql9", "mariadb118"])
def test_a_recording_holds_what_there_is_to_damage(
    request: pytest.FixtureRequest, name: str, *, checksum: bool
) -> None:
    server: Server = request.getfixturevalue(name)
    found = recorded(server, checksum=checksum)
    kinds = {event[4] for event in events_of(found.data)}
    assert kinds >= (
        {15, 162, 163, 19, 23, 24, 25, 165, 166, 167, 168}
        if server.flavor == "mariadb"
        else {15, 35, 33, 19, 30, 31, 32, 40}
    )
