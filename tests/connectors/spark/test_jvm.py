"""Jars are fetched once, by digest, from wherever Ivy is told to look."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from connectors.spark.jvm import DELTA_JARS, Jar, JvmPartMissing, cache_directory, delta_jars, fetch_jars, find_java

CONTENT = b"not really a jar"
GOOD = hashlib.sha256(CONTENT).hexdigest()

POM = """<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>part</artifactId>
<version>1.0</version><dependencies><dependency><groupId>org.example</groupId><artifactId>absent</artifactId>
<version>9</version></dependency></dependencies></project>"""

SETTINGS = """<ivysettings><settings defaultResolver="here"/><resolvers><filesystem name="here" m2compatible="true">
<ivy pattern="{0}/[module]-[revision].pom"/><artifact pattern="{0}/[artifact]-[revision].[ext]"/>
</filesystem></resolvers></ivysettings>"""


def _jar(sha256: str = GOOD, revision: str = "1.0") -> Jar:
    return Jar(organisation="org.example", name="part", revision=revision, sha256=sha256)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that Ivy takes for its repository, with part 1.0, which depends on what is not there."""
    directory = tmp_path / "repository"
    directory.mkdir()
    (directory / "part-1.0.pom").write_text(POM)
    (directory / "part-1.0.jar").write_bytes(CONTENT)
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(SETTINGS.format(directory))
    monkeypatch.setenv("PYSPARK_HISTORIAN_IVY_SETTINGS", str(settings))
    return directory


def test_jar_is_fetched_alone_and_leaves_nothing_else(repository: Path, tmp_path: Path) -> None:
    paths = fetch_jars([_jar()], tmp_path / "jars")

    assert [tmp_path / "jars" / "part-1.0.jar"] == paths
    assert [CONTENT] == [path.read_bytes() for path in paths]
    assert [".lock", "part-1.0.jar"] == sorted(path.name for path in (tmp_path / "jars").iterdir())


def test_jar_with_another_digest_is_refused(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(JvmPartMissing, match=rf"part-1\.0\.jar.*expected {'0' * 64}; found {GOOD}"):
        fetch_jars([_jar(sha256="0" * 64)], tmp_path / "jars")

    assert [".lock"] == [path.name for path in (tmp_path / "jars").iterdir()]


def test_jar_that_is_nowhere_is_named(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(JvmPartMissing, match=r"org\.example#part;2\.0: not found"):
        fetch_jars([_jar(revision="2.0")], tmp_path / "jars")


def test_cached_jars_need_neither_java_nor_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_HISTORIAN_CACHE", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    (tmp_path / "jars").mkdir()
    for jar in DELTA_JARS:
        (tmp_path / "jars" / jar.file_name).touch()

    assert [tmp_path / "jars" / jar.file_name for jar in DELTA_JARS] == delta_jars()


def test_missing_java_is_said_with_the_place_that_was_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    with pytest.raises(JvmPartMissing, match=r"no Java was found \(JAVA_HOME=/nowhere\); expected a Java 17"):
        find_java()


def test_cache_follows_its_own_variable_then_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.setenv("PYSPARK_HISTORIAN_CACHE", "/own")
    own = cache_directory()
    monkeypatch.delenv("PYSPARK_HISTORIAN_CACHE")

    assert (Path("/own"), Path("/xdg/pyspark-historian")) == (own, cache_directory())
