# The whole life of the project in a few words. `make` alone lists them.

SHELL := bash
.DEFAULT_GOAL := help
DATA ?= ../shared/pbpk/data
# A model of a whole body, where there is one.
WHOLE_BODY = $(addprefix --whole-body ,$(wildcard $(DATA)/pkml/pksim_simple_simulation.pkml))
TARGET = $(or $(CARGO_TARGET_DIR),target)
COMMA := ,
# What measurements and mock servers need beside the program.
LAB = --package lab --package journal-rate
# The peers that stand beside us, where their environment is installed.
FASTMCP = .cache/venv/bin/python scripts/peers/fastmcp_proxy.py
PEERS = $(if $(wildcard .cache/venv/bin/python),--peer "FastMCP=$(FASTMCP) default" --peer "FastMCP$(COMMA) one client=$(FASTMCP) shared")
# The official filesystem server, likewise.
FILES = .cache/npm/node_modules/.bin/mcp-server-filesystem
PEERS += $(if $(wildcard $(FILES)),--filesystem-server "$(FILES)")

# The crate mcp-proxy, before a server over stdio or HTTP.
MCP_PROXY = .cache/peers/mcp-proxy/bin/mcp-proxy
HTTP_PEERS = $(if $(wildcard $(MCP_PROXY)),--http-peer "mcp-proxy:mock/=http://127.0.0.1:{port}/ -- scripts/peers/mcp_proxy $(MCP_PROXY) {port}")

.PHONY: help demo test check conformance sdk-suite soak soak-calls bench bench-with-peers bench-check benchmark bench-selftest stress-weekly benchmark-report fetch-bench-data openapi-check packages container gate-selftest fuzz differential guide-ssh ssh-loadtest ssh-loadtest-quick ssh-loadtest-full ssh-loadtest-sshd ssh-loadtest-list ssh-loadtest-connection-rate ssh-loadtest-throughput ssh-loadtest-latency ssh-loadtest-metrics ssh-network-setup ssh-network-teardown ssh-target ssh-mcp

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: ## build, then a short guided tour on embedded parts
	cargo build --release --package durward
	cargo run --quiet --release --package durward -- demo

# Most tests wait for processes and clocks: four at a time even where there are two cores.
export RUST_TEST_THREADS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores > 4 ? cores : 4)))

test: ## install what the tests need into .cache, then build and test everything
	scripts/setup-tests
	cargo test --workspace
	cargo test --manifest-path crates/pbpk/crosscheck/Cargo.toml --target-dir $(or $(CARGO_TARGET_DIR),target)/crosscheck
	scripts/wheel/test

check: ## format, lints, the rules of the house
	cargo fmt --all --check
	for apart in crates/pbpk-py crates/pbpk/crosscheck crates/pbpk/fuzz fuzz; do cargo fmt --manifest-path $$apart/Cargo.toml --check || exit 1; done
	cargo clippy --workspace --all-targets -- -D warnings
	for apart in crates/pbpk/fuzz fuzz; do cargo check --manifest-path $$apart/Cargo.toml --target-dir $(or $(CARGO_TARGET_DIR),target)/apart || exit 1; done
	cargo xtask tidy

conformance: ## the official MCP suite, directly and through Durward; writes docs/conformance.md again
	scripts/setup-tests
	cargo build --package durward --package lab
	scripts/conformance --durward $(or $(CARGO_TARGET_DIR),target)/debug/durward --write

sdk-suite: ## the official libraries of model APIs, unchanged; the table is docs/models-matrix.md
	scripts/setup-tests
	cargo build --package lab
	CI=true cargo test --package durward --test it -- models::sdk models::foreign

soak: ## 32 clients, 10,000 calls each, the server killed five times; 10,000 kills amid calls (KILLS); ambiguous frames as by differential; fits; generated models beside a second solver and a second reading of the format (SEED, MODELS)
	cargo build --release $(LAB)
	cargo test --release --package durward --test it serve_soak:: -- --ignored --nocapture --test-threads 1
	KILLS=$(or $(KILLS),10000) cargo test --release --package durward --test it faults_kill:: -- --nocapture
	$(MAKE) --no-print-directory differential FRAMES=$(or $(FRAMES),2000)
	cargo test --release --package pbpk --test it soak_ -- --ignored --nocapture
	cargo test --manifest-path crates/pbpk/crosscheck/Cargo.toml --target-dir $(or $(CARGO_TARGET_DIR),target)/crosscheck -- --ignored --nocapture
	scripts/independent/compare.py --seed $(or $(SEED),1000000) --models $(or $(MODELS),300) --corpus $(DATA)/../differential

soak-calls: ## millions of calls over HTTP to a dist build (scripts/dist), memory and descriptors judged by lab soak (RATE, MINUTES)
	scripts/soak_calls.py --durward $(TARGET)/dist/durward --rate $(or $(RATE),6500) --minutes $(or $(MINUTES),50)

differential: ## ambiguous frames, unusual arguments, and strings that servers coerce, to servers on five SDKs, over stdio and HTTP, in each revision: executed is what was allowed (FRAMES, COERCED, SEED)
	scripts/setup-tests
	cargo test --package durward --test differential -- --ignored --nocapture --test-threads 1

bench: ## build as shipped, measure beside the peers, write BENCHMARKS.md again
	scripts/setup-peers
	$(MAKE) --no-print-directory bench-with-peers

bench-with-peers:
	scripts/dist
	$(TARGET)/dist/durward lab standard --write BENCHMARKS.md $(PEERS) $(HTTP_PEERS)
	if [ -e BENCHMARKS-profile.txt ]; then mv BENCHMARKS-profile.txt bench/ && sed -i 's#: BENCHMARKS-profile.txt#: bench/BENCHMARKS-profile.txt#' BENCHMARKS.md; fi
	scripts/bench_pbpk.py $(DATA) --out .cache/bench-pbpk.md && { echo; cat .cache/bench-pbpk.md; } >> BENCHMARKS.md
	scripts/bench_simulation.py run --durward $(TARGET)/dist/durward --scenario stress $(WHOLE_BODY) --out .cache/benchmarks --markdown .cache/bench-simulation.md && { echo; cat .cache/bench-simulation.md; } >> BENCHMARKS.md
	scripts/bench_ssh.py --durward $(TARGET)/dist/durward --out .cache/bench-ssh.md && { echo; cat .cache/bench-ssh.md; } >> BENCHMARKS.md
	scripts/bench_gateways.py --durward $(TARGET)/dist/durward --out .cache/bench-gateways.md && { echo; cat .cache/bench-gateways.md; } >> BENCHMARKS.md

bench-check: ## measure, and hold every budget of the design against it; fails where one is missed
	scripts/dist
	$(TARGET)/dist/durward lab standard --check $(PEERS) $(HTTP_PEERS)

benchmark: ## measure the simulation server (SCENARIO=smoke, baseline, stress or extreme; TRANSPORT=mcp-http or mcp-stdio; BENCH_PROFILE=1 with a flame graph)
	cargo build --release --package durward
	scripts/bench_simulation.py run --durward $(TARGET)/release/durward --scenario $(or $(SCENARIO),smoke) $(if $(TRANSPORT),--transport $(TRANSPORT)) $(if $(filter smoke,$(or $(SCENARIO),smoke)),,$(WHOLE_BODY)) $(if $(filter 1,$(BENCH_PROFILE)),--profile)
	scripts/bench_report.py
	$(if $(filter extreme,$(SCENARIO)),scripts/bench_report.py --summary extreme)

bench-selftest: ## the check of measurements passes one build against itself, and fails figures of which an engine's are a third higher
	cargo build --release --package durward
	scripts/bench_selftest.py --durward $(TARGET)/release/durward

stress-weekly: ## the stress tier with a profile, against the plan's bounds: docs/examples/weekly-stress.yaml calls it
	$(MAKE) --no-print-directory benchmark SCENARIO=stress BENCH_PROFILE=1
	scripts/bench_simulation.py check "$$(ls var/benchmarks/*-stress.json | tail -1)" --plan

benchmark-report: ## a page of the artefacts in var/benchmarks: bench/reports/latest.md
	scripts/bench_report.py

fetch-bench-data: ## make the models of 0.1 to 25 MB in var/models/standard, and hold their curves against the exact ones
	scripts/bench_models.py make
	cargo build --release --package durward
	scripts/bench_models.py verify --durward $(TARGET)/release/durward

openapi-check: ## generated requests to every path of the OpenAPI document, 500 for each operation
	scripts/setup-tests
	SCHEMATHESIS_EXAMPLES=500 cargo test --release --package durward --test it simulation::openapi:: -- --nocapture

guide-ssh: ## every block of docs/guides/ssh-load-test.md, at its durations (SHORT=1: a second each)
	cargo build --release --package durward --package lab
	scripts/guide docs/guides/ssh-load-test.md $(TARGET)/release

# The apps of the load-testing guide, by its names; ssh-target and ssh-mcp are its two machines.
LOADTEST = cargo run --quiet --release --package lab -- load ssh

ssh-network-setup: ## three hosts on a bridge, as root; loopback where that cannot be
	cargo run --quiet --release --package lab -- farm up

ssh-network-teardown: ## takes them away
	cargo run --quiet --release --package lab -- farm down

ssh-target: ## the hosts of a load test, until Ctrl-C
	mkdir -p var
	sleep infinity | cargo run --quiet --release --package lab -- mock ssh-target --dir var/ssh-target

ssh-mcp: ## the server of a load test, before the hosts of make ssh-target
	cargo run --quiet --release --package durward -- --state-dir var/ssh-mcp ssh serve --hosts var/ssh-target/ssh_hosts.yaml --profile $(or $(PROFILE),loadtest) --calls-per-minute $(or $(CALLS),1000000)

ssh-loadtest: ## one scenario: SCENARIO=command_throughput SECONDS_EACH=60 WORKERS=5
	$(LOADTEST) $(or $(SCENARIO),command_throughput) --results-dir var/loadtest $(if $(SECONDS_EACH),--duration $(SECONDS_EACH)) $(if $(WORKERS),--workers $(WORKERS))

ssh-loadtest-quick: ## commands for 30 seconds by 3 workers
	$(LOADTEST) --quick --results-dir var/loadtest

ssh-loadtest-full: ## all five scenarios
	$(LOADTEST) --full --results-dir var/loadtest

ssh-loadtest-sshd: ## all five against a real sshd, at their durations (some 23 minutes); connections as sshd counts them
	scripts/setup-tests
	cargo build --release --package lab
	SSH_LOAD=whole cargo test --release --package durward --test it ssh_load::the_five -- --nocapture

ssh-loadtest-list: ## the scenarios
	$(LOADTEST) list

ssh-loadtest-connection-rate: ## connections by 1, 2, 5 and 10 workers
	$(MAKE) --no-print-directory ssh-loadtest SCENARIO=connection_rate

ssh-loadtest-throughput: ## commands over connections that are there
	$(MAKE) --no-print-directory ssh-loadtest SCENARIO=command_throughput

ssh-loadtest-latency: ## commands over good and bad lines
	$(MAKE) --no-print-directory ssh-loadtest SCENARIO=latency_test

ssh-loadtest-metrics: ## the server's metrics
	$(LOADTEST) --metrics-only

packages: ## a Python wheel and an npm package of the program for this machine, installed from their files, with durward demo run from each (PROFILE=dev: of the debug build)
	scripts/setup-tests
	scripts/packages

container: ## a static program in a root filesystem of its own; an image where podman or docker works, else run in a chroot (PROFILE=dev: of the debug build)
	scripts/container

gate-selftest: ## the gate passes the same build and fails one that is 20 % slower
	cargo build --release --package durward --package lab
	scripts/gate-selftest $(TARGET)/release/durward

fuzz: ## fuzz the parsers of frames, commands, paths and files for a minute each, those of OSP models for five
	scripts/fuzz
	for target in formula simmodel pkml; do crates/pbpk/fuzz/run $$target 300 || exit 1; done
