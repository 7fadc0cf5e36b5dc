"""What an attack does, as data: statements of sessions, in order, and what happens to the server and the connector between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = [
    "DATABASE",
    "FOLLOW",
    "STAGE",
    "Failover",
    "Follow",
    "Forget",
    "Hang",
    "Hashed",
    "Kill",
    "Look",
    "Restart",
    "Script",
    "Shape",
    "Sql",
    "Step",
    "Torn",
]

DATABASE = "c_a"
"""Sessions begin in it; databases whose names begin with ``c_`` are captured."""
STAGE = "x_stage"
"""A database that is not captured."""


@dataclass(frozen=True, slots=True)
class Sql:
    """A statement of a session; a server that refuses it is no finding. ``data``: its bytes, where they are no UTF-8."""

    text: str
    session: str = "a"
    data: bytes = b""

    def __str__(self) -> str:
        shown = self.data.decode("latin1") if self.data else self.text
        return f"{self.session}> {shown};"


@dataclass(frozen=True, slots=True)
class Follow:
    """The connector goes on to the log's end, as ``run --once``; *limit_bytes*: of log in each plan."""

    limit_bytes: int | None = None

    def __str__(self) -> str:
        return f"-- run{f' with {self.limit_bytes} bytes a plan' if self.limit_bytes else ''}"


@dataclass(frozen=True, slots=True)
class Hang:
    """A session's connection ends."""

    session: str = "a"

    def __str__(self) -> str:
        return f"-- {self.session} disconnects"


@dataclass(frozen=True, slots=True)
class Kill:
    """The server ends as by a crash, and starts again."""

    def __str__(self) -> str:
        return "-- the server is killed and starts again"


@dataclass(frozen=True, slots=True)
class Restart:
    """The server is shut down, and starts again."""

    def __str__(self) -> str:
        return "-- the server restarts"


@dataclass(frozen=True, slots=True)
class Forget:
    """The connector forgets its versions before the newest plan."""

    def __str__(self) -> str:
        return "-- historian forgets what lies before the newest plan"


@dataclass(frozen=True, slots=True)
class Failover:
    """A replica that has all transactions takes the place of the server; its log's files are its own."""

    def __str__(self) -> str:
        return "-- a replica takes the server's place"


@dataclass(frozen=True, slots=True)
class Torn:
    """The connector reads a copy of the log's files, of the last one only this *share*; from then on it reads copies only."""

    share: float

    def __str__(self) -> str:
        return f"-- run on a copy of the log, its last file cut at {self.share:.3f}"


@dataclass(frozen=True, slots=True)
class Look:
    """The connector's configuration names other tables from the next run on."""

    tables: tuple[str, ...]

    def __str__(self) -> str:
        return f"-- tables: {', '.join(self.tables)}"


Step = Sql | Follow | Hang | Kill | Restart | Forget | Failover | Torn | Look
FOLLOW = Follow()


@dataclass(frozen=True, slots=True)
class Hashed:
    """Values are shown as the SHA-256 of salt and text."""

    salt: str


Shape = int | str | Hashed | None
"""What a mirror shows of a column: None, it is left out; a number, so many characters; a text in its place; or hashes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """An attack's steps, and how the connector is configured.

    Attributes:
        tables: patterns of captured tables.
        start: where the connector begins, as in ``source.start``.
        said: settings of all tables in the lake, as of :class:`sinks.delta.DeltaSettings`.
        stops: names of the stops (docs/reference/stops.md) that the attack may cause, or words of their reasons; others are findings.
        shaped: what mirrors show of columns, by name.
        where: SQL that is true for the rows that mirrors have; "": they have all.
        computed: columns that mirrors have besides, by name, each with its SQL.
        union: the name of tables, in any captured database, that are shards of the table ``all.NAME``; "": there are none.
        partial: whether rows may lack columns, so that changelogs alone do not fold to tables.
        fails: names of errors that may end a run, or words of what they say.
    """

    steps: Sequence[Step]
    tables: tuple[str, ...] = ("c_*.*",)
    start: str = "earliest"
    said: dict[str, object] = field(default_factory=dict)
    stops: frozenset[str] = frozenset()
    shaped: Mapping[str, Shape] = field(default_factory=dict)
    where: str = ""
    computed: Mapping[str, str] = field(default_factory=dict)
    union: str = ""
    partial: bool = False
    fails: frozenset[str] = frozenset()
