"""Tables of a catalog's schema over the directories of a lake.

Every table is an external one: dropping or renaming it moves no file. What a table's name in the catalog ought to be follows from
the locations; what it is, the catalog says by the tables' locations. So a run that ended between two statements is mended by the
next one, and a catalog that lives no longer than its Spark session is filled again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from historian.errors import SinkError
from historian.names import TableName, quoted
from sinks.contract.locations import TableLocations
from sinks.contract.tables import OWN_NAMES, target_name
from sinks.delta import faults
from sinks.delta.lake.state_rows import STATE_SCHEMAS
from sinks.delta.settings import DeltaSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CatalogTables", "catalog_names"]


def catalog_names(locations: TableLocations, settings: DeltaSettings) -> dict[str, str]:
    """Directory to name in the catalog: that of the table's present name, as far as it is free; pure.

    Tables that live choose first; names that differ by case alone count as the same, as they do in Spark.
    """
    names = {directory: directory for directory in STATE_SCHEMAS}
    taken = {*names, *OWN_NAMES}
    for location in sorted(locations.values(), key=lambda location: (location.dropped != 0, location.table_id)):
        database, _, table = location.name.partition(".")
        chosen = settings.for_table(location.came_as)
        for directory in (*location.directories, *location.previous):
            pattern = getattr(chosen, location.kind(directory))
            if directory not in names and pattern is not None:
                wished = target_name(pattern, TableName(database, table))
                mark = f"__replaced{-location.table_id}" if location.is_replaced else f"__t{location.table_id}"
                free = (name for name in (wished, directory, f"{wished}{mark}") if name.lower() not in taken)
                names[directory] = next(free, f"{directory}{mark}")
                taken.add(names[directory].lower())
    return names


class CatalogTables:
    """The tables of one schema, given as ``catalog.schema``, which is made where it is missing."""

    def __init__(self, spark: SparkSession, schema: str) -> None:
        self._spark = spark
        self._schema = ".".join(map(quoted, schema.split(".")))
        self.root = self._location()
        self._held: dict[str, str] | None = None

    def align(self, names: Mapping[str, str], exists: Callable[[str], bool]) -> None:
        """Makes each directory's table stand under its name; may be called again after any failure.

        Args:
            names: directory to name.
            exists: whether a directory holds a table already; what does not is left for a later call.

        Raises:
            SinkError: a name is that of a table somewhere else.
        """
        held = self._tables() if self._held is None else self._held
        self._held = None
        wrong = {directory: name for directory, name in names.items() if held.get(directory) != name}
        leaving = [directory for directory in wrong if directory in held]
        wished = {name.lower() for name in wrong.values()}
        for directory in leaving:
            # Names may go round in a circle: a name that another one gets is left first.
            if held[directory].lower() in wished:
                held[directory] = self._rename(held[directory], f"{directory}__renamed")
        strangers = {name.lower(): place for place, name in held.items() if place not in names}
        # A new table may take a name that another one leaves.
        for directory, name in sorted(wrong.items(), key=lambda item: item[0] not in held):
            if name.lower() in strangers:
                raise SinkError(
                    "a table of the catalog stands in the way of a target",
                    where=f"{self._schema}.{quoted(name)}",
                    expected=f"{self.root}/{directory}",
                    found=strangers[name.lower()],
                    next_step="rename that table, or give the sink another schema",
                )
            if directory in held:
                self._rename(held[directory], name)
            elif not exists(directory):
                continue
            else:
                place = f"{self.root}/{directory}".replace("'", "\\'")
                self._spark.sql(f"CREATE TABLE {self._schema}.{quoted(name)} USING delta LOCATION '{place}'")
                faults.reached("catalog_changed", name)
            held[directory] = name
        self._held = held

    def _rename(self, old: str, new: str) -> str:
        # The new name is one inside the catalog.
        within = self._schema.partition("`.")[2]
        self._spark.sql(f"ALTER TABLE {self._schema}.{quoted(old)} RENAME TO {within}.{quoted(new)}")
        faults.reached("catalog_changed", new)
        return new

    def _tables(self) -> dict[str, str]:
        """Directory, or location where that is not in our root, to name."""
        found = {}
        for row in self._spark.sql(f"SHOW TABLES IN {self._schema}").collect():
            if not row.isTemporary:
                place = self._described(f"TABLE EXTENDED {self._schema}.{quoted(row.tableName)}")
                found[place.removeprefix(f"{self.root}/")] = row.tableName
        return found

    def _location(self) -> str:
        from pyspark.errors import AnalysisException

        try:
            try:
                return self._described(f"SCHEMA {self._schema}")
            except AnalysisException as error:
                if error.getCondition() != "SCHEMA_NOT_FOUND":
                    raise
                self._spark.sql(f"CREATE SCHEMA {self._schema}")
                return self._described(f"SCHEMA {self._schema}")
        except AnalysisException as error:
            raise SinkError(
                "a catalog's schema that Spark does not find",
                where=self._schema,
                found=str(error).splitlines()[0],
                next_step="name the catalog as Spark's configuration does; without one of your own it is spark_catalog",
            ) from error

    def _described(self, what: str) -> str:
        rows = self._spark.sql(f"DESCRIBE {what}").collect()
        location = next((str(row[1]) for row in rows if row[0] == "Location"), "")
        if not location:
            return location
        scheme, _, path = location.partition(":")
        return f"/{path.lstrip('/')}" if scheme == "file" else location.rstrip("/")
