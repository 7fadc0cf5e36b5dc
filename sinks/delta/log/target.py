"""One Delta table that plans are written to: which plan it holds, and who else wrote to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from historian.errors import ChainBroken, TableStopped
from sinks.contract.parts import STEPS
from sinks.delta import faults
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import Commit, DataFile
from sinks.delta.log.kernel import CommitConflict, Kernel
from sinks.delta.log.table_view import TableView
from sinks.delta.settings import WIDENING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CHANGED_BY_OTHERS", "MAINTENANCE", "Target", "is_of", "session_settings", "signature", "told_as_ours"]

_OWNER = "historian.connector"
_KIND = "historian.kind"

CHANGED_BY_OTHERS = "a target was changed by someone else"

MAINTENANCE = frozenset(
    {
        "OPTIMIZE",
        "REORG",
        "VACUUM START",
        "VACUUM END",
        "COMPUTE STATS",
        "ROW TRACKING BACKFILL",
        "UPGRADE PROTOCOL",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "CLUSTER BY",
    }
)
"""Operations of others that change no row and no column."""

_PROPERTIES = {
    "delta.columnMapping.mode": "name",
    WIDENING: "true",
    # A date widens to timestamp_ntz only where the feature was on before; domain metadata holds the next offset.
    "delta.feature.timestampNtz": "supported",
    "delta.feature.domainMetadata": "supported",
}

_WITHOUT_BOUNDS = ("binary", "boolean", "variant")
"""Types of columns by which Delta does not cluster."""

_APPLICATION = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def signature(connector: str) -> str:
    """What marks a commit as made by *connector*."""
    return f"pyspark-historian:{connector}"


def is_of(connector: str, info: Mapping[str, Any]) -> bool:
    """Whether what a log says of a commit tells that *connector* made it."""
    mark = signature(connector)
    by_kernel = str(info.get("engineInfo", "")).endswith(f"/{mark}")
    return by_kernel or str(info.get("userMetadata", "")).startswith(f"{mark} ")


def told_as_ours(connector: str, what: str) -> dict[str, str]:
    """Settings of a session under which a statement's commit is one of *connector*, with a word on *what* it is."""
    return {_METADATA: f"{signature(connector)} {what}"}


class Target:
    """A Delta table of one connector.

    Args:
        directory: of the table in the lake.
        path: the same, absolute.
        kind: "changelog", "mirror" or "history".
        properties: of the table, where it is made; they win over ours, and None leaves one of ours out.
        by_spark: whether Spark's own writer puts and changes its rows.
    """

    def __init__(
        self,
        kernel: Kernel,
        connector: str,
        directory: str,
        path: str,
        kind: str,
        properties: Sequence[tuple[str, str | None]] = (),
        *,
        by_spark: bool = False,
    ) -> None:
        self._kernel = kernel
        self._connector = connector
        self.directory = directory
        self.path = path
        self.kind = kind
        self.by_spark = by_spark
        self._properties = {**_PROPERTIES, **dict(properties)}
        self.application = f"{connector}/{directory}"
        self._view: TableView | None = None
        self._seen = -1

    @property
    def kernel(self) -> Kernel:
        """By which it is read and committed to."""
        return self._kernel

    @property
    def view(self) -> TableView:
        """The newest version known; :meth:`refresh` or a commit came before."""
        if self._view is None:
            raise ChainBroken("a target is not there", where=self.path)
        return self._view

    @property
    def exists(self) -> bool:
        """Whether the table was there when last read, or was made since."""
        return self._view is not None

    @property
    def held(self) -> int:
        """The transaction version of the last step that the target holds; 0 where it holds none."""
        return 0 if self._view is None else self._view.transaction(self.application)

    def refresh(self) -> None:
        """Reads the newest version.

        Raises:
            ChainBroken: someone else changed the table, or made it.
        """
        if self._view is not None and self._view.is_newest():
            return
        view = self._kernel.view(self.path)
        if view is None and self._view is not None:
            raise ChainBroken("a target is gone", where=self.path, found="no Delta table", next_step=_ANEW)
        if view is None and not self._kernel.is_vacant(self.path):
            raise ChainBroken(
                "a target's place is taken by what is no Delta table",
                where=self.path,
                expected="nothing, or a Delta table of this connector",
                found="a file, a link, or a directory with files",
                next_step="move that away, or choose other target names",
            )
        if view is not None:
            if self._view is None:
                self._check_owner(view)
            elif view.is_other_than(self._view):
                self._check_still_ours(view)
            self._check_commits(view)
            self._seen = view.version
        self._view = view

    def as_of(self, view: TableView) -> Target:
        """The target as it was in an earlier version, to be read."""
        target = Target(self._kernel, self._connector, self.directory, self.path, self.kind, by_spark=self.by_spark)
        target._view = view
        return target

    def check_link(self, before: int, plan: int, final: int) -> None:
        """Checks that the target holds exactly what precedes *plan*, or a part of it, or all of it.

        Args:
            before: the transaction version of the last plan that touched it; 0: none did.
            plan: the plan's number.
            final: the transaction version that it has when it holds the plan.
        """
        held = self.held
        if held >= final or held == before or (held > before and held // STEPS == plan):
            return
        raise ChainBroken(
            "a plan is missing in a target" if held < before else "a target holds a plan that the lake does not know",
            where=self.path,
            expected=f"plan {before // STEPS} (step {before % STEPS})",
            found=f"plan {held // STEPS} (step {held % STEPS})",
            next_step=_ANEW,
        )

    def create(self, schema: DeltaSchema, domains: Mapping[str, str], cluster: Sequence[int] = ()) -> None:
        """Makes the table, empty; clustered by the columns of those ids of which Delta keeps bounds, if any are given."""
        marks = {_OWNER: self._connector, _KIND: self.kind}
        found = [f for column in cluster if (f := schema.by_id(column)) is not None]
        names = [f.name for f in found if f.type not in _WITHOUT_BOUNDS]
        chosen = {name: value for name, value in self._properties.items() if value is not None}
        self._view = self._kernel.create(self.path, schema, {**chosen, **marks}, domains, names)
        self._seen = self._view.version

    def commit(self, version: int, commit: Commit) -> None:
        """Commits through Kernel, directly on the version known; maintenance in between is no hindrance.

        Raises:
            TableStopped: a column's type changes in a table without type widening.
        """
        if commit.schema is not None:
            self._check_types(commit.schema)
        try:
            self._view = self._kernel.commit(self.view, self.application, version, commit)
        except CommitConflict:
            self.refresh()
            if self.held >= version:
                return  # Our own commit, whose answer was lost.
            self._view = self._kernel.commit(self.view, self.application, version, commit)
        self._seen = self._view.version

    def rearrange(self, removed: Sequence[str], files: Sequence[DataFile]) -> bool:
        """Puts *files* with the same rows in the place of others; no step of a plan.

        False where another commit came first: then the files may be the table's or not, and stay.
        """
        try:
            commit = Commit(removed=removed, files=files, same_rows=True)
            self._view = self._kernel.commit(self.view, "", 0, commit)
        except CommitConflict:
            return False
        self._seen = self._view.version
        return True

    def run(self, version: int, spark: SparkSession, statement: Callable[[], Any]) -> None:
        """Runs an INSERT, UPDATE, DELETE or MERGE with the transaction identifier of *version* in its commit."""
        settings = {
            _APPLICATION: self.application,
            _VERSION: str(version),
            **told_as_ours(self._connector, f"plan {version // STEPS}"),
        }
        with session_settings(spark, settings):
            faults.reached("statement_begun", f"{self.path} {version}")
            statement()
        faults.reached("statement_done", f"{self.path} {version}")
        self.refresh()

    def is_in(self, view: TableView) -> bool:
        """Whether *view* is of this target, by what its properties say, and not of another table in its place."""
        return view.property(_OWNER) == self._connector and view.property(_KIND) == self.kind

    def _check_owner(self, view: TableView) -> None:
        if not self.is_in(view):
            raise ChainBroken(
                "a target's place is taken by another table",
                where=self.path,
                expected=f"the {self.kind} of connector {self._connector}",
                found=f"{view.property(_KIND) or 'a table'} of {view.property(_OWNER) or 'someone else'}",
                next_step="move that table away, or choose other target names",
            )

    def _check_commits(self, view: TableView) -> None:
        """Looks at what was committed since our last look; at first, back to our last commit."""
        for version in range(view.version, self._seen, -1):
            info = self._kernel.commit_info(self.path, version)
            if info is None:
                return  # Cleaned away by Delta's log retention, and so long ago.
            ours = self._is_ours(info)
            if not ours and info.get("operation") not in MAINTENANCE:
                raise ChainBroken(
                    CHANGED_BY_OTHERS,
                    where=f"{self.path} at version {version}",
                    expected=f"commits of connector {self._connector}",
                    found=f"{info.get('operation')} by {info.get('engineInfo')} ({info.get('userMetadata')})",
                    next_step=f"`historian verify --repair` puts it back as it was; else {_ANEW}",
                )
            if ours and self._seen < 0:
                return

    def _check_still_ours(self, view: TableView) -> None:
        """On a local path nothing keeps a commit of another process from taking the place of one made at the same moment."""
        info = self._kernel.commit_info(self.path, view.version) or {}
        if not self._is_ours(info):
            raise ChainBroken(
                "a commit to a target was overwritten by someone else's of the same version",
                where=f"{self.path} at version {view.version}",
                expected=f"the commit of connector {self._connector}",
                found=f"{info.get('operation')} by {info.get('engineInfo')} ({info.get('userMetadata')})",
                next_step=_ANEW,
            )

    def _check_types(self, schema: DeltaSchema) -> None:
        if self.view.property(WIDENING) == "true":
            return
        held = {field.column_id: field.type for field in self.view.schema().fields if field.column_id}
        for field in schema.fields:
            if field.column_id in held and held[field.column_id] != field.type:
                raise TableStopped(
                    "a column's type changes in a table without type widening",
                    where=f"column {field.name} of {self.path}",
                    expected=str(held[field.column_id]),
                    found=str(field.type),
                    next_step=f"replicate the table into another lake, from the start, with {WIDENING}",
                )

    def _is_ours(self, info: Mapping[str, Any]) -> bool:
        return is_of(self._connector, info)


_ANEW = "restore the target as it was, or replicate the table into another lake, from the start"


@contextmanager
def session_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of this session only; what it had of them before does not come from it, so it is not put back."""
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)
