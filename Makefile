# Every target makes the virtual environment it needs; nothing but Python 3.11+, a C compiler and make must be there.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
KERNELS := $(wildcard src/lesioncount/_kernels/*.pyx src/lesioncount/_kernels/*.pxd src/lesioncount/_kernels/*.h)

.PHONY: help demo test lint unit slow bench format clean

help:
	@echo "make demo    count a small cohort of example scans and write a report"
	@echo "make test    lint, types, import layers, tests"
	@echo "make slow    the tests that take minutes"
	@echo "make bench   speed, as ratios in one run (writes benchmarks/results.json)"
	@echo "make format  format the code"
	@echo "make clean   remove what the other targets made"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.package: $(BIN)/python pyproject.toml setup.py $(KERNELS)
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.package
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group lint --group test
	@touch $@

$(VENV)/.bench: $(VENV)/.package
	$(BIN)/python -m pip install --quiet --editable '.[cluster]' --group bench
	@touch $@

$(VENV)/.demo: $(VENV)/.package
	$(BIN)/python -m pip install --quiet --editable '.[report]'
	@touch $@

demo: $(VENV)/.demo
	@$(BIN)/python -m lesioncount.demo

test: lint unit

lint: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.test
	$(BIN)/pytest --cov --cov-report=term -m "not slow"

slow: $(VENV)/.test
	$(BIN)/pytest -m slow

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py

format: $(VENV)/.test
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) build src/lesioncount.egg-info src/lesioncount/_kernels/*.c src/lesioncount/_kernels/*.so
