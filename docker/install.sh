#!/bin/sh
# Installs pyspark-historian from a wheel with all that a run needs: jars of Delta, and compiled kernels.
#
#   sh docker/install.sh pyspark_historian-0.1.0-py3-none-any.whl /opt/historian
#
# The directory may be read-only from then on. Kernels are compiled for the processors of any x86-64 or ARM machine.
set -eu

wheel=$1
prefix=$2

python3 -m venv "$prefix"
"$prefix/bin/pip" install --quiet --no-cache-dir "$wheel"
PYSPARK_HISTORIAN_CACHE="$prefix/share/historian" "$prefix/bin/python" -c 'from connectors.spark.jvm import delta_jars; delta_jars()'
NUMBA_CACHE_DIR="$prefix/kernels" NUMBA_CPU_NAME=generic "$prefix/bin/python" -m connectors.compile
chmod -R a+rX "$prefix"
