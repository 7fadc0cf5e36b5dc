"""Java classes of Delta Kernel, each looked up once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

__all__ = ["KernelClasses", "kernel_classes"]


class KernelClasses:
    """What is called of Kernel's and Java's classes: see :func:`kernel_classes`."""

    def __init__(self, jvm: Any) -> None:
        kernel = jvm.io.delta.kernel
        internal = kernel.internal
        self.optional = jvm.java.util.Optional
        self.array_list, self.hash_map = jvm.java.util.ArrayList, jvm.java.util.HashMap
        self.buffered_reader, self.stream_reader = jvm.java.io.BufferedReader, jvm.java.io.InputStreamReader
        hadoop = jvm.org.apache.hadoop
        self.hadoop_path, self.configuration = hadoop.fs.Path, hadoop.conf.Configuration
        self.engine = kernel.defaults.engine.DefaultEngine.create
        self.load_snapshot = kernel.TableManager.loadSnapshot
        self.create_table = kernel.TableManager.buildCreateTableTransaction
        self.clustered = kernel.transaction.DataLayoutSpec.clustered
        self.write, self.manual_update = kernel.Operation.WRITE, kernel.Operation.MANUAL_UPDATE
        self.write_context = kernel.Transaction.getWriteContext
        self.append_actions = kernel.Transaction.generateAppendActions
        self.no_actions = kernel.utils.CloseableIterable.emptyIterable
        self.in_memory = kernel.utils.CloseableIterable.inMemoryIterable
        self.iterator = internal.util.Utils.toCloseableIterator
        self.file_status = kernel.utils.DataFileStatus
        self.statistics = kernel.statistics.DataFileStatistics.deserializeFromJson
        self.struct = internal.types.DataTypeJsonSerDe.deserializeStructType
        self.single_action = internal.actions.SingleAction
        self.add_file = internal.actions.AddFile
        self.row_json = kernel.defaults.internal.json.JsonUtils.rowToJson
        self.predicate, self.column = kernel.expressions.Predicate, kernel.expressions.Column
        self.long = kernel.expressions.Literal.ofLong


@lru_cache(maxsize=1)
def kernel_classes(jvm: Any) -> KernelClasses:
    """The classes, looked up once a JVM: each part of a name costs a round trip, and a search for a class of the name in all jars."""
    return KernelClasses(jvm)
