# `make demo` installs and searches, `make test` runs every check and test, `make test-long` with every seed;
# `make wheels` builds the wheel of this platform into dist/, with the compiled core if there is a C compiler.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
JOBS   ?= 3

# Tests start hundreds of processes: each would compile 240 modules anew.
export PYTHONDONTWRITEBYTECODE =

CORE := $(wildcard src/findling/core/*.[ch])
PLUGINS := $(wildcard plugins/*)

.PHONY: demo test test-long docs wheels clean

$(BIN)/findling: pyproject.toml hatch_build.py $(CORE)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable '.[code,models,postgres,serve,langchain,llama-index,haystack,llm]'
	@touch $@

$(BIN)/.plugins: $(BIN)/findling $(PLUGINS:%=%/pyproject.toml)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PLUGINS:%=--editable ./%)
	@touch $@

demo: $(BIN)/findling
	$(BIN)/findling "how is a stale index noticed" docs

test: $(BIN)/findling $(BIN)/.plugins
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.browser --install
	$(BIN)/python -m tests.poolers --install
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --durations=25 $(PYTEST)

test-long: export TEST_LONG = 1
test-long: PYTEST = --timeout=3600
test-long: test

docs: $(BIN)/findling
	$(BIN)/python docs/generate.py

wheels: $(BIN)/findling
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

clean:
	rm -f src/findling/core/_native.*
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
