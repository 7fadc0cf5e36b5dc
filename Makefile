# `make help` lists the targets. Each is complete on a new machine: it installs what it needs first.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CACHE ?= $(or $(PYSPARK_HISTORIAN_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pyspark-historian)
PYTEST_ARGS ?=
WORKERS ?= 2
SEEDS ?= 10
STATEMENTS ?= 50000
SCRIPTS ?= 500
CASES ?= 100000
CRASHES ?= 2000
ROUNDS ?= 2000
SEED ?= $(shell date +%s)
INTO_DELTA ?= 40

# uv, where .ci/bootstrap had to fetch it.
export PATH := $(PATH):$(CACHE)/uv/bin

# Tests and commands start many processes; each would compile anew all that it imports.
unexport PYTHONDONTWRITEBYTECODE

python := .venv/bin/python
pytest := $(python) -m pytest
support := PYTHONPATH=tests/support

##@ Set-up

.PHONY: sync
sync:  ## Make the environment in .venv as uv.lock says; fetch uv and Java where there are none
	@.ci/bootstrap $(CACHE)
	@uv sync --locked --quiet

.PHONY: jvm
jvm: sync  ## Fetch Delta's jars, once
	@$(python) -m connectors.spark.jvm >/dev/null

.PHONY: servers
servers: sync  ## Fetch and initialise the servers of the tests, once: MySQL 9, 8.0, 5.7, MariaDB 10.5, 10.11, 11.8, PostgreSQL 15, Prometheus, Kafka, Debezium, Apicurio, Maxwell, and Chromium
	@$(support) $(python) tests/support/databases/server_data.py

classes := build/java-classes.jsa
$(classes): uv.lock tests/support/lakes/java_classes.py | jvm
	@$(support) $(python) tests/support/lakes/java_classes.py $@

##@ See it work

.PHONY: demo
demo: jvm  ## Replay a recorded MySQL binlog into Delta tables under ./lake, copy a table of a live MariaDB, compare both with the source
	@$(python) examples/shop/demo.py

.PHONY: record
record: sync  ## Record the demo's binlog anew, from a real MySQL server
	@$(support) $(python) examples/shop/record.py

##@ Check

.PHONY: test
test: jvm servers $(classes)  ## Run all tests, on real servers (PYTEST_ARGS=... goes to pytest; WORKERS=0: in one process)
	@$(pytest) -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=15 --junitxml=build/tests.xml $(PYTEST_ARGS)
	@$(support) $(python) tests/support/shares.py build/tests.xml $(WORKERS)

.PHONY: test-kafka
test-kafka: sync  ## Run the tests of topics, and say how long they take
	@$(MAKE) test PYTEST_ARGS="$$($(support) $(python) tests/support/shares.py kafka) $(PYTEST_ARGS)"

.PHONY: test-cluster
test-cluster: sync  ## The same of clusters, object storage, the Spark source, and many connectors
	@$(MAKE) test PYTEST_ARGS="$$($(support) $(python) tests/support/shares.py cluster) $(PYTEST_ARGS)"

.PHONY: unit
unit: sync  ## Run the tests that need neither a server nor Spark
	@$(pytest) -q -m "not server and not spark and not soak" $(PYTEST_ARGS)

.PHONY: coverage
coverage: jvm servers $(classes)  ## Run all tests and report branch coverage
	@$(pytest) --cov --cov-report=term-missing:skip-covered $(PYTEST_ARGS)

.PHONY: lint
lint: sync  ## Lint, check the format, the types and the direction of imports
	@.venv/bin/ruff check --quiet .
	@.venv/bin/ruff format --check --quiet .
	@$(python) -m mypy --no-error-summary
	@MYPYPATH=tests/support $(python) -m mypy --explicit-package-bases --no-error-summary tests/conftest.py tests/support/databases/debian.py tests/support/databases/server*.py
	@mkdir -p build && .venv/bin/lint-imports --no-logo >build/lint-imports.log 2>&1 || { cat build/lint-imports.log; exit 1; }
	@uv lock --check --quiet
	@echo "lint: clean"

.PHONY: format
format: sync  ## Format the code and mend what ruff can mend
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

.PHONY: reference
reference: sync  ## Write what docs/ has from the code: the JSON Schema, and the references of configuration and command line
	@$(python) -m connectors.config.json_schema > docs/config.schema.json
	@$(python) -m connectors.config.reference > docs/reference/configuration.md
	@$(python) -m connectors.cli.reference > docs/reference/cli.md
	@$(python) -m connectors.cli.manual > docs/reference/historian.1

.PHONY: pictures
pictures: sync  ## Draw what docs/images has from the code: what a run shows on a terminal, and the page in a browser
	@$(python) examples/live_display.py
	@$(python) examples/page.py

.PHONY: docs
docs: sync  ## Build the site of docs/ in build/site; a dead link fails
	@uv sync --locked --quiet --group docs
	@NO_MKDOCS_2_WARNING=1 $(python) -m mkdocs build --quiet --strict
	@echo "docs: build/site/index.html"

.PHONY: wheel-kernels
wheel-kernels: sync  ## Build into dist/ the wheel that brings compiled kernels for this Python and numba, and try it in a clean environment
	@rm -rf build/kernels && mkdir -p build/kernels dist
	@NUMBA_CACHE_DIR=$$PWD/build/kernels/code NUMBA_CPU_NAME=$$($(python) -c 'from historian.shipped_code import BASELINE; print(BASELINE)') \
	  NUMBA_CPU_FEATURES= $(python) -m connectors.compile
	@HISTORIAN_KERNELS=$$PWD/build/kernels/code uv build --quiet --wheel --python $(python) --out-dir build/kernels/dist
	@uv venv --quiet --python $(python) build/kernels/venv
	@uv export --quiet --locked --no-dev --no-emit-project --format requirements-txt --output-file build/kernels/requirements.txt
	@uv pip install --quiet --python build/kernels/venv/bin/python -r build/kernels/requirements.txt build/kernels/dist/*.whl
	@cd build/kernels && XDG_CACHE_HOME=$$PWD/cache venv/bin/python -m connectors.compile 2>told; cat told; ! grep -q 'compiling kernels' told
	@cp build/kernels/dist/*.whl dist/ && ls dist

.PHONY: wheel-test
wheel-test: sync  ## Build the wheel, install it into a clean environment, use it from there
	@rm -rf build/wheel && mkdir -p build/wheel
	@uv build --quiet --wheel --out-dir build/wheel/dist
	@uv venv --quiet build/wheel/venv
	@uv pip install --quiet --python build/wheel/venv/bin/python build/wheel/dist/*.whl
	@cd build/wheel && venv/bin/python -c "import connectors, historian, sinks, pyspark_historian; \
	  assert 'build/wheel/venv' in connectors.__file__, connectors.__file__; \
	  print('the format', pyspark_historian.DefaultSource.name(), 'comes from', pyspark_historian.DefaultSource.__module__)"
	@cd build/wheel && venv/bin/historian --help >/dev/null && test -s venv/share/man/man1/historian.1
	@cd build/wheel && UV_TOOL_DIR=$$PWD/tools UV_TOOL_BIN_DIR=$$PWD/bin uv tool install --quiet dist/*.whl
	@cd build/wheel && bin/historian --version >/dev/null
	@cp -r pyproject.toml tests docs build/wheel/ && uv pip install --quiet --python build/wheel/venv/bin/python --group test
	@cd build/wheel && venv/bin/python -m pytest -q -n $(WORKERS) -m "not soak and not hypothesis" tests/historian
	@echo "wheel-test: $$(ls build/wheel/dist) installs and runs"

.PHONY: audit
audit: sync  ## Write a bill of materials to build/sbom.json; print licences and known vulnerabilities (the latter where their database can be reached)
	@$(support) $(python) tests/support/supply.py build/sbom.json

##@ Measure

.PHONY: structure
structure: sync  ## Print the rooms: modules, floors of imports, lines, circles
	@$(python) tests/support/structure.py

.PHONY: bench
bench: jvm servers  ## Run the benchmarks; the last line of each is its result as JSON
	@$(support) $(python) benchmarks/decode.py
	@$(support) $(python) benchmarks/decode_text.py
	@$(support) $(python) benchmarks/decode_files.py
	@$(support) $(python) benchmarks/decode_latency.py
	@$(support) $(python) benchmarks/decode_memory.py
	@$(support) $(python) benchmarks/lake.py
	@uv sync --locked --inexact --group bench --quiet && $(support) $(python) benchmarks/backfill.py
	@$(support) $(python) benchmarks/encoding.py
	@$(support) $(python) benchmarks/history.py
	@$(support) $(python) benchmarks/kafka.py
	@$(support) $(python) benchmarks/operation.py
	@$(support) $(python) benchmarks/cluster.py

.PHONY: soak
soak: jvm servers $(classes)  ## Look for new cases: of properties, SEEDS seeds of the workload, STATEMENTS random DDL statements a flavour, SCRIPTS of the servers' suites, CASES damaged files, CRASHES of writes
	@HYPOTHESIS_PROFILE=random $(pytest) -q -m "not server and not spark" $(PYTEST_ARGS)
	@SEED=$(SEED) $(pytest) -q -m soak $(PYTEST_ARGS)
	@SEEDS=$(SEEDS) $(pytest) tests/integration/test_random_workload.py $(PYTEST_ARGS)
	@DDL_STATEMENTS=$(STATEMENTS) $(pytest) -s tests/integration/test_ddl_oracle.py $(PYTEST_ARGS)
	@CRASHES=$(CRASHES) CRASH_SEED=$$RANDOM $(pytest) -s tests/sinks/delta/writing/test_crashes.py $(PYTEST_ARGS)
	@$(MAKE) corpus
	@$(MAKE) attack
	@DAMAGE_CASES=$(CASES) $(pytest) -s tests/connectors/readers/binlog/test_damaged_files.py $(PYTEST_ARGS)

.PHONY: corpus
corpus: servers  ## Statements of SCRIPTS scripts of the suites of MySQL and MariaDB through both: what of them is refused and why, and what is wrong
	@status=0; for flavor in mysql mariadb; do \
	  $(support) $(python) tests/support/corpus/run.py $$flavor $(SCRIPTS) $(SEED) || status=1; \
	done; exit $$status

.PHONY: attack
attack: jvm servers  ## Run ROUNDS random rounds of all classes of attack on all servers, from SEED on; every INTO_DELTA-th goes into Delta (ATTACK_ARGS=...)
	@PYTHONPATH=tests/support:tests/attack $(python) -m adversary --rounds $(ROUNDS) --seed $(SEED) --delta $(INTO_DELTA) $(ATTACK_ARGS)

##@ Tidy

.PHONY: clean
clean:  ## Remove what builds, tests and the demo leave; the environment and the cache stay
	@rm -rf build dist lake state spark-warehouse metastore_db derby.log .coverage htmlcov .hypothesis
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

.PHONY: help
help:  ## List the targets
	@awk 'BEGIN {FS = ":.*  ## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*  ## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
