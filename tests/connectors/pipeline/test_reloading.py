"""When a run takes another configuration, and when it goes back, apart from a run."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from connectors.config import load_config
from connectors.pipeline import reloading
from connectors.pipeline.reloading import Reloads
from connectors.readers.binlog.transport.connection import ConnectionLost, NotLetIn
from historian.errors import LeaseHeld, SinkError


@pytest.fixture
def reloads(tmp_path: Path) -> Reloads:
    """Of a configuration whose password is another one each time, and which was let in once."""
    count = tmp_path / "count"
    count.write_text("")
    program = tmp_path / "token.py"
    program.write_text(f"file = open({str(count)!r}, 'a+'); file.write('x'); file.seek(0); print(file.read())")
    path = tmp_path / "shop.yaml"
    path.write_text(
        f"name: shop\nsource: {{type: mysql, host: 127.0.0.1, port: 1, user: cdc, password: '${{command:{sys.executable} {program}}}'}}\n"
        f"history: {{store: 'sqlite:///{tmp_path}/store.db'}}\nsinks: [{{type: console}}]\n"
    )
    made = Reloads(load_config(path))
    made.let_in()
    return made


def test_what_is_fresh_each_time_is_taken_ever_more_rarely(reloads: Reloads, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, taken_s = 0.0, []
    monkeypatch.setattr(reloading.time, "monotonic", lambda: now_s)
    for second in range(70):
        now_s = float(second)
        assert isinstance(reloads.not_let_in(NotLetIn("refused")), ConnectionLost)
        if reloads.has_fresh():
            taken_s.append(second)
    assert [0, 1, 4, 11, 26, 57] == taken_s

    reloads.let_in()
    reloads.not_let_in(NotLetIn("refused"))
    assert reloads.has_fresh()


def test_another_store_is_not_taken_with_a_fresh_password(reloads: Reloads) -> None:
    document = reloads.config.document
    assert isinstance(document, dict)
    document["history"]["store"] = "sqlite:///elsewhere.db"
    reloads.not_let_in(NotLetIn("refused"))
    assert not reloads.has_fresh()


@pytest.mark.parametrize("error,goes_back", [(SinkError("away"), True), (LeaseHeld("held"), False)])
def test_a_run_goes_back_from_what_never_wrote_a_plan_unless_another_run_is_there(
    reloads: Reloads, error: Exception, goes_back: bool
) -> None:
    former = reloads.config
    reloads._former, reloads.config = former, load_config(former.path)

    def ends() -> bool:
        """Whether the error ends the run."""
        try:
            with reloads.way_back(threading.Event()):
                raise error
        except type(error):
            return True
        return False

    assert goes_back == (not ends())
    assert goes_back == (reloads.config is former)
    assert ends(), "there is nothing left to go back to" if goes_back else "another run has it"


def test_a_run_that_is_to_end_does_not_go_back(reloads: Reloads) -> None:
    reloads._former = load_config(reloads.config.path)
    stopping = threading.Event()
    stopping.set()

    with pytest.raises(SinkError), reloads.way_back(stopping):
        raise SinkError("away")
