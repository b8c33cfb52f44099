# What can be done here; `make` alone lists it. Nothing but Python >= 3.11 is needed to begin with.

PYTHON ?=
LISTEN ?= 127.0.0.1:9100
OPTIONS ?=
MINUTES ?= 600
SELECTED ?=
FAILURES ?=
WORKERS ?= 4
VENV := .venv
BIN := $(VENV)/bin
LOCKED := uv.lock pyproject.toml $(wildcard libs/*/pyproject.toml plugins/*/pyproject.toml)
# Many tests wait for processes and clocks, so there are more workers than cores; tests/workers.py has what they share.
# Each worker would compile all tests anew where bytecode may not be written.
HOSTILE = tests/core/plugin_host/test_hostile_plugins.py tests/core/instruments/test_hostile_instruments.py \
	tests/core/server/test_hostile_answers.py
SIDE_BY_SIDE = -q -n $(WORKERS) --dist loadfile
unit test-long test-python312 test-python313 test-python314: export PYTHONDONTWRITEBYTECODE =
COG_PAGES = $(shell grep -l '\[\[\[cog' docs/*.md README.md)

export PYTHON LISTEN FAILURES

.DEFAULT_GOAL := help
.PHONY: help install run test lint unit hostile test-long test-python312 test-python313 test-python314 test-uvicorn bpf bpf-check demo test-kernel test-kernel-more test-kernel-full test-kernel-traces test-arm64 judge-shapes bench soak ladder failure-ladder run-kube test-kube e2e-node image test-image dashboards dist test-install deb test-deb docs man completions clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed  ## make .venv with temper in it (PYTHON=... chooses the interpreter)

$(VENV)/.installed: $(LOCKED)
	@scripts/install $(VENV)
	@touch $@

run: install  ## run the agent on this machine's real threads (LISTEN=address:port OPTIONS=--observe-only)
	@scripts/run-agent $(OPTIONS)

test: lint unit hostile  ## everything but the kernel: formatting, types, imports, documentation, tests

lint: install  ## check formatting, lint, types, import contracts and generated documentation
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/cog --check $(COG_PAGES)
	$(BIN)/python -m deploy.monitoring --check

unit: install
	@scripts/install-compiler || true  # without it tests are skipped
	$(BIN)/pytest $(SIDE_BY_SIDE) $(SELECTED) || test -n "$(SELECTED)" -a $$? = 5  # 5: none is selected

# A hostile plugin of a test may leave its process with a lower recursion limit, or without a stack. So each file of
# these has a process of its own.
# A test that hangs ends its process, since the main thread may not come to run a handler of a signal.
# With a cache of their own, so that only what failed of them runs once more.
hostile: install
	$(BIN)/pytest -q -n 3 --dist loadfile --timeout 120 --timeout-method thread --max-worker-restart 3 -o cache_dir=build/pytest-hostile $(HOSTILE) $(SELECTED) || test -n "$(SELECTED)" -a $$? = 5

test-long: install  ## the tests that train, replay and attack for minutes
	$(BIN)/pytest $(SIDE_BY_SIDE) --long -o cache_dir=build/pytest-long $(SELECTED) || test -n "$(SELECTED)" -a $$? = 5

test-python312: build/venv-3.12/.installed  ## the tests that depend on the version of Python, on 3.12
test-python313: build/venv-3.13/.installed  ## the same on 3.13
test-python314: build/venv-3.14/.installed  ## the same on 3.14

test-python312 test-python313 test-python314:
	$(<D)/bin/pytest $(SIDE_BY_SIDE) --second-python -o cache_dir=$(<D:build/venv-%=build/pytest-%) $(SELECTED)

build/venv-3.%/.installed: $(LOCKED)
	@PYTHON= scripts/install $(@D) 3.$*
	@touch $@

test-uvicorn: install  ## the HTTP tests with the lowest and the newest uvicorn that is allowed
	@scripts/test-uvicorn $(SELECTED)

bpf:  ## compile every *.bpf.c into the .bpfl beside it, which is committed (installs clang-19 as root)
	@scripts/build-bpf

bpf-check:  ## compile them anew and compare; make test does so too where clang-19 is
	@scripts/build-bpf --check

demo: install  ## boot a sched_ext kernel and watch temper enforce tiers on it (about 6 minutes)
	@examples/demo/run

test-kernel: install  ## assert the same, and what follows from faults, on the same kernel
	$(BIN)/pytest tests/kernel --kernel -o cache_dir=build/pytest-kernel $(SELECTED)

test-kernel-more: install  ## churn, a trace, and the faults that take minutes, on the same kernel (half an hour)
	$(BIN)/pytest tests/kernel --kernel --more -o cache_dir=build/pytest-kernel-more $(SELECTED)

test-kernel-full: install  ## every fault, promise and kernel there is (hours); docs/fault-suite.md keeps the result
	$(BIN)/pytest tests/kernel/test_faults.py tests/kernel/test_lint.py tests/kernel/test_profiles.py tests/kernel/test_kernels.py tests/kernel/test_agreement.py tests/kernel/test_ladder.py tests/kernel/test_boost.py tests/kernel/test_recognition.py tests/kernel/test_unit.py tests/kernel/test_thread_storm.py tests/kernel/test_trace_backends.py tests/kernel/test_training.py tests/kernel/test_enforcing_page.py tests/kernel/test_topologies.py --kernel --all-faults; \
	status=$$?; $(BIN)/python -m tests.kernel.fault_page && exit $$status

test-kernel-traces: install  ## assert that every way to record a trace is right, on three kernels (20 minutes)
	$(BIN)/pytest tests/kernel/test_traces.py tests/kernel/test_trace_backends.py tests/kernel/test_thread_storm.py --kernel --all-faults

test-arm64: install  ## assert on two arm64 kernels that the BPF objects load and count what /proc says (half an hour)
	$(BIN)/pytest tests/kernel/test_arm64.py --kernel --all-faults -o cache_dir=build/pytest-arm64 $(SELECTED)

judge-shapes: install  ## saturate every shape of plan without a row in proven_shapes.json (hours; MINUTES=... for less)
	$(BIN)/python -m tests.kernel.starvation.judge --minutes $(MINUTES)

run-kube: install  ## bring a Kubernetes control plane up and run the agent against it (LISTEN=address:port)
	@kube/run-agent

test-kube: install  ## build that control plane, once (10 minutes of CPU), and test against it
	@kube/build >/dev/null
	@scripts/fetch-prometheus >/dev/null || true  # without it tests are skipped
	$(BIN)/pytest -q -n 2 --dist loadfile tests/kubernetes tests/density --kube -o cache_dir=build/pytest-kube $(SELECTED)

e2e-node: install  ## the chart on a real node: kubelet, containerd and a sched_ext kernel in an emulator (30 minutes)
	@kube/build kubelet >/dev/null
	$(BIN)/pytest -v tests/kubernetes/node --node $(SELECTED); \
	status=$$?; $(BIN)/python -m tests.kubernetes.node.node_page && exit $$status

image: install  ## build the image and its bill of materials into build, without a registry (root, Debian), and try it; prints its name
	@mkdir -p build
	@deploy/image/build build/temper.tar && deploy/image/smoke build/temper.tar
	@$(BIN)/python -m deploy.image_bill build/temper.tar >build/temper-image.cdx.json

test-image: install  ## build that image twice, compare, and try what is in it (root)
	$(BIN)/pytest -q tests/image --image $(SELECTED)

dashboards: install  ## write the chart's Grafana dashboards anew from the metrics' names
	$(BIN)/python -m deploy.monitoring

dist: install  ## build wheels, sdists, a bill of materials and checksums into build/dist
	@scripts/build-dist

test-install: install  ## install what make dist builds by pip, pipx and uv, with the lowest and the newest versions allowed
	@rm -f build/install/report.jsonl
	$(BIN)/pytest -q tests/install --install $(SELECTED); \
	status=$$?; $(BIN)/python -m tests.install.install_page && exit $$status

deb: install  ## build the Debian package of agent, plugins and unit into build/deb, for the Debian that builds it
	@scripts/build-deb

test-deb: install  ## install, use and purge it in a root of its own (root, Debian)
	$(BIN)/pytest -q tests/deb --deb $(SELECTED)

docs: install  ## build the documentation site into build/site; warnings and dead links are errors
	$(BIN)/sphinx-build -q -W --keep-going -c docs/site . build/site

man: install  ## write the man pages of all commands into build/share/man/man1
	$(BIN)/python -m deploy.shell_pages man build/share

completions: install  ## write the completion files of bash, zsh and fish into build/share
	$(BIN)/python -m deploy.shell_pages completions build/share

bench: install  ## measure start-up, plan compilation, observation and the agent's own cost
	@$(BIN)/python bench

soak: install  ## run an observing agent under churn of pods, and judge its growth (root; MINUTES=... for less)
	$(BIN)/python -m bench.soak --minutes $(MINUTES) --out build/soak

ladder: install  ## measure latency under load, stock scheduler against plans, in virtual time (40 minutes of CPU; OPTIONS=...)
	LADDER_BOOTS=$${LADDER_BOOTS:-2} bench/ladder/run $(OPTIONS)
	$(BIN)/python -m bench.ladder.report --plots build/ladder build/ladder/records.jsonl >build/ladder/report.md

failure-ladder: install  ## measure requests while agent and engine fail, in virtual time (hours; FAILURES=...)
	bench/failures/run $(OPTIONS)

clean:  ## remove what the other targets made in the checkout; the cache in ~/.cache/temper stays
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
