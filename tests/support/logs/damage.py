"""Recorded binlog files, damaged in any byte and read again, in memory that ends at a page that nobody may touch.

    python damage.py RECORDINGS SEED CASES

reads that many damaged copies of pickled :class:`Recording` objects and prints what was wrong with what came of them. It
is run as a process of its own, since one that reads outside its buffers ends there; the last line that it printed then
says over which case. A case that takes too long ends it, too.
"""

from __future__ import annotations

import faulthandler
import json
import pickle
import random
import re
import resource
import sys
import tempfile
import traceback
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from connectors.config import BinlogFilesSource, HistoryConfig, PipelineConfig, RunConfig
from connectors.readers.binlog.events.layout import EventType
from connectors.readers.binlog.files_reader import BinlogFilesReader
from connectors.readers.binlog.kernels.log import finding
from connectors.readers.binlog.transport import files, read_buffer, unpacking
from connectors.tail.follow import Tail
from connectors.tail.log_order import in_log_order
from historian.changelog.chunks import Chunk
from historian.errors import HistorianError, ValueUnrepresentable
from historian.plans.plans import LogRange, PlannedTable
from logs.guarded import guarded, guarded_room, one_by_one
from logs.log_files import events_of, packets

__all__ = ["CASES_TAILED", "Damage", "Recording", "chunks", "damages", "run", "scan", "tail"]

WATCHED_S = 120
CASES_WATCHED = 50
CASES_TAILED = 4
"""Of so many cases one is tailed: that takes some five times as long as to scan and to read it."""
MEMORY_BYTES = 8 << 30
FIRST_EVENT = 4
_EVENT = re.compile("|".join([*(kind.name for kind in EventType), r"type \d+", "event", "ROLLBACK TO"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A file of a log, tables whose rows are in it, and where its last transaction ends."""

    name: str
    file: str
    data: bytes
    flavor: str
    tables: tuple[PlannedTable, ...]
    end: int
    checksum: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What was done to a file, and the file."""

    what: str
    data: bytes
    is_cut: bool = False


def damages(data: bytes, seed: int, count: int) -> list[Damage]:
    """*count* damaged copies: a byte flipped, set, repeated or cut, or the file cut off."""
    draw = random.Random(seed)
    found = []
    while len(found) < count:
        at = draw.randrange(len(data))
        kind = draw.choice(("flip", "flip", "set", "set", "repeat", "cut", "cut off"))
        if kind == "flip":
            bit = draw.randrange(8)
            what, new = f"bit {bit} of byte {at} flipped", bytes((data[at] ^ 1 << bit,))
        elif kind == "set":
            value = draw.choice((0, 1, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF, draw.randrange(256)))
            if value == data[at]:
                continue
            what, new = f"byte {at} set to {value}", bytes((value,))
        elif kind == "repeat":
            times = draw.choice((2, 2, 3, 300))
            what, new = f"byte {at} repeated to {times}", data[at : at + 1] * times
        elif kind == "cut":
            what, new = f"byte {at} cut out", b""
        else:
            found.append(Damage(what=f"cut off at byte {at}", data=data[:at], is_cut=True))
            continue
        found.append(Damage(what=what, data=data[:at] + new + data[at + 1 :]))
    return found


def scan(path: Path) -> list[Any]:
    """What a tracker sees of the file."""
    reader = BinlogFilesReader([path])
    return list(reader.scan(reader.start()))


def chunks(path: Path, recording: Recording) -> list[Chunk]:
    """The rows of the recording's tables."""
    reader = BinlogFilesReader([path])
    planned = LogRange(file=recording.file, start=FIRST_EVENT, end=recording.end, server="", after="", upto="")
    return list(reader.read(planned, recording.tables))


def _read(path: Path, recording: Recording) -> list[Any]:
    found = chunks(path, recording)
    return [(chunk.table_id, chunk.first_position, chunk.last_position, chunk.sources, chunk.rows) for chunk in found]


def tail(path: Path, recording: Recording) -> list[Any]:
    """What ``historian tail`` writes of the file alone: lines of rows, and the tables that stopped."""
    config = PipelineConfig(
        path=path,
        name="tail",
        source=BinlogFilesSource(flavor=recording.flavor, files=(path,)),
        history=HistoryConfig(store="sqlite://"),
        sinks=(),
        run=RunConfig(),
    )
    with closing(Tail(config)) as tailing:
        return [
            line for shown in tailing.shown() for line in [*in_log_order(shown), *(str(each) for each in shown.stopped)]
        ]


def _guard(stack: ExitStack, path: Path) -> None:
    """Has all memory that bytes of the file are read from end at a guarding page."""
    unpacked = unpacking.unpacked
    rest_bytes = [0]

    class GuardedGatherer(read_buffer.ReadBuffer):
        def __init__(self, file: str, offset: int) -> None:
            rest_bytes[0] = max(1, path.stat().st_size - offset)
            super().__init__(file, offset)

    def resize(frame: Any, _size: int) -> None:
        """The file's bytes fill the memory to its end."""
        frame.buffer = guarded_room(rest_bytes[0])
        frame.bytes = memoryview(frame.buffer)
        frame.addresses = (frame.buffer.ctypes.data, *(part.ctypes.data for part in frame.index))

    def one_by_one_unpacked(windows: Any, **how: Any) -> Any:
        given: list[Any] = [None]

        def events() -> Any:
            for given[0] in one_by_one(windows):
                yield given[0]

        for window in unpacked(events(), **how):
            yield from [window] if window is given[0] else one_by_one([window])

    stack.enter_context(patch.object(files, "ReadBuffer", GuardedGatherer))
    stack.enter_context(patch.object(read_buffer._Frame, "resize", resize))
    stack.enter_context(patch.object(unpacking, "unpacked", one_by_one_unpacked))


def run(recording: Recording, seed: int, count: int, path: Path) -> tuple[list[str], Counter[str]]:
    """Reads *count* damaged copies; what was wrong, and how often what came of it."""
    path.write_bytes(recording.data)
    ways = {
        "scan": partial(scan, path),
        "read": partial(_read, path, recording),
        "tail": partial(tail, path, recording),
    }
    right = {name: way() for name, way in ways.items()}
    wrong: list[str] = []
    outcomes: Counter[str] = Counter()
    # As over a connection, where each event is a packet that a zero byte begins.
    sent = damages(packets([b"\0" + event for event in events_of(recording.data)]), seed, count)
    for number, damage in enumerate(damages(recording.data, seed, count)):
        if number % CASES_WATCHED == 0:
            faulthandler.dump_traceback_later(WATCHED_S, exit=True)
        print(f"{recording.name}, seed {seed}, case {number}: {damage.what}", flush=True)
        path.write_bytes(damage.data)
        came = _of_packets(sent[number].data)
        outcomes[f"packets: {came}"] += 1
        if came not in ("found", "refused"):
            wrong.append(f"{recording.name}, {sent[number].what} of its packets: {came}")
        for name, way in ways.items():
            if name == "tail" and number % CASES_TAILED:
                continue
            try:
                found = way()
            except HistorianError as error:
                outcomes[f"{name}: {type(error).__name__}"] += 1
                problem = _unclear(error, path)
            except Exception:  # noqa: BLE001 whatever it is, it is none of ours
                problem = traceback.format_exc()
            else:
                same = _same(found, right[name], prefix=damage.is_cut and name != "read")
                outcomes[f"{name}: {'right' if same else 'wrong'}"] += 1
                problem = "" if same or not recording.checksum else "wrong, with checksums"
            if problem:
                wrong.append(f"{recording.name}, {damage.what}, {name}: {problem}")
    faulthandler.cancel_dump_traceback_later()
    return wrong, outcomes


def _of_packets(data: bytes) -> str:
    """What is found in a connection's bytes: "found", "refused", or what is wrong with it."""
    room = 1000
    buffer, state = guarded(data), np.zeros(finding.FIND_WORDS, np.int64)
    index = np.zeros((3, room), np.int64)
    addresses = [part.ctypes.data for part in index]
    code = finding.SPECIAL
    for _ in range(room):
        code = finding.find_in_packets(state.ctypes.data, buffer.ctypes.data, len(buffer), *addresses, room, 4)
        if code != finding.SPECIAL:
            break
    starts, ends, _ = index[:, : state[finding.COUNT]]
    if (starts < 0).any() or (ends > len(data)).any() or (ends - starts < 19).any():
        return "events outside the buffer"
    return "found" if code == finding.MORE else "refused"


def _same(found: list[Any], right: list[Any], *, prefix: bool) -> bool:
    return found == right[: len(found)] if prefix else found == right


def _unclear(error: HistorianError, path: Path) -> str:
    """What the error does not say."""
    text = str(error)
    if isinstance(error, ValueUnrepresentable) and re.search("row .* of its chunk, transaction ", text):
        return ""  # a value that is no text or document: found when its chunk is full
    if not re.search(rf"{re.escape(path.name)}(:|, offset )\d+", text):
        return f"no file and offset in {text!r}"
    if text.startswith("not a binlog file"):
        return ""  # its first four bytes, before any event
    return "" if _EVENT.search(text) else f"no event in {text!r}"


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    recordings: list[Recording] = pickle.loads(Path(sys.argv[1]).read_bytes())
    seed, count = map(int, sys.argv[2:])
    wrong: list[str] = []
    outcomes: Counter[str] = Counter()
    for number, recording in enumerate(recordings):
        share = count * (number + 1) // len(recordings) - count * number // len(recordings)
        with ExitStack() as stack, tempfile.TemporaryDirectory() as directory:
            path = Path(directory, recording.file)
            _guard(stack, path)
            found, came = run(recording, seed, share, path)
        wrong += found
        outcomes += came
    print(json.dumps({"wrong": wrong, "outcomes": outcomes}))


if __name__ == "__main__":
    main()
