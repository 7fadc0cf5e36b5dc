"""What a run notes of its configuration: enough to see that it changed, and no secret, nor what a secret can be guessed by."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from connectors.config import PipelineConfig, load_config
from connectors.reconfiguration.noted import NotedConfig


def _config(directory: Path, salt: str) -> PipelineConfig:
    path = directory / "c.yaml"
    tables = f'{{"s.t": {{hash: {{mail: {{salt: "{salt}"}}}}}}}}'
    path.write_text(
        f"{{name: c, source: {{type: binlog-files, directory: .}}, sinks: [{{type: delta, path: lake, tables: {tables}}}]}}"
    )
    return load_config(path)


def test_a_changed_secret_is_seen_by_the_salt_of_what_is_noted(tmp_path: Path) -> None:
    noted = NotedConfig.parse(NotedConfig.of(_config(tmp_path, "summer")).text())
    assert noted is not None

    same, other = (NotedConfig.of(_config(tmp_path, word), noted.salt) for word in ("summer", "winter"))

    assert (noted.mark, noted.sinks) == (same.mark, same.sinks)
    assert noted.mark != other.mark
    assert noted.sinks != other.sinks


def test_the_same_secret_has_another_mark_each_time_and_many_words_have_the_same_one(tmp_path: Path) -> None:
    first, second = (NotedConfig.of(_config(tmp_path, "summer")).text() for _ in range(2))

    assert first != second
    assert "summer" not in first
    mark = first.partition("secret ")[2].partition('"')[0]
    assert 4 == len(mark), "more digits tell which of many words it is"
    assert mark != hashlib.sha256(b"notedsummer").hexdigest()[:4]


def test_what_an_earlier_release_noted_is_compared_as_it_was(tmp_path: Path) -> None:
    text = json.loads(NotedConfig.of(_config(tmp_path, "summer")).text())
    mark = hashlib.sha256(b"notedsummer").hexdigest()[:8]
    former = json.dumps({key: text[key] for key in ("path", "settings", "sinks")})
    former = former.replace(f"secret {former.partition('secret ')[2][:4]}", f"secret {mark}")
    noted = NotedConfig.parse(former)
    assert noted is not None

    assert noted.mark == NotedConfig.of(_config(tmp_path, "summer"), noted.salt).mark
    assert noted.mark != NotedConfig.of(_config(tmp_path, "winter"), noted.salt).mark
