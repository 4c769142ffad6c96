# trnscope: `make demo` and `make test` set up all they need by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint types unit bench conformance samples clean

$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	@$(BIN)/trnscope demo

test: lint types unit

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(VENV)/.test
	$(BIN)/mypy

unit: $(VENV)/.test
	$(BIN)/python -m pytest

bench: $(VENV)/.test
	$(BIN)/python -m tests.bench

conformance: $(VENV)/.test
	$(BIN)/python -m tests.conformance "$(NKI_SAMPLES)"
	$(BIN)/python -m tests.perfetto.conformance "$(NKI_SAMPLES)"

samples: $(VENV)/.demo
	$(BIN)/python -m tests.make_samples

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache demo
