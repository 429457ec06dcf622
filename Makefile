# Likewise: `make` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE_SOURCES := $(shell find crates -name '*.rs' -o -name 'Cargo.toml') Cargo.toml Cargo.lock
CORES := $(shell nproc 2>/dev/null || echo 2)
# One more: many tests wait for a process of their own.
TEST_PROCESSES ?= $(shell expr $(CORES) + 1)
RUST_TESTS := --locked -p likewise-core -p likewise-hamming -p likewise-disk -p likewise-index -p likewise-simulation

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# The environment with every dependency group, and the package built into it in release mode.
$(VENV)/.environment: pyproject.toml tools/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Likewise needs Python 3.11 or later; \
	$(PYTHON) is $$($(PYTHON) -V). Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@command -v cargo >/dev/null || { echo "Likewise needs a Rust toolchain (cargo) on the PATH."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c tools/constraints.txt --group dev
	@touch $@

$(VENV)/.built: $(VENV)/.environment $(CORE_SOURCES)
	PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --locked --quiet
	@touch $@

.PHONY: build
build: $(VENV)/.built ## Make .venv with the package and everything it needs

.PHONY: lock
lock: ## Write the versions of the development packages anew, the latest of each
	$(BIN)/python -m pip install --quiet --upgrade --upgrade-strategy eager --group dev
	$(BIN)/python tools/write_constraints.py

.PHONY: check
check: build ## Lint, and the tests of the packages that the working tree changes (about a minute)
	$(BIN)/python tools/check_changed.py

.PHONY: demo
demo: build ## Find near-duplicates in the text that came with Python
	$(BIN)/python examples/demo.py demo-out

# Which tests `make test` runs; .ci/run also runs the rounds with servers, clusters, object stores, browsers and kills.
TESTS ?= not slow and not rounds

# While one core is left to compile the module as a whole, the others can compile tests: `make -j2 build rust-tests`.
.PHONY: rust-tests
rust-tests: ## Compile the tests of the Rust crates
	cargo test --quiet --no-run $(RUST_TESTS)

.PHONY: test
test: build ## Fast tests of both languages (about 5 minutes on 2 cores once built)
	cargo test --quiet $(RUST_TESTS)
	$(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist worksteal -m "$(TESTS)"

# Processes of histories, their number, and the first seed.
SOAK_PROCESSES ?= $(CORES)
SEEDS ?= 100000
FIRST_SEED ?= 0
SIMULATION := cargo run --profile quick --locked --quiet -p likewise-simulation --

.PHONY: soak
soak: ## Run SEEDS=100000 histories of the index on a simulated disk; SEED=n replays one and prints it
ifdef SEED
	$(SIMULATION) $(SEED)
else
	cargo build --profile quick --locked --quiet -p likewise-simulation
	@share=$$((($(SEEDS) + $(SOAK_PROCESSES) - 1) / $(SOAK_PROCESSES))); \
	for process in $$(seq 0 $$(($(SOAK_PROCESSES) - 1))); do echo $$(($(FIRST_SEED) + process * share)) $$share; done \
	| xargs -P $(SOAK_PROCESSES) -L 1 $(SIMULATION)
endif

.PHONY: test-all
test-all: build ## The slow tests too, and the rounds with servers, clusters, object stores, browsers and kills
	cargo test --quiet $(RUST_TESTS)
	$(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist worksteal

INTEGRATIONS ?=

.PHONY: integrations
integrations: build ## Test INTEGRATIONS="scrapy mcp" (or all) with their libraries, each in an environment of its own
	$(BIN)/python tools/try_integrations.py target/integrations $(INTEGRATIONS)

.PHONY: lint lint-rust lint-python
lint: lint-rust lint-python ## Formatting, types, layers, licenses, circles of modules, phrases

lint-rust:
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --locked --all-targets --quiet -- -D warnings
	cargo clippy --manifest-path fuzz/Cargo.toml --target-dir target/fuzz --locked --quiet -- -D warnings

lint-python: build
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/stubtest likewise._native --mypy-config-file pyproject.toml --allowlist tools/stubtest.txt --ignore-disjoint-bases --ignore-unused-allowlist --concise
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/check_licenses.py
	$(BIN)/python tools/rust_circles.py
	$(BIN)/python tools/check_words.py

.PHONY: platforms
platforms: $(VENV)/.environment ## Check that the crates compile for macOS, Windows and aarch64 too
	$(BIN)/python -m pip install --quiet --group platforms
	$(BIN)/python tools/check_platforms.py

.PHONY: aarch64
aarch64: ## Run the tests of the kernels for aarch64 in an emulator
	$(PYTHON) tools/check_aarch64.py

.PHONY: fix
fix: build ## Mend what the formatters can
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: golden
golden: build ## Write the golden vectors anew from the oracle and show the difference
	$(BIN)/python -m tests.golden.write
	git --no-pager diff --stat -- tests/golden

.PHONY: bench
bench: build ## Measure on a corpus made from this machine's own text (bench/README.md)
	test -x bench/.venv/bin/python || $(PYTHON) -m venv bench/.venv
	bench/.venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	bench/.venv/bin/python -m pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/bench/.venv $(BIN)/maturin develop --release --locked --quiet
	bench/.venv/bin/python bench/rivals/install.py
	bench/.venv/bin/python bench/corpus.py
	bench/.venv/bin/python bench/run.py
	bench/.venv/bin/python bench/rivals/run.py
	bench/.venv/bin/python bench/excerpts.py
	bench/.venv/bin/python bench/hamming_exact.py
	bench/.venv/bin/python bench/hamming.py --clean

.PHONY: findings
findings: ## Run the scripts about other packages, which install them (docs/benchmarks/findings.md)
	for script in findings/*.sh; do bash $$script || exit 1; done

.PHONY: quality
quality: build ## Score every method on the labeled development sets (docs/benchmarks/quality.md)
	$(BIN)/python bench/quality.py

.PHONY: quality-check
quality-check: build ## Fail if a figure of the gating sets fell by more than .01 (a few of them: in `make test`)
	$(BIN)/python bench/quality_gate.py

.PHONY: docs
docs: build ## Build the documentation into docs/_build, check its links, names and options, run its commands
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/sphinx-build -E -W -n -q docs docs/_build
	$(BIN)/python tools/check_book.py docs/_build
	$(BIN)/python -m pytest -q -n $(TEST_PROCESSES) tests/structure/test_commands_of_pages.py

.PHONY: figures
figures: build ## Draw the figures of the documentation anew
	$(BIN)/python tools/docs_figures.py

FUZZ_SECONDS ?= 60
FUZZ_TARGETS := text lines records packed tables segment

.PHONY: fuzz
fuzz: build ## Feed any bytes to every reader, FUZZ_SECONDS each (fuzz/README.md)
	command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked --quiet --debug
	cargo fuzz build -s none
	mkdir -p fuzz/corpus && tar -xzf fuzz/corpus.tar.gz --skip-old-files -C fuzz/corpus
	@printf '%s\n' $(FUZZ_TARGETS) | xargs -P $(CORES) -I TARGET $(SHELL) -c 'mkdir -p fuzz/corpus/TARGET; \
	  said=$$(cargo fuzz run -s none TARGET fuzz/corpus/TARGET fuzz/seeds/TARGET -- -max_total_time=$(FUZZ_SECONDS) \
	    -max_len=65536 -rss_limit_mb=2048 -timeout=20 -verbosity=0 -print_final_stats=1 2>&1) \
	    || { echo "fuzz TARGET: $$said"; exit 255; }; \
	  echo "fuzz TARGET: $$(grep -o "number_of_executed_units: [0-9]*" <<<"$$said")"'
	$(BIN)/python fuzz/recipe.py $(FUZZ_SECONDS)

.PHONY: dist
dist: $(VENV)/.environment ## Wheel and sdist in dist/, with licenses and bill of materials, each tried in a bare environment
	rm -rf dist
	$(BIN)/python -m pip install --quiet --group dist
	$(BIN)/maturin sdist --out dist
	RUSTFLAGS="--remap-path-prefix=$(CURDIR)=likewise --remap-path-prefix=$(HOME)=home" \
	  $(BIN)/maturin build --release --locked --out dist --quiet -i $(BIN)/python --target-dir target/dist
	$(BIN)/python tools/finish_wheel.py dist/*.whl
	$(BIN)/python tools/try_wheel.py dist/*.whl dist/*.tar.gz

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf $(VENV) target docs/_build demo-out dist bench/.venv fuzz/target fuzz/corpus fuzz/artifacts
