"""Statements of a server's own suite of tests through that server, and its log through our schema history, statement by statement.

As a script: ``run.py FLAVOR [FILES [SEED]]`` prints a table of what is refused and why, and each difference from ``information_schema``.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pymysql

from corpus.mysqltest import statements_of
from corpus.suites import SUITES, Suite, fetch
from databases.servers import Server, start_server
from models.followed_ddl import CONNECTION_LOST, Finding, FollowedSession

__all__ = ["LOCK_WAIT", "Corpus", "chosen", "is_wanted", "report"]

_LEFT_OUT = frozenset(
    [
        "funcs_1",
        "galera",
        "galera_3nodes",
        "galera_3nodes_sr",
        "galera_sr",
        "group_replication",
        "large_tests",
        "mariabackup",
        "mtr",
        "mtr2",
        "ndb",
        "ndb_big",
        "ndb_ddl",
        "ndb_opt",
        "ndb_rpl",
        "ndbcluster",
        "ndbcrunch",
        "perfschema",
        "perfschema_stress",
        "s3",
        "stress",
        "sys_vars",
        "sysschema",
        "wsrep",
        "x",
    ]
)
"""Suites of other products, of settings, and of what takes long."""
_HEADS = frozenset(
    [
        "CREATE",
        "ALTER",
        "DROP",
        "RENAME",
        "TRUNCATE",
        "USE",
        "SET",
        "INSERT",
        "REPLACE",
        "PREPARE",
        "EXECUTE",
        "DEALLOCATE",
    ]
)
_REACHES_FURTHER = re.compile(
    r"""\A(?:CREATE|ALTER|DROP|RENAME)\s+(?:OR\s+REPLACE\s+)?(?:DEFINER\s*=\s*\S+\s+)?
        (?:USER|ROLE|SERVER|TABLESPACE|UNDO|LOGFILE|INSTANCE|RESOURCE|EVENT|LIBRARY|SPATIAL\s+REFERENCE|AGGREGATE)\b
      | \A(?:INSERT|REPLACE)\b.*\b(?:RAND|SEQ_\d|SELECT|SLEEP|BENCHMARK)
      | \bGLOBAL\b | \bPERSIST | \bDATA\s+DIRECTORY\b | \bSONAME\b | \bGET_LOCK\b | \bSLEEP\b | \bKILL\b | \bSHUTDOWN\b
      | \b(?:mysql|sys|performance_schema|information_schema)`?\s*\.
      | \A(?:USE|DROP\s+(?:DATABASE|SCHEMA)(?:\s+IF\s+EXISTS)?)\s+`?(?:mysql|sys|performance_schema|information_schema)\b
      | \bSET\s+(?:SESSION\s+|LOCAL\s+|@@)?(?:SESSION\.)?
        (?:sql_log_bin|binlog_format|autocommit|pseudo_\w+|gtid_next|transaction|password|role|default|max_statement_time
          |max_execution_time|debug\w*|wsrep\w*|completion_type|lock_wait_timeout|innodb_lock_wait_timeout|tx_\w+
          |(?:default_)?storage_engine\s*=\s*['"]?(?:MERGE|MRG_MYISAM|BLACKHOLE)
          |character_set_results|wait_timeout|session_track\w*)\b
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""What changes more than tables of the session's own, hides statements or engines without rows from the log, or takes long."""
_MOST_CHARACTERS = 20_000
_MOST_STATEMENTS = 3_000
"""Of a script: what goes beyond is made by a loop over the same ones."""
_SCRIPT_S = 120
"""Of one script: what takes longer makes tables without end, each of which is compared after each statement."""
_SLOW_S = 30
"""Scripts that take so long are told, so that nobody takes a run for one that hangs."""
LOCK_WAIT = "lock_wait_timeout=10"
"""No statement waits longer for a table; the servers' own default is a day or a year."""
_VARIABLES = {"ENGINE": "InnoDB", "engine_type": "InnoDB", "default_engine": "InnoDB", "MYSQLTEST_VARDIR": "/tmp"}


@dataclass(slots=True)
class Corpus:
    """A server that takes scripts, and what came of them: findings with the script of each."""

    server: Server
    suite: Suite
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[str, Finding]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Scripts that did not end, and where: the server crashed, gave no answer in time, or the script took too long."""
    script_s: float = _SCRIPT_S
    _present: str = ""

    def run(self, script: Path) -> None:
        """Runs a script's statements on emptied databases, and compares all tables after each that was logged."""
        text = script.read_text(encoding="utf-8", errors="surrogateescape")
        statements = [sql for sql in statements_of(text, self._included, _VARIABLES) if is_wanted(sql)]
        if not any(sql[:5].upper() in ("CREAT", "ALTER") for sql in statements):
            return
        self.counts["scripts"] += 1
        name = str(script.relative_to(self.suite.directory))
        session = FollowedSession(self.server)
        try:
            session.run(self._in_time(name, statements[:_MOST_STATEMENTS]))
        except pymysql.Error as error:
            if error.args[0] not in CONNECTION_LOST:
                raise
            self._restart(name)
        finally:
            session.close()
            self.counts += session.counts
            self.findings += [(name, finding) for finding in session.findings]

    def _in_time(self, name: str, statements: list[str]) -> Iterator[str]:
        begun_s = time.monotonic()
        for sql in statements:
            if time.monotonic() - begun_s > self.script_s:
                self.counts["scripts cut off"] += 1
                self.lost.append(f"{name}: cut off after {self.script_s} s, at {_line(sql)}")
                return
            self._present = sql
            yield sql

    def _included(self, path: str) -> str | None:
        file = self.suite.directory / path.strip().removeprefix("./")
        found = file.is_file() and file.resolve().is_relative_to(self.suite.directory.resolve())
        return file.read_text(encoding="utf-8", errors="surrogateescape") if found else None

    def _restart(self, name: str) -> None:
        """A statement that a client does not wait for goes on, with its locks: the next script would wait for them for ever."""
        try:
            self.server.sql("SELECT 1")
            what = "no answer in time"
        except pymysql.Error:
            what = "crash"
        self.counts[f"sessions lost ({what})"] += 1
        self.lost.append(f"{name}: {what}, at {_line(self._present)}")
        self.server.kill()
        self.server.restart()


def _line(sql: str) -> str:
    return " ".join(sql.split())[:400]


def is_wanted(sql: str) -> bool:
    """Whether a statement of a script may go to the server: DDL and what it depends on, within a session."""
    word = re.match(r"\w+", sql)
    if word is None or word[0].upper() not in _HEADS or len(sql) > _MOST_CHARACTERS:
        return False
    return _REACHES_FURTHER.search(sql) is None


def chosen(suite: Suite, files: int, seed: int) -> Iterator[Path]:
    """So many scripts of a suite in random order; all of them where *files* is 0."""
    scripts = [path for path in suite.scripts() if _LEFT_OUT.isdisjoint(path.relative_to(suite.directory).parts)]
    random.Random(seed).shuffle(scripts)
    yield from scripts[: files or None]


def report(corpus: Corpus) -> str:
    """What was counted, and a table: how often, what kind, why, and the first statement of each reason."""
    groups: dict[tuple[bool, str, str], list[tuple[str, Finding]]] = {}
    for script, finding in corpus.findings:
        groups.setdefault((finding.known, finding.kind, finding.group), []).append((script, finding))
    lines = [", ".join(f"{count} {what}" for what, count in corpus.counts.items())]
    for (known, kind, _), findings in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]))):
        script, first = findings[0]
        lines.append(f"{len(findings):5} {kind}{' (known)' if known else ''}: {first.reason}")
        lines.append(f"        {script}: {_line(first.statement)}")
    lines += [f"    did not end: {text}" for text in corpus.lost]
    return "\n".join(lines)


def main() -> None:
    """Runs the suite of one flavor and prints the report; the exit code says whether anything is wrong."""
    suite = SUITES["mysql" if sys.argv[1] == "mysql" else "mariadb"]
    files, seed = (int(sys.argv[at]) if len(sys.argv) > at else default for at, default in ((2, 0), (3, 1)))
    fetch(suite)
    begin_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="historian-corpus-") as directory:
        server = start_server(suite.server, Path(directory), "binlog_row_metadata=FULL", LOCK_WAIT)
        corpus = Corpus(server, suite)
        for at, script in enumerate(chosen(suite, files, seed)):
            begun_s = time.monotonic()
            corpus.run(script)
            if time.monotonic() - begun_s > _SLOW_S:
                sys.stderr.write(f"{script.name} took {time.monotonic() - begun_s:.0f} s\n")
            if at % 50 == 0:
                sys.stderr.write(f"{at} scripts, {dict(corpus.counts)}, {time.monotonic() - begin_s:.0f} s\n")
        server.kill()
    sys.stdout.write(f"{suite.package}: {report(corpus)}\n")
    sys.exit(1 if any(not finding.known for _, finding in corpus.findings) else 0)


if __name__ == "__main__":
    main()
