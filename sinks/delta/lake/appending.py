"""Rows appended to a table of the lake's own, once a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from historian.plans.plans import Plan
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import Commit
from sinks.delta.log.kernel import CommitConflict, Kernel
from sinks.delta.rewrite.files import FileWriter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["append_once"]


def append_once(kernel: Kernel, path: str, schema: DeltaSchema, plan: Plan, rows: pa.Table) -> None:
    """Appends the *rows* of *plan* to the table at *path*, which is made where there is none; nothing where it has the plan. Retryable."""
    view = kernel.view(path) or kernel.create(path, schema, {}, {})
    if view.transaction(plan.connector) >= plan.number:
        return
    writer = FileWriter(path, schema.arrow())
    writer.write_table(rows)
    commit = Commit(files=writer.close())
    try:
        kernel.commit(view, plan.connector, plan.number, commit)
    except CommitConflict:
        # OPTIMIZE may have come in between, or our own commit, whose answer was lost.
        view = kernel.view(path) or view
        if view.transaction(plan.connector) < plan.number:
            kernel.commit(view, plan.connector, plan.number, commit)
