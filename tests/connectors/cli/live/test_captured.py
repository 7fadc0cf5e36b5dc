"""What processes write to a terminal while a picture stands there: all of it comes through, in order."""

from __future__ import annotations

import ast
import subprocess
import sys

SCRIPT = """
import logging, os, subprocess, sys, threading
from connectors.cli.live.captured import captured
seen = []
later = None
with captured([1, 2], lambda lines: seen.extend(lines.split("\\n"))):
    print("printed")
    print("told", file=sys.stderr)
    logging.warning("logged")
    os.write(2, b"\\xff in no character set\\n")
    subprocess.run(["sh", "-c", "echo of a child; echo of a child, told >&2"], check=True)
    sys.stdout.flush()
    later = subprocess.Popen(["sh", "-c", "read line; echo later >&2"], stdin=subprocess.PIPE)
    for number in range(5000):
        os.write(1, b"%d\\n" % number)
    os.write(2, b"not ended")
assert seen[-5001:] == [*map(str, range(5000)), "not ended"], seen[-3:]
later.communicate(b"\\n")
# It reads until everybody has closed the pipe, and the process does not wait for that.
for thread in threading.enumerate():
    if thread.name == "historian terminal":
        thread.join(30)
print(seen[:-5001])
"""


def test_nothing_is_lost_and_what_comes_later_goes_where_it_went_before() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "later\n")
    # Standard output of a pipe is written when it is flushed.
    assert sorted(
        ["printed", "told", "WARNING:root:logged", "\\xff in no character set", "of a child", "of a child, told"]
    ) == sorted(ast.literal_eval(done.stdout))


def test_its_thread_is_gone_before_the_process_ends() -> None:
    """Python's end can abort a process that a thread of its own still runs in."""
    script = """
import threading
from connectors.cli.live.captured import captured
for _ in range(50):
    with captured([1, 2], lambda lines: None):
        print("printed")
    assert ["MainThread"] == [thread.name for thread in threading.enumerate()]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
