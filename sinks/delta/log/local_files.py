"""Hadoop's file system of local paths, for Delta Kernel, without a process for each file.

Hadoop sets the rights of a file that it makes by starting ``chmod``, 5 ms each, where its native library is missing; a
commit makes four files. Janino, which Spark compiles its queries with, makes the class that calls the system instead.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sinks.delta.log.kernel_classes import kernel_classes

__all__ = ["with_local_files"]

_NAME = "fs.file.impl"
_CLASS = "historian.LocalFiles"
_SOURCE = """
package historian;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

class RawLocalFiles extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission rights) throws IOException {
        java.nio.file.Path file = pathToFile(path).toPath();
        int mode = rights.toShort();
        if (Files.isDirectory(file, new LinkOption[0])) {
            // A directory stays one that gives its group on, as chmod leaves it.
            mode |= ((Integer) Files.getAttribute(file, "unix:mode", new LinkOption[0])).intValue() & 06000;
        }
        Files.setAttribute(file, "unix:mode", Integer.valueOf(mode), new LinkOption[0]);
    }
}

public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new RawLocalFiles());
    }
}
"""


def with_local_files(jvm: Any, configuration: Any) -> Any:
    """A copy of a Hadoop *configuration* with which files of local paths are made so.

    *configuration* itself where it names a file system for local paths.
    """
    if configuration.get(_NAME):
        return configuration
    local = kernel_classes(jvm).configuration(configuration)
    local.setClassLoader(_class_loader(jvm))
    local.set(_NAME, _CLASS)
    # Hadoop keeps the first file system that is asked for, which is Spark's.
    local.set(f"{_NAME}.disable.cache", "true")
    return local


@lru_cache(maxsize=1)
def _class_loader(jvm: Any) -> Any:
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(kernel_classes(jvm).configuration(False).getClassLoader())
    compiler.cook(_SOURCE)
    return compiler.getClassLoader()
