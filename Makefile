# Needs only make and Python 3.11 or newer. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check
# Further arguments for pytest or the benchmark, for example: make test ARGS="-k prior"
ARGS ?=
# A Python of at least 3.12 for `make test-arviz`, if it has another name than python3.12 and so on
ARVIZ_PYTHON ?=

# A Python named by the user is the only one tried; otherwise newer ones are looked for too.
ifeq ($(origin PYTHON),file)
PYTHONS := $(PYTHON) python3.14 python3.13 python3.12 python3.11
else
PYTHONS := $(PYTHON)
endif

.DEFAULT_GOAL := help
.PHONY: help demo test test-arviz lint house types format docs pictures bench-paper bench-engine bench-ablation bench-compare bench-cheap bench-zoo bench-certificate bench-noise bench-recognition faults real-world bench-workers bench-peers bench-overhead guard release stale paper clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | awk -F ':.*## ' '{printf "  %-17s %s\n", $$1, $$2}'

demo: $(VENV)/.installed ## Run the demonstration
	$(BIN)/basq demo

test: $(VENV)/.installed-test ## Run the tests (without those marked slow)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

test-arviz: .venv-arviz/.installed ## Test the export to the ArviZ that the other tests do not use (0.x or 1.x)
	OMP_NUM_THREADS=1 .venv-arviz/bin/python -m pytest tests/results/test_export.py -k arviz $(ARGS)

lint: $(VENV)/.installed-lint ## Check style, import directions and spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/codespell

house: $(VENV)/.created ## Check that every module has a room: folders, lengths of files, cycles of imports
	$(BIN)/python tools/house.py

types: $(VENV)/.installed-lint ## Check the types
	$(BIN)/mypy

format: $(VENV)/.installed-lint ## Format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.installed-docs ## Build the documentation into docs/_build/html; warnings are errors
	$(BIN)/sphinx-build -W --keep-going -n -q -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

bench-paper: $(VENV)/.installed ## Measure the paper's method on the paper's problems
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.paper_method $(ARGS)

bench-engine: $(VENV)/.installed ## Measure the default engine on many families
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.engine $(ARGS)

bench-compare: $(VENV)/.installed ## Measure what sharing out calls between rival models saves
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.compare $(ARGS)

bench-zoo: $(VENV)/.installed ## Measure the default engine on real models
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.zoo $(ARGS)

bench-certificate: $(VENV)/.installed ## Measure certificates of answers, right and wrong ones
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.certificate $(ARGS)

bench-noise: $(VENV)/.installed ## Measure the default engine on noisy log-likelihoods
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.noisy $(ARGS)

faults: $(VENV)/.installed-test ## Inject faults into whole runs, in pools of every kind (half an hour; ARGS=--quick: minutes)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.faults $(ARGS)

bench-recognition: $(VENV)/.installed ## Count which noise scales are recognised in black boxes
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.recognition $(ARGS)

bench-cheap: $(VENV)/.installed-bench ## Measure what keeping cheap parameters apart saves
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.cheap $(ARGS)

paper: $(VENV)/.installed ## Regenerate figures and tables of the paper, and docs/paper.md (ARGS=--quick: under 20 minutes)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.paper $(ARGS)

real-world: $(VENV)/.installed-bench ## Run the paper's three real cases (ARGS=--quick: minutes)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.real_world $(ARGS)

bench-peers: $(VENV)/.installed-bench ## Measure other tools and ours on the same problems: calls and overhead
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.peers $(ARGS)

bench-workers: $(VENV)/.installed ## Measure how busy workers are kept, and what the evaluation layer costs
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.workers $(ARGS)

bench-overhead: $(VENV)/.installed ## Measure what the tool itself costs, against the machine's floor
	$(BIN)/python -m benchmarks.overhead $(ARGS)

guard: $(VENV)/.installed ## Fail if a batch costs far more than it should on this machine
	$(BIN)/python -m benchmarks.overhead --guard

stale: $(VENV)/.installed ## Say which stored figures come from older code
	$(BIN)/python -m benchmarks.made $(ARGS)

pictures: $(VENV)/.installed-test ## Draw the pictures of the documentation (needs Chromium; ARGS="corner batch": some)
	OMP_NUM_THREADS=1 $(BIN)/python docs/make_pictures.py $(ARGS)

bench-ablation: $(VENV)/.installed ## Measure what each part of the default engine earns
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.engine_ablation $(ARGS)

# What is built is installed from an empty folder into an empty environment, and tried there.
release: $(VENV)/.created ## Build sdist and wheel into dist, check them, and run the demonstration from an empty environment
	$(PIP_INSTALL) build twine
	rm -rf dist .venv-release
	$(BIN)/python -m build -q
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m venv .venv-release
	.venv-release/bin/python -m pip install -q --disable-pip-version-check dist/*.whl
	folder=$$(mktemp -d) && here=$$PWD && cd "$$folder" && "$$here/.venv-release/bin/basq" --version \
	    && "$$here/.venv-release/bin/basq" demo gauss && ls basq-demo.png basq-demo.html && rm -r "$$folder"

clean: ## Remove the virtual environment, builds and caches
	rm -rf $(VENV) .venv-arviz .venv-release build dist docs/_build docs/examples docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamp files: each is newer than pyproject.toml when its packages are installed.
$(VENV)/.created:
	@found=; \
	for candidate in $(PYTHONS); do \
	    if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        found=$$candidate; break; \
	    fi; \
	done; \
	if [ -z "$$found" ]; then \
	    echo "basq needs Python 3.11 or newer; tried: $(PYTHONS)." >&2; \
	    echo "Install one, or name it: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; \
	    exit 1; \
	fi; \
	echo "Making $(VENV) with $$($$found --version)"; \
	$$found -m venv --clear $(VENV) || { \
	    echo "Could not make $(VENV): is the venv module installed (Debian: python3-venv)?" >&2; exit 1; }
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.created pyproject.toml
	$(PIP_INSTALL) -e '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: $(VENV)/.created pyproject.toml
	$(PIP_INSTALL) -e '.[docs]'
	@touch $@ $(VENV)/.installed

# With Python 3.11 the tests have ArviZ 0.x, so this one has 1.x, or at least its part that holds data, which needs no newer
# Python; with a newer one it is the other way round.
.venv-arviz/.installed: $(VENV)/.created pyproject.toml
	@recent='import sys; sys.exit(sys.version_info < (3, 12))'; \
	chosen=$(BIN)/python; wanted=arviz-base; \
	if $(BIN)/python -c "$$recent"; then wanted='arviz<1'; \
	else for candidate in $(ARVIZ_PYTHON) python3.14 python3.13 python3.12; do \
	    if $$candidate -c "$$recent" 2>/dev/null; then chosen=$$candidate; wanted='arviz>=1'; break; fi; \
	done; fi; \
	echo "Making .venv-arviz with $$($$chosen --version) and $$wanted"; \
	$$chosen -m venv --clear .venv-arviz && \
	.venv-arviz/bin/python -m pip install -q --disable-pip-version-check -e . "$$wanted" pytest hypothesis h5netcdf h5py
	@touch $@

# A tool whose pins do not suit the others gets an environment of its own, as in: make .venv-bobe/.installed
.venv-%/.installed: $(VENV)/.created pyproject.toml
	$(BIN)/python -m venv --clear .venv-$* && \
	.venv-$*/bin/python -m pip install -q --disable-pip-version-check -e . $*
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.created pyproject.toml
	$(PIP_INSTALL) -e '.[bench,battery]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-lint: $(VENV)/.created pyproject.toml
	$(PIP_INSTALL) -e '.[lint]'
	@touch $@ $(VENV)/.installed
