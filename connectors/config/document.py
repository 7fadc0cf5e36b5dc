"""The YAML document's shape. Each model turns itself into the plain value that the rest of the project is given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field, SecretStr, model_validator

from connectors.config import settings
from connectors.config.evolution import evolution_settings
from connectors.config.filters import check_pattern
from connectors.config.model import Location, Model
from connectors.config.notify_document import NotifyDocument
from connectors.config.run_document import RunDocument
from connectors.config.sources import BinlogFilesDocument, ServerDocument
from connectors.config.targets import NOT_ONE_EACH, TableDocument, TargetName, TargetsDocument
from connectors.config.topic_source import KafkaDocument
from connectors.config.type_options import TypesDocument
from historian.globs import is_exact
from historian.plans.evolution import EvolutionSettings
from historian.plans.shards import IntoSettings, evolution_problems, group_problems
from historian.values.policies import DEAD_LETTER, REASONS

__all__ = ["SINKS", "ConsoleDocument", "DeltaDocument", "Document", "HistoryDocument", "ParquetDocument"]


def _glob(text: str) -> str:
    if text.startswith("!"):
        raise ValueError(
            "expected DATABASE.TABLE, each with * and ? as wildcards; of several that match the last one wins"
        )
    check_pattern(text)
    return text


def _schema(text: str) -> str:
    if text.count(".") != 1 or not all(text.split(".")):
        raise ValueError("expected catalog.schema")
    return text


_Schema = Annotated[str, AfterValidator(_schema)]


class HistoryDocument(Model):
    """Where history and plans are kept."""

    store: SecretStr = Field(
        default=SecretStr(""),
        description="URL of SQLite, `mysql://`, `mariadb://` or `postgresql://`. By default `sqlite:///state/NAME.db`.",
    )

    def plain(self, name: str, base: Path) -> settings.HistoryConfig:
        """The plain value; the path of an SQLite file is made absolute."""
        url = self.store.get_secret_value() or f"sqlite:///state/{name}.db"
        scheme, found, path = url.partition(":///")
        if found and scheme.startswith("sqlite") and path and not path.startswith(":memory:"):
            url = f"{scheme}:///{(base / path).resolve()}"
        return settings.HistoryConfig(store=url)


class DeltaDocument(TargetsDocument):
    """A lake of Delta tables."""

    keeps_dead_letters: ClassVar[bool] = True
    type: Literal["delta"]
    path: Location = Field(
        default=None,
        description="Directory of the lake, or a URL that Spark can write to. Either this key or `catalog` is required.",
    )
    catalog: _Schema = Field(default="", description="Schema of a Spark catalog, such as `spark_catalog.lake`.")
    tables: dict[Annotated[str, AfterValidator(_glob)], TableDocument] = Field(
        default={},
        description="Keys for some tables, by a glob on `DATABASE.TABLE`. If several globs match, the last one wins.",
    )

    @model_validator(mode="after")
    def _targets(self) -> DeltaDocument:
        chosen = self._chosen()
        for pattern, keys in chosen.items():
            where = f" (of tables {pattern})" if pattern else ""
            kinds = (keys.get(kind, getattr(self, kind)) for kind in ("changelog", "mirror", "history"))
            names = [name for name in kinds if name is not None]
            if not (is_exact(pattern) or keys.get("into") or all("{table" in name for name in names)):
                raise ValueError(f"{NOT_ONE_EACH}{where}")
            if not names or len(set(names)) < len(names):
                raise ValueError(
                    f"expected different names for changelog, mirror and history, at least one of them{where}"
                )
            if keys.get("mirror_every_us", self.mirror_every) and keys.get("changelog", self.changelog) is None:
                raise ValueError(
                    f"expected a changelog where mirror_every is set: deferred rows are applied from it{where}"
                )
            _refuse_shards(pattern, keys)
        _refuse_shared({pattern: keys["into"] for pattern, keys in chosen.items() if keys.get("into")})
        if (self.path is None) == (not self.catalog):
            raise ValueError("expected path or catalog, one of the two")
        return self

    def _chosen(self) -> dict[str, dict[str, Any]]:
        """What each pattern says, and "" for what holds for all tables."""
        own = {"evolution": self._evolution()}
        return {"": own, **{pattern: {**own, **dict(chosen.chosen())} for pattern, chosen in self.tables.items()}}

    def _evolution(self) -> EvolutionSettings:
        """With the preset, which a table's own actions need not name."""
        return evolution_settings(self.evolution.model_dump())

    def plain(self) -> settings.SinkConfig:
        """The plain value."""
        said = {
            **dict(self.plain_values(only_set=False)),
            "path": self.path or "",
            "catalog": self.catalog,
            "evolution": self._evolution(),
            "tables": tuple((pattern, chosen.chosen()) for pattern, chosen in self.tables.items()),
        }
        return settings.SinkConfig(type=self.type, settings=said)


class ParquetDocument(Model):
    """Directories of Parquet files."""

    keeps_dead_letters: ClassVar[bool] = False
    type: Literal["parquet"]
    path: Location = Field(description="Directory of the changelogs, or a URL that `pyarrow.fs` can write to.")
    changelog: TargetName = Field(default="{database}_{table}_changes", description="Name of each table's directory.")

    def plain(self) -> settings.SinkConfig:
        """The plain value."""
        return settings.SinkConfig(type=self.type, settings={"path": self.path or "", "changelog": self.changelog})


class ConsoleDocument(Model):
    """Lines of JSON on standard output."""

    keeps_dead_letters: ClassVar[bool] = True
    type: Literal["console"]

    def plain(self) -> settings.SinkConfig:
        """The plain value."""
        return settings.SinkConfig(type=self.type)


_Source = Annotated[ServerDocument | BinlogFilesDocument | KafkaDocument, Field(discriminator="type")]
_AnySink = DeltaDocument | ParquetDocument | ConsoleDocument
_Sink = Annotated[_AnySink, Field(discriminator="type")]
SINKS: tuple[type[Model], ...] = get_args(_AnySink)
"""The kinds of sinks, each with the name that it has as ``type``."""


class Document(Model):
    """A connector's configuration."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        max_length=100,
        description="Names the connector in store and lake. Another name is another connector.",
    )
    source: Annotated[_Source, Field(description="Where the log is.")]
    history: HistoryDocument = Field(default=HistoryDocument(), description="Where schema versions and plans are kept.")
    sinks: list[_Sink] = Field(
        default=[],
        description="Where rows go. `run` needs a sink; `check`, `tail`, `schemas` and the Spark source do not.",
    )
    types: TypesDocument = Field(
        default=TypesDocument(), description="Which type a value gets, where there is a choice."
    )
    run: RunDocument = Field(default=RunDocument(), description="When plans are made, and how large they are.")
    notify: NotifyDocument | None = Field(
        default=None, description="Who is told when a table stops, a schema changes, and the like. By default nobody."
    )

    @model_validator(mode="after")
    def _keeps_dead_letters(self) -> Document:
        chosen = (self.types, *self.types.columns.values())
        wanted = [f"types.{key}" for key in REASONS if any(getattr(each, key) == DEAD_LETTER for each in chosen)]
        if isinstance(self.source, KafkaDocument) and self.source.unreadable == DEAD_LETTER:
            wanted.append("source.unreadable")
        without = next((sink.type for sink in self.sinks if not sink.keeps_dead_letters), None)
        if wanted and without is not None:
            raise ValueError(
                f"{wanted[0]}: dead_letter needs sinks that keep dead letters, and type: {without} does not"
            )
        return self

    def plain(self, path: Path) -> settings.PipelineConfig:
        """The plain value; *path* is the file that it was read from."""
        base = path.parent
        return settings.PipelineConfig(
            path=path,
            name=self.name,
            source=self.source.plain(self.name),
            history=self.history.plain(self.name, base),
            sinks=tuple(sink.plain() for sink in self.sinks),
            run=self.run.plain(),
            types=self.types.plain(),
            notify=None if self.notify is None else self.notify.plain(),
        )


def _refuse_shards(glob: str, chosen: Mapping[str, Any]) -> None:
    """Raises ValueError where what is *chosen* of tables that match *glob* makes them no one table."""
    into = chosen.get("into")
    if into is None:
        return
    problems = [*group_problems(glob, into), *evolution_problems(chosen["evolution"])]
    if chosen.get("key"):
        problems.append(f"expected no key of their own, where into is set @ $.key (got {', '.join(chosen['key'])})")
    if chosen.get("keyless") == "rows":
        problems.append("expected changelog, where into is set @ $.keyless (got rows)")
    for problem in problems:
        expected, _, place = problem.partition(" @ $.")
        key, _, got = place.partition(" ")
        raise ValueError(f"{key}: {expected} {got} (of tables {glob})")


def _refuse_shared(chosen: Mapping[str, IntoSettings]) -> None:
    """Raises ValueError where two globs name one table for what they match."""
    globs: dict[str, str] = {}
    for glob, (name, _) in chosen.items():
        other = globs.setdefault(name, glob)
        if other != glob:
            raise ValueError(f"into.name: expected another table than that of {other}, not {name} (of tables {glob})")
