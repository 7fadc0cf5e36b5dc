"""Looks that an answer under way still takes when its endpoint is closed leave nothing open."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from connectors.config import PipelineConfig, load_config
from connectors.monitoring import looking
from connectors.monitoring.looking import HeldStore, Looks
from connectors.monitoring.retention import KeptLog
from connectors.tracking import sources
from historian.errors import SourceError, StoreError
from historian.store import Store


class _Opened:
    """A store or a reader: each use opens it, as theirs do."""

    def __init__(self) -> None:
        self.is_open = False

    def use(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def last_number(self) -> int:
        return 0

    def generation(self) -> str:
        return ""


@pytest.fixture
def config(tmp_path: Path) -> PipelineConfig:
    file = tmp_path / "shop.yaml"
    file.write_text(
        "name: shop\nsource: {type: mysql, host: h, user: u}\nsinks: [{type: console}]\n"
        f"history: {{store: 'sqlite:///{tmp_path}/store.db'}}\n"
    )
    return load_config(file)


def test_a_store_that_is_closed_is_not_opened_by_a_later_look(config: PipelineConfig) -> None:
    Store.open(config.history.store).close()
    held = HeldStore(config)
    with held.looked_at() as store:
        assert store is not None
    held.close()

    with pytest.raises(StoreError, match="the run ends"), held.looked_at():
        pass


def test_a_store_that_is_used_behind_its_close_is_closed_again(
    config: PipelineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = _Opened()
    monkeypatch.setattr(looking, "recorded_store", lambda _: store)
    held = HeldStore(config)

    with held.looked_at():
        held.close()
        store.use()

    assert not store.is_open


def test_a_reader_that_is_used_behind_its_close_is_closed_again_and_none_is_made(
    config: PipelineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[_Opened] = []

    def make(_: object) -> _Opened:
        made.append(_Opened())
        return made[-1]

    def state(*_: object, reader: _Opened, **__: object) -> dict[str, Any]:
        looks.close()
        reader.use()
        return {"lag": {}}

    monkeypatch.setattr(sources, "make_reader", make)
    monkeypatch.setattr(looking, "recorded_store", lambda _: _Opened())
    monkeypatch.setattr(looking, "connector_state", state)
    looks = Looks(config, HeldStore(config), KeptLog(lambda: None))
    looks.state()

    with pytest.raises(SourceError, match="the run ends"):
        looks.state()
    assert [False] == [reader.is_open for reader in made]
