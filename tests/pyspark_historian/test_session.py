"""Where a session of ``local_session`` runs, and whom it listens to. No Spark is started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pyspark_historian import session


@pytest.mark.parametrize(
    "said,expected",
    [
        ({}, (True, None, None)),
        ({"master": "spark://head:7077"}, (False, "spark://head:7077", None)),
        ({"settings": {"spark.master": "k8s://head"}}, (False, None, {"spark.master": "k8s://head"})),
        ({"settings": {"spark.ui.enabled": "true"}}, (True, None, {"spark.ui.enabled": "true"})),
    ],
)
@pytest.mark.parametrize("default", ["", "spark://of.defaults:7077"])
def test_a_session_listens_on_loopback_alone_where_no_other_machine_is_to_reach_it(
    said: dict[str, Any],
    expected: tuple[bool, str | None, Any],
    default: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    made = []

    @contextmanager
    def quiet(*, loopback: bool) -> Iterator[None]:
        made.append(loopback)
        yield

    def spark_session(*, jars: list[Path], master: str | None, name: str, settings: Any) -> None:
        made.extend((master, settings))
        assert (jars, name) == ([Path("delta.jar")], "historian")

    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text(f"spark.master {default}\n" if default else "")
    monkeypatch.setattr(session, "quiet_start", quiet)
    monkeypatch.setattr(session, "spark_session", spark_session)
    monkeypatch.setattr(session, "delta_jars", lambda: [Path("delta.jar")])

    session.local_session(**said)

    loopback, master, settings = expected
    names_master = master is not None or "spark.master" in (settings or {})
    assert (loopback if names_master or not default else False, master, settings) == tuple(made)
