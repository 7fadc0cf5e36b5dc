"""Hadoop's file system of local paths, for Delta Kernel, without a process for each file.

Hadoop sets the rights of a file that it makes by starting ``chmod``, 5 ms each, where its native library is missing; a
commit makes four files. Janino, which Spark compiles its queries with, makes the class that calls the system instead.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

__all__ = ["with_local_files"]

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
        Integer mode = Integer.valueOf(rights.toShort());
        Files.setAttribute(pathToFile(path).toPath(), "unix:mode", mode, new LinkOption[0]);
    }
}

public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new RawLocalFiles());
    }
}
"""


def with_local_files(jvm: Any, configuration: Any) -> Any:
    """A Hadoop configuration like *configuration* that reaches local paths so, unless that names a file system for them."""
    local = jvm.org.apache.hadoop.conf.Configuration(configuration)
    local.setClassLoader(_class_loader(jvm))
    local.setIfUnset("fs.file.impl", _CLASS)
    # Hadoop keeps the first file system that is asked for, which is Spark's.
    local.setIfUnset("fs.file.impl.disable.cache", "true")
    return local


@lru_cache(maxsize=1)
def _class_loader(jvm: Any) -> Any:
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.hadoop.conf.Configuration(False).getClassLoader())
    compiler.cook(_SOURCE)
    return compiler.getClassLoader()
