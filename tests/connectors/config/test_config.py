"""One YAML file: every problem at once, each by its path, and never a secret."""

from __future__ import annotations

import json
import os
import re
import textwrap
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from connectors.backfill.replica import replica_of
from connectors.config import (
    BinlogFilesSource,
    CopyLimits,
    PauseAbove,
    PipelineConfig,
    RowServer,
    ServerIds,
    ServerSource,
    TableFilter,
    can_change,
    load_config,
    reread,
    revision,
)
from connectors.readers.binlog.transport.connection import TlsSettings
from connectors.tracking.sources import server_address
from historian.errors import ConfigError
from historian.names import TableName
from historian.secret import Secret
from sinks.delta import DeltaSettings
from sinks.shaping.rules import NO_RULES, Rules

ROOT = Path(__file__).parents[3]
SHOP = """
    name: shop
    source:
      type: mysql
      host: db.internal
      user: cdc
      password: ${env:SHOP_DB_PASSWORD}
      tls: {mode: verify_identity, ca: ca.pem}
      server_id: 5400-5499
      tables: ["shop.*", "!shop.audit_*"]
    history:
      store: sqlite:///state/shop.db
    sinks:
      - type: delta
        path: lake
    run:
      checkpoint: state/checkpoint
      trigger: 2 seconds
      max_batch_bytes: 256 MB
"""
SKETCH = """
    name: shop
    source:
      type: mysql                    # mysql | mariadb | binlog-files
      host: db.internal
      port: 3306
      user: cdc
      password: ${env:SHOP_DB_PASSWORD}
      tls: {mode: verify_identity, ca: ca.pem}
      server_id: 5400-5499           # one per connection; equal ids cut each other off
      tables: ["shop.*", "!shop.audit_*"]
      start: initial                 # initial | earliest | changes_only | a GTID set | file:offset
    history:
      store: sqlite:///state/shop.db
    sinks:
      - type: delta
        path: lake                   # or catalog: name.schema
        changelog: "{database}_{table}_changes"
        mirror: "{database}_{table}"
    run:
      checkpoint: state/checkpoint
      trigger: 2 seconds             # or: once
      max_batch_bytes: 256 MB
"""
SOURCE = "{type: mysql, host: db, user: cdc}"
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def _load(directory: Path, text: str, **environment: str) -> PipelineConfig:
    (directory / "ca.pem").touch()
    file = directory / "pipeline.yaml"
    file.write_text(textwrap.dedent(text))
    return load_config(file, environment=environment)


def _problems(directory: Path, text: str, **environment: str) -> tuple[str, ...]:
    """What is wrong, without the places in the file."""
    with pytest.raises(ConfigError) as caught:
        _load(directory, text, **environment)
    return tuple(re.sub(r", line \d+, column \d+$", "", problem) for problem in caught.value.problems)


def _source(directory: Path, text: str, **environment: str) -> Any:
    return _load(directory, f"name: shop\nsource: {text}\n", **environment).source


def test_small_files_are_joined_unless_a_table_says_otherwise(tmp_path: Path) -> None:
    tables = "{'a.*': {compact: null, writer: spark}, 'b.*': {compact: {files: 9}}}"
    sink = f"{{type: delta, path: lake, compact: {{target: 64 MB}}, tables: {tables}}}"
    (config,) = _load(tmp_path, f"name: shop\nsource: {SOURCE}\nsinks: [{sink}]").sinks
    delta = DeltaSettings(**config.settings)
    assert (delta.compact, delta.writer) == ((50, 64_000_000), "native")
    assert delta.tables == (
        ("a.*", (("compact", None), ("writer", "spark"))),
        ("b.*", (("compact", (9, 128_000_000)),)),
    )
    with pytest.raises(ConfigError, match=r"expected a number from 2 @ \$\.sinks\[0\]\.compact\.files"):
        _load(tmp_path, f"name: shop\nsource: {SOURCE}\nsinks: [{{type: delta, path: lake, compact: {{files: 1}}}}]")


def test_a_plan_before_its_time_takes_no_more_than_a_plan_may(tmp_path: Path) -> None:
    run = _load(tmp_path, f"name: shop\nsource: {SOURCE}\nrun: {{batch_bytes: 1 MB, max_batch_bytes: 2 MB}}").run
    assert (run.batch_bytes, run.max_batch_bytes) == (1_000_000, 2_000_000)
    assert _load(tmp_path, f"name: shop\nsource: {SOURCE}\nrun: {{max_batch_bytes: 3 MB}}").run.batch_bytes == 3_000_000
    with pytest.raises(ConfigError, match="expected a batch_bytes of max_batch_bytes at most"):
        _load(tmp_path, f"name: shop\nsource: {SOURCE}\nrun: {{batch_bytes: 3 MB, max_batch_bytes: 2 MB}}")


def test_a_whole_file_becomes_plain_values(tmp_path: Path) -> None:
    config = _load(tmp_path, SHOP, SHOP_DB_PASSWORD="s3cret")

    source = config.source
    assert isinstance(source, ServerSource)
    assert (source.flavor, source.host, source.port, source.password) == ("mysql", "db.internal", 3306, "s3cret")
    assert (source.tls.mode, source.tls.ca) == ("verify_identity", str(tmp_path / "ca.pem"))
    assert source.server_ids == ServerIds(first=5400, last=5499)
    assert source.start == "initial"
    assert config.history.store == f"sqlite:///{tmp_path}/state/shop.db"
    (sink,) = config.sinks
    assert (sink.type, sink.path) == ("delta", str(tmp_path / "lake"))
    assert DeltaSettings(**sink.settings) == DeltaSettings(path=sink.path)
    assert (config.run.once, config.run.trigger_s, config.run.max_batch_bytes) == (False, 2.0, 256_000_000)


def test_a_replica_that_rows_are_copied_from_is_reached_as_the_source_unless_it_says_otherwise(tmp_path: Path) -> None:
    said = "backfill: {server: {host: replica}}\n      tables:"
    source = _load(tmp_path, SHOP.replace("tables:", said), SHOP_DB_PASSWORD="s3cret").source
    assert isinstance(source, ServerSource)
    usual = RowServer(
        host="replica", port=3306, user="cdc", password="s3cret", tls=source.tls, compression=source.compression
    )
    assert usual == source.rows_from
    own = said.replace("replica}", "replica, port: 1, user: r, password: 0ther, tls: {mode: disabled}}")
    source = _load(tmp_path, SHOP.replace("tables:", own), SHOP_DB_PASSWORD="s3cret").source
    assert isinstance(source, ServerSource)
    tls = TlsSettings(mode="disabled")
    assert RowServer(host="replica", port=1, user="r", password="0ther", tls=tls) == source.rows_from
    assert "0ther" not in repr(source)


@pytest.mark.parametrize(
    "said, of_source, of_replica",
    [
        ("backfill: {server: {host: replica}}", "none", "none"),
        ("compression: zstd\n      backfill: {server: {host: replica}}", "zstd", "zstd"),
        ("compression: zlib\n      backfill: {server: {host: replica, compression: none}}", "zlib", "none"),
        ("backfill: {server: {host: replica, compression: zstd}}", "none", "zstd"),
    ],
)
def test_connections_are_compressed_as_is_said(tmp_path: Path, said: str, of_source: str, of_replica: str) -> None:
    source = _load(tmp_path, SHOP.replace("tables:", f"{said}\n      tables:"), SHOP_DB_PASSWORD="x").source
    assert isinstance(source, ServerSource)
    replica = replica_of(source)
    assert replica is not None
    assert (of_source, of_replica) == (server_address(source).compression, replica.address.compression)


def test_copies_are_as_gentle_as_is_said(tmp_path: Path) -> None:
    limits = "{rows_per_second: 10, bytes_per_second: 2 MB, pause_above: {threads_running: 9, replica_lag_seconds: 0}}"
    source = _load(tmp_path, SHOP.replace("tables:", f"backfill: {limits}\n      tables:"), SHOP_DB_PASSWORD="x").source
    assert isinstance(source, ServerSource)
    pause = PauseAbove(threads_running=9, replica_lag_s=0)
    assert CopyLimits(rows_per_s=10, bytes_per_s=2_000_000, pause_above=pause) == source.backfill


def test_a_file_with_every_key_of_the_plan_is_understood(tmp_path: Path) -> None:
    config = _load(tmp_path, SKETCH, SHOP_DB_PASSWORD="s3cret")
    usual = _load(tmp_path, SHOP, SHOP_DB_PASSWORD="s3cret")

    assert config == replace(usual, source=replace(usual.source, names_start=True))  # type: ignore[call-arg]


def test_what_is_left_out_has_a_default_beside_the_file(tmp_path: Path) -> None:
    config = _load(tmp_path, f"name: shop\nsource: {SOURCE}\n")

    assert config.history.store == f"sqlite:///{tmp_path}/state/shop.db"
    assert config.sinks == ()


def test_a_run_may_end_by_itself(tmp_path: Path) -> None:
    run = _load(tmp_path, f"name: shop\nsource: {SOURCE}\nrun: {{trigger: once}}").run

    assert (run.once, run.trigger_s) == (True, 0.0)


def test_the_default_server_ids_depend_on_the_name_alone(tmp_path: Path) -> None:
    ids = {name: _load(tmp_path, f"name: {name}\nsource: {SOURCE}").source for name in ("shop", "shop2")}
    again = _source(tmp_path, "{type: mysql, host: other, user: cdc}")

    assert len({source.server_ids for source in ids.values() if isinstance(source, ServerSource)}) == 2
    assert again.server_ids == ids["shop"].server_ids  # type: ignore[union-attr]
    assert len(again.server_ids) == 100


def test_binlog_files_need_no_server(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    source = _source(tmp_path, "{type: binlog-files, directory: logs, flavor: mariadb, start: 0-5-812}")

    assert isinstance(source, BinlogFilesSource)
    assert (source.paths(), source.flavor, source.start) == ((tmp_path / "logs",), "mariadb", "0-5-812")


def test_a_server_without_a_named_start_is_copied_and_those_who_copy_nothing_read_its_whole_log(tmp_path: Path) -> None:
    unnamed = _source(tmp_path, SOURCE)
    named = _source(tmp_path, "{type: mysql, host: db, user: cdc, start: initial}")
    earliest = _source(tmp_path, "{type: mysql, host: db, user: cdc, start: earliest}")
    (tmp_path / "logs").mkdir()
    files = _source(tmp_path, "{type: binlog-files, directory: logs}")

    found = [(source.start, source.log_start) for source in (unnamed, named, earliest, files)]
    assert [
        ("initial", "earliest"),
        ("initial", "initial"),
        ("earliest", "earliest"),
        ("earliest", "earliest"),
    ] == found


@pytest.mark.parametrize(
    "kind, start, expected",
    [
        ("mysql", "latest", "latest"),
        ("mysql", "binlog.000003:4711", "binlog.000003:4711"),
        ("mysql", f"{UUID.upper()}:3:1-2", f"{UUID}:1-3"),
        ("mariadb", "1-5-3,0-5-812", "0-5-812,1-5-3"),
        ("mariadb", "1000-1-12", "1000-1-12"),  # YAML takes it for a date
    ],
)
def test_a_start_is_read_in_the_words_of_its_flavor(tmp_path: Path, kind: str, start: str, expected: str) -> None:
    assert _source(tmp_path, f"\n  type: {kind}\n  host: db\n  user: cdc\n  start: {start}").start == expected


@pytest.mark.parametrize(
    "part, problem",
    [
        ("sinks: [{type: delta, path: l, tables: {'a.*': {mirrr: null}}}]", "mirror? @ $.sinks[0].tables.a.*.mirrr"),
        ("sinks: [{type: delta, path: l, compact: {file: 3}}]", "files? @ $.sinks[0].compact.file"),
        ("types: {columns: {a.b: {bitt: binary}}}", "bit1? @ $.types.columns.a.b.bitt"),
    ],
)
def test_a_misspelt_key_is_told_wherever_it_stands(tmp_path: Path, part: str, problem: str) -> None:
    assert (f"unknown key; did you mean {problem}",) == _problems(tmp_path, f"name: shop\nsource: {SOURCE}\n{part}")


@pytest.mark.parametrize(
    "columns, problems",
    [
        ("{types: {}}", {"missing @ {}.exclude", "unknown key; known: exclude @ {}.types"}),
        ("{exclude: 5}", {"expected a list @ {}.exclude (got 5)"}),
        ("[1]", {"expected a text; put it in quotes @ {}[0] (got 1)"}),
        ("5", {"expected a list @ {} (got 5)", "expected a mapping @ {} (got 5)"}),
    ],
)
def test_a_place_for_several_kinds_is_told_of_the_one_that_stands_there(
    tmp_path: Path, columns: str, problems: set[str]
) -> None:
    sinks = f"sinks: [{{type: delta, path: l, tables: {{'a.*': {{columns: {columns}}}}}}}]"
    expected = {problem.replace("{}", "$.sinks[0].tables.a.*.columns") for problem in problems}

    assert expected == set(_problems(tmp_path, f"name: shop\nsource: {SOURCE}\n{sinks}"))


def test_every_problem_is_listed_by_its_path(tmp_path: Path) -> None:
    text = """
        name: shop
        source:
          type: mysql
          prot: 3307
          port: x
          user: cdc
          password: ${env:SHOP_DB_PASSWORD}
          tls: {mode: verify}
          server_id: 5499-5400
          tables: [orders]
          start: 3e11fa47
        sinks:
          - {type: delta, path: lake, mirror: "{database}"}
        run: {trigger: 2, max_batch_bytes: 256 XB}
    """

    start = "expected initial, initial_only, earliest, latest, changes_only, FILE:OFFSET, or GTIDs of mysql: UUID[:TAG]:N[-M][:N[-M]]..., comma separated"
    target = "expected a name with {table}, and {database} where tables of several are wanted"
    assert set(_problems(tmp_path, text)) == {
        "unknown key; did you mean port? @ $.source.prot",
        "missing @ $.source.host",
        "expected a whole number @ $.source.port (got 'x')",
        "environment variable SHOP_DB_PASSWORD is not set @ $.source.password",
        "expected disabled, preferred, required, verify_ca or verify_identity @ $.source.tls.mode (got 'verify')",
        "expected ids from 1 to 4294967295, the lower one first @ $.source.server_id (got '5499-5400')",
        "expected DATABASE.TABLE, like shop.* or !shop.audit_* @ $.source.tables[0] (got 'orders')",
        f"{start} @ $.source.start (got '3e11fa47')",
        f"{target} @ $.sinks[0].mirror (got '{{database}}')",
        "expected a duration such as 2 seconds (units: ms, seconds, minutes, hours) @ $.run.trigger (got 2)",
        "expected a size such as 256 MB (units: b, kb, mb, gb, kib, mib, gib) @ $.run.max_batch_bytes (got '256 XB')",
    }


WRONG = {
    "name: shop\nsorce: {}": ("missing @ $.source", "unknown key; did you mean source? @ $.sorce"),
    "name: shop\nsource: {host: db}": ("missing; expected mysql, mariadb, binlog-files, kafka @ $.source.type",),
    "name: shop\nsource: {type: mysqll}": (
        "unknown type; did you mean mysql?; expected mysql, mariadb, binlog-files, kafka @ $.source.type (got 'mysqll')",
    ),
    f"name: a/b\nsource: {SOURCE}": (
        "expected letters, digits, _, . and -, a letter or digit first @ $.name (got 'a/b')",
    ),
    f"name: 1\nsource: {SOURCE}": ("expected a text; put it in quotes @ $.name (got 1)",),
    "name: shop\nsource: {type: mysql, host: db, user: u, tables: ['!a.b']}": (
        "no pattern takes a table in; begin with *.* or a database's tables @ $.source.tables",
    ),
    "name: shop\nsource: {type: mysql, host: db, user: u, tls: {mode: verify_ca}}": (
        "mode verify_ca needs ca, the file to verify the server's certificate with @ $.source.tls",
    ),
    f"name: shop\nsource: {SOURCE}\nsinks: [{{type: delta}}, {{type: delta, path: lake, catalog: main.shop}}]": (
        "expected path or catalog, one of the two @ $.sinks[0]",
        "expected path or catalog, one of the two @ $.sinks[1]",
    ),
    f"name: shop\nsource: {SOURCE}\nsinks: [{{type: delta, path: a, tables: {{'a.*': {{changelog: null, mirror: null}}}}}}]": (
        "expected different names for changelog, mirror and history, at least one of them (of tables a.*) @ $.sinks[0]",
    ),
    f"name: shop\nsource: {SOURCE}\nsinks: [{{type: delta, path: a, tables: {{'a.*': {{mirror: b}}}}}}]": (
        "expected a name with {table}, and {database} where tables of several are wanted (of tables a.*) @ $.sinks[0]",
    ),
    f"name: shop\nsource: {SOURCE}\nsinks: [{{type: delta, path: a, tables: {{'a.b': {{mirror: '{{b}}'}}}}}}]": (
        "expected a name with {table}, and {database} where tables of several are wanted @ $.sinks[0].tables.a.b.mirror (got '{b}')",
    ),
    f"name: shop\nsource: {SOURCE}\nsinks: [{{type: delta, path: a, tables: {{'!a.*': {{mirror_deletes: soft}}}}}}]": (
        (
            "expected DATABASE.TABLE, each with * and ? as wildcards; of several that match the last one wins"
            " @ $.sinks[0].tables.!a.*.[key]"
        ),
    ),
    f"name: shop\nsource: {SOURCE}\nsinks: [{{type: delta, path: a, evolution: {{preset: odd, truncate: never, trunc: 1}}}}]": (
        "expected strict, evolve or lenient @ $.sinks[0].evolution.preset (got 'odd')",
        "expected apply, keep, ignore, quarantine or fail @ $.sinks[0].evolution.truncate (got 'never')",
        "unknown key; did you mean truncate? @ $.sinks[0].evolution.trunc",
    ),
    f"name: shop\nsource: {SOURCE}\nsinks: [{{type: delta, path: a, tables: {{'a.*': {{evolution: {{change_key: keep}}}}}}}}]": (
        "expected apply, quarantine or fail @ $.sinks[0].tables.a.*.evolution.change_key (got 'keep')",
    ),
    f"name: shop\nsource: {SOURCE}\nsinks: [{{type: delta, catalog: shop}}]": (
        "expected catalog.schema @ $.sinks[0].catalog (got 'shop')",
    ),
    f"name: shop\nsource: {SOURCE}\nrun: {{trigger: twice}}": (
        "expected a duration such as 2 seconds (units: ms, seconds, minutes, hours) @ $.run.trigger (got 'twice')",
    ),
    "name: shop\nsource: {type: binlog-files}": ("expected either directory or files @ $.source",),
    "- a\n- b": ("expected a mapping with name and source @ $",),
    "name: a\nname: b": ("not YAML: key name stands twice @ line 2, column 1",),
    "name: [": ("not YAML: expected the node content, but found '<stream end>' @ line 1, column 8",),
}


def test_evolution_is_a_preset_or_words_for_kinds_of_edits(tmp_path: Path) -> None:
    text = """
        name: shop
        source: {type: mysql, host: db, user: u}
        sinks:
          - type: delta
            path: lake
            evolution: {preset: lenient, truncate: ignore}
            tables: {"a.*": {evolution: strict}, "b.*": {mirror: null}, "c.*": {evolution: {drop_column: keep}}}
    """
    (tmp_path / "c.yaml").write_text(textwrap.dedent(text))
    (sink,) = load_config(tmp_path / "c.yaml").sinks

    assert (("preset", "lenient"), ("truncate", "ignore")) == sink.settings["evolution"]
    assert (
        ("a.*", (("evolution", (("preset", "strict"),)),)),
        ("b.*", (("mirror", None),)),
        ("c.*", (("evolution", (("drop_column", "keep"),)),)),
    ) == sink.settings["tables"]


def test_how_long_mirrors_wait_is_a_duration_for_all_tables_or_some(tmp_path: Path) -> None:
    text = """
        name: shop
        source: {type: mysql, host: db, user: u}
        sinks:
          - type: delta
            path: lake
            mirror_every: 1.5 minutes
            tables: {"a.*": {mirror_every: 0}, "b.*": {mirror_every: 250ms, mirror: null}}
    """
    (tmp_path / "c.yaml").write_text(textwrap.dedent(text))
    (sink,) = load_config(tmp_path / "c.yaml").sinks

    assert 90_000_000 == sink.settings["mirror_every_us"]
    settings = DeltaSettings(**sink.settings)
    names = [TableName("a", "t"), TableName("b", "t"), TableName("c", "t")]
    assert [0, 250_000, 90_000_000] == [settings.for_table(name).mirror_every_us for name in names]


@pytest.mark.parametrize(
    "said, problem",
    [
        ("mirror_every: 5", "expected a duration such as 5 minutes, or 0"),
        ("mirror_every: soon", "expected a duration such as 2 seconds"),
        ("mirror_every: 1 minute, changelog: null", "expected a changelog where mirror_every is set"),
        ("mirror_every: 1 minute, tables: {'a.*': {changelog: null}}", r"are applied.*\(of tables a\.\*\)"),
    ],
)
def test_a_wait_that_cannot_be_is_refused(tmp_path: Path, said: str, problem: str) -> None:
    text = f"name: shop\nsource: {{type: mysql, host: db, user: u}}\nsinks: [{{type: delta, path: lake, {said}}}]\n"
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ConfigError, match=problem):
        load_config(tmp_path / "c.yaml")


@pytest.mark.parametrize("text, expected", WRONG.items())
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, expected: tuple[str, ...]) -> None:
    assert _problems(tmp_path, text) == expected


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "none.yaml")

    assert str(caught.value) == (
        f"the configuration cannot be read ({tmp_path}/none.yaml)\n  - No such file or directory"
    )


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    problems = _problems(tmp_path, "name: shop\nsource: {type: binlog-files, directory: logs}")

    assert problems == (f"no such file or directory, seen from {tmp_path} @ $.source.directory (got 'logs')",)


def test_a_missing_variable_does_not_hide_other_problems_and_a_default_helps(tmp_path: Path) -> None:
    text = "name: shop\nsource: {type: mysql, host: '${env:HOST:-db}', port: '${env:PORT}', user: 1}"

    assert _problems(tmp_path, text) == (
        "environment variable PORT is not set @ $.source.port (got '${env:PORT}')",
        "expected a text; put it in quotes @ $.source.user (got 1)",
    )


def test_values_from_the_environment_are_checked_but_not_printed(tmp_path: Path) -> None:
    text = "name: shop\nsource: {type: mysql, host: '${env:HOST:-db}', port: '${env:PORT}', user: cdc}"

    assert _problems(tmp_path, text, PORT="hidden") == ("expected a whole number @ $.source.port (got '${env:PORT}')",)
    assert _load(tmp_path, text, PORT="3307").source == replace(_source(tmp_path, SOURCE), port=3307)


@pytest.mark.parametrize(
    "text", ["${HOST}", "ab${SECRETpart!", "${env:}", "${env:1}", "${file:a", "${password:x}", "${command: }"]
)
@pytest.mark.parametrize("key", ["host", "password"])
def test_a_reference_of_another_form_is_refused_and_not_printed(tmp_path: Path, key: str, text: str) -> None:
    """It may be a part of a password."""
    source = {"type": "mysql", "host": "db", "user": "cdc", key: text}

    (problem,) = _problems(tmp_path, f"name: shop\nsource: {json.dumps(source)}", HOST="db")

    expected = "expected ${env:NAME}, ${env:NAME:-default}, ${file:PATH} or ${command:PROGRAM}, or $${ for a literal ${"
    assert problem == f"not a reference; {expected} @ $.source.{key}"


def test_references_to_files_and_programs_and_literal_ones(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    source = "{type: mysql, host: '${command:printf %s db}.internal', user: 'c$${dc', password: 'a-${file:secret}'}"

    config = _load(tmp_path, f"name: shop\nsource: {source}")

    assert isinstance(config.source, ServerSource)
    assert (config.source.host, config.source.user, config.source.password) == ("db.internal", "c${dc", "a-s3cret")


@pytest.mark.parametrize(
    "reference, problem",
    [
        ("${file:none}", "file {base}/none cannot be read: No such file or directory"),
        ("${file:latin}", "file {base}/latin is not UTF-8"),
        ("${file:~nobody-of-that-name/x}", "no path of a file: Could not determine home directory."),
        ("${command:false}", "command false ended with 1"),
        ("${command:ls /none}", "command ls ended with 2"),
        (
            "${command:no-such-program}",
            "a command cannot be run: [Errno 2] No such file or directory: 'no-such-program'",
        ),
        ('${command:a "b}', "a command cannot be run: No closing quotation"),
        ("${command:printf \\\\377}", "what command printf prints is not UTF-8"),
    ],
)
def test_a_reference_that_cannot_be_filled_in_says_why(tmp_path: Path, reference: str, problem: str) -> None:
    (tmp_path / "latin").write_bytes(b"\xff")
    source = {"type": "mysql", "host": "db", "user": "cdc", "password": reference}

    found = _problems(tmp_path, f"name: shop\nsource: {json.dumps(source)}", PATH=os.environ["PATH"])

    assert found == (f"{problem.format(base=tmp_path)} @ $.source.password",)


def test_a_problem_is_told_with_its_place_in_the_file(tmp_path: Path) -> None:
    text = "name: shop\nsource:\n  type: mysql\n  user: cdc\n  prot: 1\n  tables:\n  - 'a.*'\n  - 5\n"

    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)

    assert caught.value.problems == (
        "missing @ $.source.host, line 2, column 1",
        "unknown key; did you mean port? @ $.source.prot, line 5, column 3",
        "expected a text; put it in quotes @ $.source.tables[1] (got 5), line 8, column 5",
    )


@pytest.mark.parametrize(
    "text",
    [
        "name: x\nsource: &a [*a]",
        "name: x\na: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in pairwise("abcdefgh")),
    ],
)
def test_aliases_that_unfold_without_end_are_refused(tmp_path: Path, text: str) -> None:
    assert _problems(tmp_path, text) == ("expected at most 100000 keys and items, 50 deep, aliases unfolded @ $",)


def test_a_template_that_was_not_filled_in_is_refused(tmp_path: Path) -> None:
    (problem,) = _problems(tmp_path, "name: shop\nsource: {type: mysql, host: db, user: cdc, password: {{ vault }}}")

    assert problem.startswith("not YAML: a key is no text @ line 2")


def test_a_document_of_any_depth_is_refused_by_an_error_of_ours(tmp_path: Path) -> None:
    (problem,) = _problems(tmp_path, "name: " + "[" * 5000)

    assert problem.startswith("not YAML: ")


@pytest.mark.parametrize("name", ["../{table}", "/{table}", "a//{table}", "./{table}", "{table}/.."])
def test_targets_are_inside_of_their_lake(tmp_path: Path, name: str) -> None:
    text = f"name: shop\nsource: {SOURCE}\nsinks: [{{type: delta, path: lake, mirror: '{name}'}}]"
    expected = "expected a name inside of the sink's own directory, without parts that are empty, . or .."

    assert _problems(tmp_path, text) == (f"{expected} @ $.sinks[0].mirror (got '{name}')",)


def test_a_trigger_of_no_time_is_refused(tmp_path: Path) -> None:
    text = f"name: shop\nsource: {SOURCE}\nrun: {{trigger: 0 seconds}}"

    assert _problems(tmp_path, text) == ("expected a duration above zero, or once @ $.run.trigger (got '0 seconds')",)


@pytest.mark.parametrize(
    "source",
    [
        "{type: mysql, host: db, user: cdc, pasword: hunter2}",
        "{type: mysql, host: db, user: [], password: hunter2}",
        "{type: mysql, host: db, user: cdc, password: [hunter2]}",
        "{type: mysql, host: db, user: cdc, port: x, password: '${env:SECRET}'}",
        "{type: mysql, host: hunter2, user: cdc, port: x, password: '${env:SECRET}'}",
    ],
)
def test_no_message_holds_a_secret(tmp_path: Path, source: str) -> None:
    text = f"name: shop\nsource: {source}\nhistory: {{store: 'postgresql://u:hunter2@h/db', x: 1}}"

    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text, SECRET="hunter2")

    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_no_repr_holds_a_secret(tmp_path: Path) -> None:
    text = "name: shop\nsource: {type: mysql, host: db, user: cdc, password: hunter2}\n"
    config = _load(tmp_path, text + "history: {store: 'postgresql://u:hunter2@h/db'}")

    assert config.source.password == "hunter2"  # type: ignore[union-attr]
    assert "hunter2" not in repr(config)


def test_the_revision_follows_what_a_batch_means(tmp_path: Path) -> None:
    config = _load(tmp_path, SHOP, SHOP_DB_PASSWORD="a")
    other_password = _load(tmp_path, SHOP, SHOP_DB_PASSWORD="b")
    other_host = _load(tmp_path, SHOP.replace("db.internal", "replica"), SHOP_DB_PASSWORD="a")
    other_tables = _load(tmp_path, SHOP.replace("!shop.audit_*", "!shop.log"), SHOP_DB_PASSWORD="a")
    other_lake = _load(tmp_path, SHOP.replace("path: lake", "path: pond"), SHOP_DB_PASSWORD="a")

    assert revision(config) == revision(other_password) == revision(other_host)
    assert len({revision(each) for each in (config, other_tables, other_lake)}) == 3


@pytest.mark.parametrize(
    "patterns, database, table, wanted",
    [
        (("shop.*",), "shop", "orders", True),
        (("shop.*",), "shop2", "orders", False),
        (("shop.*",), "shop", "a.b", True),
        (("shop.order?",), "shop", "orders", True),
        (("shop.order?",), "shop", "order", False),
        (("shop.Orders",), "shop", "orders", False),
        (("shop.[a]",), "shop", "a", False),
        (("!shop.audit_*", "shop.*"), "shop", "audit_log", False),
        (("shop.*", "!shop.audit_*", "shop.audit_log"), "shop", "audit_log", False),
        (("*.*",), "mysql", "user", False),
        (("mysql.*",), "MYSQL", "user", False),
    ],
)
def test_a_table_is_wanted_by_pattern(patterns: tuple[str, ...], database: str, table: str, wanted: bool) -> None:
    assert TableFilter(patterns)(TableName(database, table)) is wanted


def test_choices_of_types_are_rules_from_all_columns_to_some(tmp_path: Path) -> None:
    file = tmp_path / "typed.yaml"
    file.write_text(
        """
name: typed
source: {type: mysql, host: h, user: u}
types:
  tinyint1: boolean
  zero_dates: null_and_count
  columns:
    "old.*": {zero_dates: text, time: text}
    "shop.orders.id": {bigint_unsigned: int64}
    "shop.docs": {json: variant, invalid_variant: dead_letter, invalid_json: null_and_count}
    "shop.empty": {}
"""
    )
    types = load_config(file).types
    assert [(rule.pattern, dict(rule.values)) for rule in types.rules] == [
        ("", {"tinyint1": "boolean", "zero_dates": "null_and_count"}),
        ("old.*", {"time": "text", "zero_dates": "text"}),
        ("shop.orders.id", {"bigint_unsigned": "int64"}),
        ("shop.docs", {"invalid_json": "null_and_count", "invalid_variant": "dead_letter", "json": "variant"}),
    ]


@pytest.mark.parametrize(
    "types,problem",
    [
        ("{bigint_unsigned: int32}", "$.types.bigint_unsigned"),
        ("{zero_dates: never}", "$.types.zero_dates"),
        ("{zero_dates: null}", "expected a policy such as null_and_count, not null @ $.types.zero_dates"),
        ("{invalid_member: text}", "$.types.invalid_member"),
        ("{json: struct}", "$.types.json"),
        ("{json_: variant}", "$.types.json_"),
        ("{tinyint: boolean}", "$.types.tinyint"),
        ("{columns: {orders: {time: text}}}", "$.types.columns"),
        ("{columns: {shop.orders: {bit: binary}}}", "bit"),
    ],
)
def test_other_choices_are_problems_with_their_path(tmp_path: Path, types: str, problem: str) -> None:
    file = tmp_path / "typed.yaml"
    file.write_text(f"name: typed\nsource: {{type: mysql, host: h, user: u}}\ntypes: {types}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert problem in str(caught.value)
    assert len(caught.value.problems) == 1


def test_choices_of_types_change_the_revision(tmp_path: Path) -> None:
    revisions = set()
    for types in ("{}", "{time: text}", "{columns: {shop.t: {time: text}}}"):
        file = tmp_path / "typed.yaml"
        file.write_text(f"name: typed\nsource: {{type: mysql, host: h, user: u}}\ntypes: {types}\n")
        revisions.add(revision(load_config(file)))
    assert len(revisions) == 3


RULES = """
    name: shop
    source: {type: mysql, host: db, user: cdc}
    sinks:
      - type: delta
        path: lake
        tables:
          "shop.*":
            columns: {exclude: [password]}
            mask: {card: "****", salary: 0, share: 1.5, born: null}
            hash: {email: {salt: "${env:SALT}"}}
            truncate: {note: 40}
            compute: {total_eur: "total * 1.1"}
            where: "country = 'DE'"
            key: [id]
          shop.few: {columns: [id, name], mask: {card: "-"}}
"""


def test_what_is_done_to_columns_and_rows_is_said_by_table(tmp_path: Path) -> None:
    config = _load(tmp_path, RULES, SALT="pfeffer")
    settings = DeltaSettings(**config.sinks[0].settings)
    rules = settings.for_table(TableName("shop", "few")).rules

    assert "pfeffer" not in repr(config)
    assert revision(config) == revision(_load(tmp_path, RULES, SALT="other"))
    assert rules == Rules(
        columns=("id", "name"),
        exclude=("password",),
        mask=(("card", "-"), ("salary", "0"), ("share", "1.5"), ("born", None)),
        hash=(("email", Secret("pfeffer")),),
        truncate=(("note", 40),),
        compute=(("total_eur", "total * 1.1"),),
        where="country = 'DE'",
    )
    assert settings.for_table(TableName("other", "t")).rules == NO_RULES


def test_many_tables_are_one_by_a_glob(tmp_path: Path) -> None:
    text = """
        name: shop
        source: {type: mysql, host: db, user: cdc}
        sinks:
          - type: delta
            path: lake
            tables:
              "shop_*.orders": {into: {name: shop.orders, shard_columns: {shard: "{database}"}}, mirror_deletes: soft}
              shop_test.orders: {into: null}
    """
    settings = DeltaSettings(**_load(tmp_path, text).sinks[0].settings)
    shard, one, apart = (settings.for_table(TableName(name, "orders")) for name in ("shop_1", "shop", "shop_test"))

    assert shard == one
    assert one.into == ("shop.orders", (("shard", "{database}"),))
    assert one.shape == "changelog,mirror (soft),into shop.orders (shard = {database})"
    assert apart.into is None


ONE = 'into: {name: a.t, shard_columns: {s: "{database}"}}'


@pytest.mark.parametrize(
    "said, problem",
    [
        (
            '"a_*.t": {into: {name: t, shard_columns: {}}}',
            "@ $.sinks[0].tables.a_*.t.into.shard_columns",
        ),
        (
            f'"a_*.*": {{{ONE}}}',
            (
                "into.shard_columns: expected {table} in a shard column, since a_*.* matches tables that differ in it (got {database})"
                " (of tables a_*.*) @ $.sinks[0]"
            ),
        ),
        (
            '"a_*.t": {into: {name: a.t, shard_columns: {s: "{schema}"}}}',
            "into.shard_columns.s: expected a text with {database} or {table} (got '{schema}') (of tables a_*.t) @ $.sinks[0]",
        ),
        (
            '"a_*.t": {into: {name: a.t, shard_columns: {op: "{database}"}}}',
            (
                "into.shard_columns: expected another name than the changelog's own columns have (got op) (of tables a_*.t)"
                " @ $.sinks[0]"
            ),
        ),
        (
            f'"a_*.t": {{{ONE}, evolution: lenient}}',
            (
                "evolution: expected apply, repair, fail, quarantine, where into is set (got keep of drop_column, new_column of change_type, "
                "new_column of computed_values, keep of truncate, keep of drop_table) (of tables a_*.t) @ $.sinks[0]"
            ),
        ),
        (
            f'"a_*.t": {{{ONE}, keyless: rows}}',
            "keyless: expected changelog, where into is set (got rows) (of tables a_*.t) @ $.sinks[0]",
        ),
        (
            f'"a_*.t": {{{ONE}, key: [id]}}',
            "key: expected no key of their own, where into is set (got id) (of tables a_*.t) @ $.sinks[0]",
        ),
        (
            f'"a_*.t": {{{ONE}}}, "b_*.t": {{{ONE}}}',
            "into.name: expected another table than that of a_*.t, not a.t (of tables b_*.t) @ $.sinks[0]",
        ),
    ],
)
def test_tables_that_cannot_be_one_say_where(tmp_path: Path, said: str, problem: str) -> None:
    text = f"""
        name: shop
        source: {SOURCE}
        sinks: [{{type: delta, path: lake, tables: {{{said}}}}}]
    """

    assert problem in "; ".join(_problems(tmp_path, text))


@pytest.mark.parametrize(
    "said, problem",
    [
        ("{mask: {a: true}}", "expected a text, a number or null @ $.sinks[0].tables.shop.*.mask.a (got True)"),
        ("{truncate: {a: 0}}", "expected a number from 1 @ $.sinks[0].tables.shop.*.truncate.a (got 0)"),
        ("{hash: {a: {}}}", "missing @ $.sinks[0].tables.shop.*.hash.a.salt"),
        ("{hash: {a: {salt: [geheim]}}}", "expected a text; put it in quotes @ $.sinks[0].tables.shop.*.hash.a.salt"),
        ("{where: ''}", "expected a text that is not empty @ $.sinks[0].tables.shop.*.where (got '')"),
        (
            "{hash: {a: {salt: x}}, mask: {A: y}}",
            "expected one thing to be done to A, not hash and mask @ $.sinks[0].tables.shop.*",
        ),
    ],
)
def test_rules_that_cannot_be_say_where(tmp_path: Path, said: str, problem: str) -> None:
    text = f"""
        name: shop
        source: {SOURCE}
        sinks: [{{type: delta, path: lake, tables: {{"shop.*": {said}}}}}]
    """

    assert _problems(tmp_path, text) == (problem,)


def test_what_lets_a_run_in_is_read_again_and_nothing_else(tmp_path: Path) -> None:
    path, secret = tmp_path / "c.yaml", tmp_path / "secret"
    secret.write_text("first")
    text = 'name: c\nsource: {type: mysql, host: h, user: u, password: "${file:secret}"}\n'
    path.write_text(text)
    config = load_config(path)
    assert can_change(config)
    assert reread(config) is config

    path.write_text(text.replace("host: h", "host: other"))
    secret.unlink()
    assert reread(config) is config
    secret.write_text("second")
    fresh = reread(config)

    assert isinstance(fresh.source, ServerSource)
    assert ("h", "second") == (fresh.source.host, fresh.source.password)
    assert reread(fresh) is fresh
    path.write_text("name: c\nsource: {type: mysql, host: h, user: u, password: 'a$${b'}\n")
    assert not can_change(load_config(path))


@pytest.mark.parametrize(
    "key, value, problem",
    [
        ("run: {max_batch_bytes: %s GB}", "9" * 400, "expected a size that is a number"),
        ("run: {trigger: %s hours}", "9" * 400, "expected a duration that is a number"),
        (
            "sinks: [{type: delta, path: %s}]",
            "~nobody-of-that-name/lake",
            "no path: Could not determine home directory.",
        ),
        ("source: {schema: %s}", "x" * 5000, "no path: File name too long"),
    ],
)
def test_what_no_number_or_path_can_be_is_refused(tmp_path: Path, key: str, value: str, problem: str) -> None:
    path = tmp_path / "shop.yaml"
    source = "" if key.startswith("source") else "source: {type: mysql, host: h, user: u}\n"
    written = key % value
    path.write_text(f"name: shop\n{source}{written.replace('{schema', '{type: mysql, host: h, user: u, schema')}\n")

    with pytest.raises(ConfigError) as error:
        load_config(path)

    assert [problem] == [each.partition(" @ ")[0] for each in error.value.problems]
