"""Spark SQL expressions over the rows of a table: what they may be, and what they give for chunks.

An expression sees the columns as the source has them, under the names with which they came into the lake. So a rename changes
nothing, and a column that takes the name of one that is gone is another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from historian.schema.snapshots import Column, ColumnType, Snapshot
from historian.values.arrow_types import arrow_type
from sinks.shaping.bindings import Bindings
from sinks.shaping.rules import COMPUTED_IDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

__all__ = ["AnalysedExpression", "ExpressionProblem", "Expressions", "seen_columns", "seen_schema"]

_TYPES: Mapping[str, ColumnType] = {
    "boolean": ColumnType(name="bit", length=1),
    "tinyint": ColumnType(name="tinyint"),
    "smallint": ColumnType(name="smallint"),
    "int": ColumnType(name="int"),
    "bigint": ColumnType(name="bigint"),
    "float": ColumnType(name="float"),
    "double": ColumnType(name="double"),
    "string": ColumnType(name="longtext", charset="utf8mb4", collation="utf8mb4_bin"),
    "binary": ColumnType(name="longblob"),
    "date": ColumnType(name="date"),
    "timestamp": ColumnType(name="timestamp", fraction=6),
    "timestamp_ntz": ColumnType(name="datetime", fraction=6),
}
"""Types of Spark's that a computed column can have, as the column types whose values are carried alike."""

_ELSEWHERE = re.compile("Current.*|Now|LocalTimestamp|.*Subquery|ListQuery|Exists|VariableReference|.*UDF.*")
"""Names of Spark's expressions whose values depend on something besides the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysedExpression:
    """An expression that Spark understands.

    Attributes:
        type: of its values.
        uses: ids of the columns whose values it takes.
    """

    type: ColumnType
    uses: frozenset[int]


@dataclass(frozen=True, slots=True)
class ExpressionProblem:
    """Why an expression cannot be used."""

    reason: str


class Expressions:
    """Asks Spark what expressions mean; each once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[tuple[str, str], AnalysedExpression | ExpressionProblem] = {}

    def computed(self, snapshot: Snapshot, bindings: Bindings) -> tuple[Column, ...]:
        """The columns that the rules of a table add to *snapshot*; those that cannot be are left out."""
        columns = []
        for at, (name, text) in enumerate(bindings.rules.compute, 1):
            found = self.analysed(text, snapshot, bindings)
            if isinstance(found, AnalysedExpression):
                columns.append(Column(id=COMPUTED_IDS + at, name=name, type=found.type))
        return tuple(columns)

    def misfits(self, snapshot: Snapshot, bindings: Bindings) -> list[tuple[str, str]]:
        """As :func:`sinks.shaping.tables.misfits`, of expressions."""
        found = []
        for where, text in _texts(bindings):
            one = self.analysed(text, snapshot, bindings)
            if isinstance(one, ExpressionProblem):
                found.append((where, one.reason))
            elif where == "where" and one.type != _TYPES["boolean"]:
                found.append((where, f"expected a boolean, found {one.type}"))
        return found

    def uses(self, snapshot: Snapshot, bindings: Bindings) -> frozenset[int]:
        """Ids of the columns that the expressions of a table take values of."""
        found = (self.analysed(text, snapshot, bindings) for _, text in _texts(bindings))
        return frozenset(used for one in found if isinstance(one, AnalysedExpression) for used in one.uses)

    def analysed(self, text: str, snapshot: Snapshot, bindings: Bindings) -> AnalysedExpression | ExpressionProblem:
        """What *text* means for rows under *snapshot*."""
        columns = seen_columns(snapshot, bindings)
        schema = seen_schema(columns)
        key = text, f"{schema.json()} {[column.id for column in columns.values()]}"
        if key not in self._known:
            self._known[key] = self._analyse(text, columns, schema)
        return self._known[key]

    def _analyse(
        self, text: str, columns: Mapping[str, Column], schema: StructType
    ) -> AnalysedExpression | ExpressionProblem:
        from pyspark.errors import PySparkException

        try:
            rows: Any = self._spark.createDataFrame([], schema).selectExpr(f"({text}) AS value")
            plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001 what Python's API does not tell
        except PySparkException as error:
            return ExpressionProblem(str(error).strip().splitlines()[0])
        nodes = [plan.getClass().getSimpleName(), plan.child().getClass().getSimpleName()]
        if nodes[0] != "Project" or nodes[1] not in ("LocalRelation", "LogicalRDD"):
            return ExpressionProblem(f"expected a value for each row by itself, found {nodes[0]} of {nodes[1]}")
        named = plan.projectList().head()
        if not named.deterministic():
            return ExpressionProblem("expected the same value whenever it is computed")
        inner = list(_nodes(named))
        for name in (n.getClass().getSimpleName() for n in inner):
            if _ELSEWHERE.fullmatch(name):
                return ExpressionProblem(f"expected a value that depends on the row alone, found {name}")
        kind = _column_type(rows.schema[0].dataType)
        if kind is None:
            return ExpressionProblem(
                f"expected one of {', '.join(_TYPES)}, decimal; found {rows.schema[0].dataType.simpleString()}"
            )
        used = {n.name() for n in inner if n.getClass().getSimpleName() == "AttributeReference"}
        return AnalysedExpression(type=kind, uses=frozenset(columns[name].id for name in used))


def seen_columns(snapshot: Snapshot, bindings: Bindings) -> dict[str, Column]:
    """The columns that expressions see under *snapshot*, by the names with which they came; of two of one name the first."""
    first: dict[str, int] = {}
    for number in sorted(bindings.came):
        first.setdefault(bindings.came[number][0].lower(), number)
    return {bindings.name(c): c for c in snapshot.columns if first.get(bindings.name(c).lower(), c.id) == c.id}


def seen_schema(columns: Mapping[str, Column]) -> StructType:
    """The Spark schema of columns as expressions see them; JSON is text, whatever form it has in the lake."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    kinds = {name: from_arrow_type(arrow_type(c.type), prefer_timestamp_ntz=True) for name, c in columns.items()}
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def _texts(bindings: Bindings) -> Sequence[tuple[str, str]]:
    rules = bindings.rules
    texts = [(f"compute.{name}", text) for name, text in rules.compute]
    return [*texts, ("where", rules.where)] if rules.where else texts


def _nodes(expression: Any) -> Iterator[Any]:
    yield expression
    children = expression.children()
    for at in range(children.size()):
        yield from _nodes(children.apply(at))


def _column_type(kind: DataType) -> ColumnType | None:
    from pyspark.sql.types import DecimalType, StringType

    if isinstance(kind, DecimalType):
        return ColumnType(name="decimal", precision=kind.precision, scale=kind.scale)
    return _TYPES["string"] if isinstance(kind, StringType) else _TYPES.get(kind.simpleString())
