# yolov9kit: `make` lists what it can do. Needs Python 3.11 or newer; everything it installs lies in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SHAPES := --jaxtyping-packages=yolov9kit,beartype.beartype
NOTEBOOKS = $(wildcard notebooks/*.ipynb)
JS_TESTS = $(wildcard tests/widgets/*.test.js tests/widgets/*.test.mjs)

.PHONY: help ready workbench test check test-js test-compiled test-browser test-python notebooks constraints clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

help:
	@echo "make workbench    set up .venv and open the workbench in JupyterLab"
	@echo "make test         everything: check, JavaScript, notebooks, all tests"
	@echo "make check        in seconds: format, lint, types, architecture, spelling"
	@echo "make notebooks    run every notebook and compare what it marks for comparison"
	@echo "make constraints  resolve the newest versions of all dependencies into constraints.txt"
	@echo "make clean        remove caches and build output (.venv stays: rm -r .venv)"
	@echo "With another Python: make PYTHON=python3.12 workbench"

# --- set-up -------------------------------------------------------------------------------------------------

define CHECK_PYTHON
import sys
if sys.version_info < (3, 11):
    sys.exit("yolov9kit needs Python 3.11 or newer, and %s is %s.\nInstall one and name it: make PYTHON=python3.12 workbench" % (sys.executable, sys.version.split()[0]))
try:
    import ensurepip, venv
except ImportError:
    sys.exit("This Python cannot make virtual environments.\nOn Debian and Ubuntu: apt-get install python3-venv")
endef
export CHECK_PYTHON

define CHECK_VENV
import sys
try:
    import pip
except ImportError:
    pip = None
if pip is None or sys.version_info < (3, 11):
    sys.exit("$(VENV) is incomplete or too old. Remove it and run make again: rm -r $(VENV)")
endef
export CHECK_VENV

define CHECK_OPENCV
import sys
from yolov9kit.machine import opencv
fact = opencv()
if fact.ok is False:
    sys.exit("OpenCV " + fact.value + "\n" + fact.advice + "\nThen run make again.")
endef
export CHECK_OPENCV

# JupyterLab's question about news would cover the first picture; in this environment the answer is no.
define QUIET_LAB
{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}
endef
export QUIET_LAB

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no '$(PYTHON)' here. Name a Python: make PYTHON=/path/to/python3 workbench"; exit 1; }
	@$(PYTHON) -c "$$CHECK_PYTHON"
	$(PYTHON) -m venv $(VENV) || { echo "$(VENV) cannot be made. If it is there already, remove it: rm -r $(VENV)"; exit 1; }

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	@$(BIN)/python -c "$$CHECK_VENV"
	@echo "Installing what pyproject.toml names. The first time that is some 3.4 GB and a few minutes."
	$(BIN)/python -m pip install -c constraints.txt torch torchvision
	$(BIN)/python -m pip install -c constraints.txt -e '.[app,dev]'
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@echo "$$QUIET_LAB" > $(VENV)/share/jupyter/lab/settings/overrides.json
	@touch $@

# OpenCV is asked each time: it is the one package that pip can install and the system still refuse to load.
ready: $(READY)
	@$(BIN)/python -c "$$CHECK_OPENCV"

# --- everyday -----------------------------------------------------------------------------------------------

workbench: ready
	@$(BIN)/yolov9kit env
	@$(BIN)/yolov9kit lab

# The full run of pytest comes last: its summary is the last thing to read.
test: check test-js test-compiled notebooks test-browser test-python

check: ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python -m pytest -q tests/test_architecture.py tests/test_environment.py tests/test_import.py

test-python: ready
	$(BIN)/python -m pytest $(SHAPES) -m "not compiled and not browser" -n 2 --dist loadfile

# Without the shape checks, which stop torch.compile(fullgraph=True). Exit code 5: no test has the mark.
test-compiled: ready
	$(BIN)/python -m pytest -m compiled || [ $$? -eq 5 ]

# Alone on the machine: JupyterLab, a kernel and Chromium want it.
test-browser: ready
	$(BIN)/python -m pytest -m browser tests/browser || [ $$? -eq 5 ]
	$(BIN)/python -m pytest -m browser tests/widgets || [ $$? -eq 5 ]

test-js:
ifneq ($(JS_TESTS),)
	@command -v node >/dev/null || { echo "The JavaScript tests need node (apt-get install nodejs)."; exit 1; }
	node --test $(JS_TESTS)
endif

# nbval kills its kernels, so what they keep in temporary folders is theirs no more and is removed here.
notebooks: ready
ifneq ($(NOTEBOOKS),)
	@temporary=$$(mktemp -d) && trap 'rm -rf "$$temporary"' EXIT INT TERM && \
	TMPDIR="$$temporary" $(BIN)/python -m pytest --nbval-lax --nbval-current-env \
		--nbval-sanitize-with tests/nbval.cfg --nbval-cell-timeout 300 notebooks
endif

# --- upkeep -------------------------------------------------------------------------------------------------

define LIST_RESOLVED
import json, sys
rows = {item["metadata"]["name"]: item["metadata"]["version"] for item in json.load(sys.stdin)["install"]}
rows.pop("yolov9kit")
print("# The set that was resolved together and tested, on Linux and Python 3.11. Made by `make constraints`.")
print(*sorted((f"{name}=={version}" for name, version in rows.items()), key=str.lower), sep="\n")
endef
export LIST_RESOLVED

constraints: $(BIN)/python
	$(BIN)/python -m pip install --quiet --dry-run --ignore-installed --report $(VENV)/resolved.json \
		'.[serve,cluster,app,dev]'
	$(BIN)/python -c "$$LIST_RESOLVED" < $(VENV)/resolved.json > $(VENV)/constraints.txt
	mv $(VENV)/constraints.txt constraints.txt

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./$(VENV) -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -r {} +
