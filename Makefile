# Switchfold. `make help` lists the verbs.
PYTHON ?= python3
TORCH ?= torch==2.13.0
RAY ?= ray[train]==2.60.0
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Python keeps compiled modules, also where the environment forbids it: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help deps deps-torch deps-ray lock licences audit demo test smoke test-unit long-tests test-races test-pipeline test-packet test-integration test-torch-suite lint format typecheck \
	docs screens p4 switch wheel bench model-check golden sanitize sanitize-first sanitize-rest sanitize-sessions sanitize-rows sanitize-threads instrument-addresses instrument-threads fuzz fuzz-datagrams loss-schedules transport kill-points compare drills soak deployment-time clean

help:
	@awk -F ':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## /{printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than 3.11; name another: make PYTHON=python3.12 ..."; exit 1; }
	@echo 'Making a Python environment in $(VENV) ...' >&2; $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "error: $(PYTHON) cannot make environments; on Debian or Ubuntu: apt-get install python3-venv"; exit 1; }

# What takes long says what it does; its output is in build/, and is shown where it fails.
TOLD := $(PYTHON) .ci/told.py
PIP := $(BIN)/python -m pip --no-color install --progress-bar off

# Whose changes need a new installation, which compiles the C library.
PACKAGE := pyproject.toml setup.py $(wildcard hostlib/native/*/*.[ch])

# A user's installation: the versions that pyproject.toml allows.
$(VENV)/.run-installed: $(PACKAGE) | $(BIN)/python
	@$(TOLD) 'Installing Switchfold and what it needs into $(VENV)' build/install.log $(PIP) --editable '.[controller]'
	@touch $@

# A developer's and CI's: the files that the lock names, and no other. setuptools comes from it, too.
LOCK := requirements-dev.txt
$(VENV)/.locked: $(LOCK) | $(BIN)/python
	@$(TOLD) 'Installing what $(LOCK) names into $(VENV)' build/install-locked.log \
	  $(PIP) --require-hashes --requirement $(LOCK)
	@touch $@

$(VENV)/.dev-installed: $(PACKAGE) $(VENV)/.locked
	@$(TOLD) 'Compiling and installing Switchfold' build/install.log $(PIP) --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.run-installed

# By version alone: which file it is depends on the machine. What it needs is in the lock, but for CUDA.
$(VENV)/.torch-installed: $(VENV)/.dev-installed
	@$(TOLD) 'Installing $(TORCH)' build/install-torch.log $(PIP) '$(TORCH)'
	@touch $@

# Ray has a lock of its own, with what the other lock names as well in the same versions.
RAY_LOCK := requirements-ray.txt
$(VENV)/.ray-installed: $(RAY_LOCK) $(VENV)/.torch-installed
	@$(TOLD) 'Installing what $(RAY_LOCK) names into $(VENV)' build/install-ray.log \
	  $(PIP) --require-hashes --requirement $(RAY_LOCK)
	@touch $@

##@ Start here
demo: $(VENV)/.run-installed ## Train a model on 4 workers, gradients summed inside a P4 switch; leaves report/
	$(BIN)/switchfold demo

# Many tests wait more than they compute: two for each core.
AT_ONCE := $(shell expr 2 '*' $$(nproc))
test: $(VENV)/.dev-installed ## Run every test that this machine can, AT_ONCE=n at a time (two per core); says what is skipped and why
	$(BIN)/python -m pytest -n $(AT_ONCE) --maxprocesses 8 --durations 20

##@ Set up
deps: $(VENV)/.dev-installed ## Set up the development environment in .venv, of the versions in requirements-dev.txt

deps-torch: $(VENV)/.torch-installed ## deps, and the PyTorch that the backend is tested with (TORCH=torch==2.13.0)

deps-ray: $(VENV)/.ray-installed ## deps-torch, and Ray, of the versions in requirements-ray.txt

# Tools of their own environment: what they need is not what we test with.
TOOLS := build/tools/bin
$(TOOLS)/.installed: Makefile
	$(PYTHON) -m venv build/tools
	$(TOOLS)/python -m pip install --quiet uv==0.13.9 pip-audit==2.10.1
	@touch $@

# Of every Python that we support, without the address of an index. Keeps the versions that still fit, unless UPGRADE=--upgrade.
UPGRADE :=
COMPILE = UV_CUSTOM_COMPILE_COMMAND='make lock' $(TOOLS)/uv pip compile --quiet --universal --python-version 3.11 \
  --generate-hashes --no-emit-index-url --no-emit-find-links $(UPGRADE)
lock: $(TOOLS)/.installed ## Renew both locks from pyproject.toml and RAY=ray[train]==2.60.0; UPGRADE=--upgrade for the newest versions
	echo '$(TORCH)' >build/torch.txt
	$(COMPILE) --no-emit-package torch --constraint build/torch.txt \
	  --extra controller --extra dev --extra docs --extra latency --extra postgres --extra torch \
	  --output-file $(LOCK) pyproject.toml
	echo '$(RAY)' >build/ray.txt
	$(COMPILE) --constraint $(LOCK) --output-file $(RAY_LOCK) build/ray.txt
	@$(MAKE) --no-print-directory licences

licences: $(VENV)/.ray-installed ## Renew docs/licences.md from what is installed
	$(BIN)/python docs/build_licences.py

# A version with known vulnerabilities: if it passes, there are no data, and the rest would pass for the same reason.
KNOWN := jinja2==2.10
AUDIT := $(TOOLS)/pip-audit --strict --no-deps --disable-pip --progress-spinner off
audit: $(TOOLS)/.installed ## Look for known vulnerabilities of the locked packages; fails where their data cannot be had
	@echo '$(KNOWN)' >build/known.txt
	@$(AUDIT) --requirement build/known.txt >build/known.log 2>&1; grep -q '^Found [0-9]* known vuln' build/known.log || \
	  { cat build/known.log; echo "error: nothing was audited: this machine cannot get the data on vulnerabilities of PyPI"; exit 2; }
	@{ sed -n 's/^\([a-z0-9].*==.*\) \\$$/\1/p' $(LOCK) $(RAY_LOCK) | sort -u; echo '$(TORCH)'; } >build/audited.txt
	$(AUDIT) --requirement build/audited.txt

switch: $(VENV)/.run-installed ## Build the embedded switch's native code for the committed programs
	$(BIN)/softswitch build p4src/build/*/switchfold_*.json

wheel: $(VENV)/.dev-installed ## Build the sdist and the wheel into dist/, as a release has them
	rm -rf build/lib.* build/temp.* build/bdist.* dist
	$(BIN)/python -m build --outdir dist

clean: ## Remove the environment, build output and reports
	rm -rf $(VENV) build dist report src/*.egg-info hostlib/native/*.so .pytest_cache .ruff_cache .hypothesis

##@ Tests, rung by rung
SMOKE := unit/docs/test_docs.py integration/test_examples.py::test_allreduce_sums_in_one_process \
  integration/test_allreduce_softswitch.py::test_allreduce_and_the_switch_counts_every_packet \
  integration/test_p4runtime_softswitch.py::test_every_table_takes_entries_and_gives_them_back \
  integration/test_allreduce_with_controller.py::test_join_allreduce_barrier_close \
  integration/test_testbed_run.py::test_run_sums_on_every_host
smoke: $(VENV)/.dev-installed ## In half a minute: sums, with a controller and without, P4Runtime tables, a testbed, links of the docs
	$(BIN)/python -m pytest -n $(AT_ONCE) --maxprocesses 8 $(addprefix tests/, $(SMOKE))

test-unit: $(VENV)/.dev-installed ## One module at a time, docs against code; no privileges. Without those that take long: see long-tests
	$(BIN)/python -m pytest -n $(AT_ONCE) --maxprocesses 8 --quick tests/unit

long-tests: $(VENV)/.dev-installed ## Run all of tests/unit, and renew the list of those that test-unit leaves to make test
	$(BIN)/python -m pytest -n $(AT_ONCE) --maxprocesses 8 --junitxml build/unit.xml tests/unit
	PYTHONPATH=tests/support $(BIN)/python -m long_tests build/unit.xml

SEED := 1
test-races: $(VENV)/.dev-installed ## SEED=1: tests/unit with threads that stop at random lines; finds what tests assert and do not wait for
	$(BIN)/python -m pytest -n $(AT_ONCE) --maxprocesses 8 --thread-delays $(SEED) tests/unit

test-pipeline: $(VENV)/.dev-installed ## Small P4 programs on softswitch
	$(BIN)/python -m pytest tests/pipeline

test-packet: $(VENV)/.dev-installed ## The aggregation program, packet by packet, on every switch found
	$(BIN)/python -m pytest tests/packet

test-integration: $(VENV)/.dev-installed ## Networks, controllers and workers together
	$(BIN)/python -m pytest tests/integration

RANKS := 3
test-torch-suite: $(VENV)/.torch-installed ## RANKS=3: PyTorch's own distributed tests here and over Gloo; none may fall below the floor
	cd tests && PYTHONPATH=support ../$(BIN)/python -m torch_suite --ranks $(RANKS)

model-check: $(VENV)/.dev-installed ## Check the Promela models of slots, hot rows and loss tolerance (needs spin)
	$(BIN)/python tests/model/model_check.py

SANITIZERS := -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
# What a sanitizer says comes at once, past pytest.
PRELOADED = LD_PRELOAD="$$(gcc -print-file-name=$(1))" $(BIN)/python -m pytest --capture=sys
SANITIZED := ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc $(call PRELOADED,libasan.so)
# Without optimisation: gcc takes minutes for instrumented code of wide operators otherwise. _FORTIFY_SOURCE needs it,
# and calls functions into which sanitizers do not look.
SANITIZED_SWITCH := SWITCHFOLD_CFLAGS="-O0 -U_FORTIFY_SOURCE $(SANITIZERS)" $(SANITIZED)
sanitize: $(VENV)/.dev-installed ## All C code under the address and undefined-behaviour sanitizers, the host library's under the thread sanitizer, on two cores
	@$(MAKE) --no-print-directory -j2 --output-sync=target sanitize-sessions sanitize-first sanitize-rest sanitize-rows sanitize-threads

# What runs no C code, or runs for long through what other tests reach as well.
UNSANITIZED := traced_build_of_every_program or text_grows_with or has_a_case_for_each or never_imports or random_schedules_agree or rounded_once or test_hostlib_import or test_hostlib_join or test_hostlib_config
sanitize-first: $(VENV)/.dev-installed
	$(SANITIZED_SWITCH) tests/pipeline/test_[a-l]*.py -k 'not ($(UNSANITIZED))'

sanitize-rest: $(VENV)/.dev-installed
	$(SANITIZED_SWITCH) $(addprefix tests/unit/softswitch/test_, impairments.py priority_queues.py relay.py switch_runtime.py switch_threads.py) tests/integration/test_super_frames.py tests/integration/test_veth_offload.py tests/pipeline/test_[m-z]*.py -k 'not ($(UNSANITIZED))'

# Users compile without these: newer compilers may warn of more.
WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Werror
# A second installation comes before that of the environment. Both compile in build/, so one after the other.
ADDRESSES := build/instrumented/addresses
THREADS := build/instrumented/threads
define INSTRUMENTED
	rm -rf $(1) build/lib.* build/temp.*
	CC=gcc CFLAGS="$(2) $(WARNINGS)" $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --target $(1) .
endef
instrument-addresses: $(VENV)/.dev-installed
	$(call INSTRUMENTED,$(ADDRESSES),$(SANITIZERS))

instrument-threads: instrument-addresses
	$(call INSTRUMENTED,$(THREADS),-g -fno-omit-frame-pointer -fsanitize=thread)

SESSIONS := $(addprefix tests/unit/hostlib/test_, hostlib_*.py s[el]*.py stale_results.py allgather_*.py large_first.py loss_recovery.py malformed_*.py trees_transport.py)
ROWS := $(addprefix tests/unit/hostlib/test_, quantization.py exact*.py row_*.py) tests/unit/hostlib/hot_rows/test_row_planning.py $(addprefix tests/unit/hostlib/parameter_server/test_hot_, native_*.py open_calls.py pushes*.py reads.py) tests/unit/hostlib/parameter_server/switch_groups/test_group_chunks.py
THREADED := $(addprefix tests/unit/hostlib/test_, hostlib_engine.py session_allgather.py session_threads.py row_threads.py)
SANITIZED_HOSTLIB := PYTHONPATH=$(ADDRESSES) $(SANITIZED)
sanitize-sessions: instrument-addresses
	$(SANITIZED_HOSTLIB) $(SESSIONS) -k 'not ($(UNSANITIZED))'

sanitize-rows: instrument-addresses
	$(SANITIZED_HOSTLIB) $(ROWS) -k 'not ($(UNSANITIZED))'

sanitize-threads: instrument-threads
	PYTHONPATH=$(THREADS) $(call PRELOADED,libtsan.so) $(THREADED)

FRAMES := 10000000
fuzz: $(VENV)/.dev-installed ## FRAMES=10000000 mutated frames through every program under the sanitizers
	cd tests && PYTHONPATH=support ../$(BIN)/python -m mutation --frames $(FRAMES)

SCHEDULES := 20000
fuzz-datagrams: $(VENV)/.dev-installed ## SCHEDULES=20000 random jobs of the host library with damaged datagrams, likewise
	cd tests && PYTHONPATH=support ../$(BIN)/python -m fuzz --schedules $(SCHEDULES)

loss-schedules: $(VENV)/.dev-installed ## SCHEDULES=20000 random jobs that tolerate loss, in simulated time: a ledger checks each packet
	cd tests && PYTHONPATH=support ../$(BIN)/python -m loss_schedules --schedules $(SCHEDULES)

transport: $(VENV)/.dev-installed ## Run the tests of the checklist in docs/transport.md, and write their outcomes there (needs root)
	$(BIN)/python docs/build_transport.py

KILLS := 1000
kill-points: $(VENV)/.dev-installed ## Kill a controller at its every commit and P4Runtime write, and KILLS=1000 times at random; check what it leaves
	cd tests && PYTHONPATH=support ../$(BIN)/python -m kill_points --kills $(KILLS)

SECONDS := 600
compare: $(VENV)/.dev-installed ## SECONDS=600 of random packets and tables through softswitch and BMv2, which must agree
	cd tests && PYTHONPATH=support ../$(BIN)/python -m differential fuzz --seconds $(SECONDS)

##@ Sources
lint: $(VENV)/.torch-installed ## Style and types; changes nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --project pyproject.toml

typecheck: $(VENV)/.torch-installed ## Types only
	$(BIN)/pyright --project pyproject.toml

format: $(VENV)/.dev-installed ## Rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev-installed ## Build build/docs: the pages, and the reference of what is public; checks every link
	@$(TOLD) 'Building build/docs' build/docs.log $(BIN)/mkdocs build --strict

screens: $(VENV)/.dev-installed ## Take the pictures docs/images/screen_*.png again, from testbeds (needs root, chromium and chromedriver)
	$(BIN)/python docs/build_screens.py

p4: $(VENV)/.dev-installed ## Compile p4src with the p4c on the PATH (or: docker compose run --rm p4c)
	$(BIN)/python -m switchfold.p4src.compile

golden: $(VENV)/.dev-installed ## Renew the golden files of the generator's tests
	$(BIN)/python -m pytest --golden tests/pipeline/test_golden_files.py

##@ Measurements
bench: $(VENV)/.torch-installed ## Allreduce and trees against Gloo on the same links, many jobs, planning (needs root)
	$(BIN)/python benchmarks/allreduce/allreduce.py
	$(BIN)/python benchmarks/trees/tree_allreduce.py
	$(BIN)/python benchmarks/contention/contention.py
	$(BIN)/python benchmarks/trees/tree_planning.py
	$(BIN)/python benchmarks/trees/tree_installation.py
	$(BIN)/python benchmarks/overlap/overlap.py
	$(BIN)/python benchmarks/training/training.py

TARGETS := softswitch,bmv2
drills: $(VENV)/.dev-installed ## Let each part fail while a job sums, on TARGETS=softswitch,bmv2; writes docs/drills.md (needs root)
	$(BIN)/python benchmarks/drills/drills.py --targets $(TARGETS)

MINUTES := 60
soak: $(VENV)/.dev-installed ## MINUTES=60 of mixed jobs with random drills: what leaks, and how latency goes (needs root)
	$(BIN)/python benchmarks/drills/soak.py --minutes $(MINUTES)

deployment-time: $(VENV)/.dev-installed ## Seconds of each command of docs/deployment.md, with real pip, empty caches and TORCH=torch==2.13.0 (needs root)
	PYTHONPATH=tests/support $(BIN)/python -m deployment_time --torch '$(TORCH)'
