"""What a format calls the parts of a message that compiled code looks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["JsonForm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonForm:
    """A format by the paths of its parts, a dot leading into an object; "" for what it does not have.

    Attributes:
        members: paths of all that messages usually have, in that order. What is not among them is looked at too, and passed over.
        op: the operation; ``ops``: of each name "c", "u", "d", or "w" of an update that may lack the row before it.
        database, table: of the source; ``schema``: what stands for the database where messages name their table by it.
        server: where messages tell what kind of server they come from, their schema and their database.
        mark: a text that says something of how all values are written; see :meth:`.programs.Program.marked`.
        time: a number of ``time_unit_us``; where it is missing or NULL ``coarse_time`` of ``coarse_time_unit_us``, and 0 without that too.
        time_bounds_us: the first and the last time that is one.
        after, before: the rows; ``deleted``: of the two, that which has the row of a delete.
        is_overlay: what ``before`` lacks is as in ``after``.
        with_arrays: rows may come in arrays; else both sets are one row, NULL or missing, whatever the operation is.
        names_may_lack: a name that is empty may be NULL or missing.
        false: fields that are not true in messages of rows, two at most.
        object: a field that is an object, NULL or missing.
        told: fields whose text, with the names of a row, tells the schema; two at most, "" where it is told otherwise.
        prefixed: what stands around the object: a text that begins all messages of one schema, and one more brace at the end.
        tombstones: a message without a value changes nothing; else it is not understood.
        sources: of a scan, where a change stands in the source's log: GTID, file, offset, row in the event, and the server's id; (): that is not looked for.
        exact: numbers are read by their digits, where the compiled code does not read them.
    """

    members: tuple[str, ...]
    op: str
    ops: Mapping[str, str]
    database: str
    table: str
    time: str
    time_unit_us: int
    coarse_time: str = ""
    coarse_time_unit_us: int = 1
    time_bounds_us: tuple[int, int]
    after: str
    before: str
    deleted: str
    is_overlay: bool = False
    with_arrays: bool = True
    names_may_lack: bool = False
    false: tuple[str, ...] = ()
    object: str = ""
    told: tuple[str, ...] = ()
    schema: str = ""
    server: tuple[str, ...] = ()
    mark: str = ""
    prefixed: bool = False
    tombstones: bool = False
    exact: bool = False
    sources: tuple[str, ...] = ()
