"""Holds a lake's changelogs to their rules by :mod:`historian.changelog.validation`, beside the comparison with what was noted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from historian.changelog.conversions import to_odf
from historian.changelog.validation import Profile, check
from replicas.replica_reading import Reading

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Form", "assert_changelog_is_valid", "assert_changelogs_are_valid"]

_TOLD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What rows of one schema version are: names of their key's columns, and all their columns, as the lake has them."""

    key: tuple[str, ...]
    columns: tuple[Any, ...]


def assert_changelogs_are_valid(reading: Reading) -> None:
    """Fails where a changelog of the lake breaks a rule of its profile, or cannot be said strictly."""
    by_directory: dict[str, dict[int, Form]] = {}
    for table_id, location in reading.locations.items():
        names = reading.names(location.changelog) if location.changelog else {}
        for version in reading.versions(table_id) if location.changelog else ():
            shown = reading.shown(version)
            if shown is not None:
                key = tuple(names[column_id] for column_id in shown.primary_key)
                columns = tuple((column.id, column.type) for column in shown.columns)
                by_directory.setdefault(location.changelog, {})[version.number] = Form(key=key, columns=columns)
    for directory, forms in by_directory.items():
        assert_changelog_is_valid(directory, reading.table(directory).sort_by("offset"), forms)


def assert_changelog_is_valid(where: str, rows: pa.Table, forms: Mapping[int, Form]) -> None:
    """Fails unless *rows*, whose schema versions have *forms*, keep the rules of the binlog profile, key by key.

    The rows up to the first change of columns, which begin with the table, keep those of Open Data Fabric too: behind it a
    strict reader sees what a default has put into rows that are there.
    """
    assert {*rows.column("schema_version").unique().to_pylist()} <= set(forms), where
    first = True
    for part, form in _parts(rows, forms, lambda form: form.key):
        found = check(part, form.key, profile=Profile.BINLOG)
        assert not found, f"{where}, key {form.key}: {[str(finding) for finding in found[:_TOLD]]}"
        if first and form.key:
            same, _ = next(_parts(part, forms, lambda form: form.columns))
            found = check(to_odf(same, form.key), form.key, profile=Profile.ODF, first_offset=0)
            assert not found, f"{where}, strictly: {[str(finding) for finding in found[:_TOLD]]}"
        first = False


def _parts(rows: pa.Table, forms: Mapping[int, Form], by: Any) -> Iterator[tuple[pa.Table, Form]]:
    """The rows in runs of one key, or of the same columns."""
    if not rows.num_rows:
        return
    versions = rows.column("schema_version").to_numpy()
    starts = [0, *(np.flatnonzero(versions[1:] != versions[:-1]) + 1).tolist()]
    starts = [at for at in starts if at == 0 or by(forms[versions[at]]) != by(forms[versions[at - 1]])]
    for at, end in zip(starts, [*starts[1:], rows.num_rows], strict=True):
        yield rows.slice(at, end - at), forms[versions[at]]
