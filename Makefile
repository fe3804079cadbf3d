# `make demo` installs and searches, `make test` runs every check and test, `make test-long` with every seed;
# `make wheels` builds the wheel of this platform into dist/, with the compiled core if there is a C compiler.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Half of the time a test waits for a process: six of them keep two cores busy.
JOBS   ?= 6

# Tests start hundreds of processes: each would compile 240 modules anew.
export PYTHONDONTWRITEBYTECODE =

CORE := $(wildcard src/findling/core/*.[ch])
PLUGINS := $(wildcard plugins/*)

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# uv takes 30 s of CPU, pip 75 s. Where uv does not reach the registry, as behind a certificate of one's own, pip does.
# A module is compiled when it is imported: most of 15,000 never are, and all together take a minute.
define install
$(PYTHON) -m venv $(VENV)
$(PIP) --upgrade "pip>=25.1" uv
$(BIN)/python -m uv pip install --quiet --python $(BIN)/python $(1) || $(PIP) --no-compile $(1)
endef
FINDLING := --group dev --editable '.[code,models,postgres,serve,langchain,llama-index,haystack,llm]'

.PHONY: demo test tests test-long types checks docs wheels clean

$(BIN)/findling: pyproject.toml hatch_build.py $(CORE)
	$(call install,$(FINDLING))
	@touch $@

# The plugins come in the same run: one of their own takes longer.
$(BIN)/.plugins: pyproject.toml hatch_build.py $(CORE) $(PLUGINS:%=%/pyproject.toml)
	$(call install,$(FINDLING) $(PLUGINS:%=--editable ./%))
	@touch $(BIN)/findling $@

demo: $(BIN)/findling
	$(BIN)/findling "how is a stale index noticed" docs

# Types take a minute of one core, most of it while the other checks and the first tests run.
test: $(BIN)/.plugins
	@$(MAKE) --no-print-directory -j2 types tests

tests: checks
	$(BIN)/python -m pytest --workers $(JOBS) --durations=25 $(PYTEST)

types: $(BIN)/.plugins
	$(BIN)/mypy

checks: $(BIN)/.plugins
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m tests.browser --install
	$(BIN)/python -m tests.poolers --install

test-long: export TEST_LONG = 1
test-long: export PYTEST = --timeout=3600
test-long: test

docs: $(BIN)/findling
	$(BIN)/python docs/generate.py

wheels: $(BIN)/findling
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

clean:
	rm -f src/findling/core/_native.*
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
