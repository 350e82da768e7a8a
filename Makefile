# The whole life of the project in a few words. `make` alone lists them.

SHELL := bash
.DEFAULT_GOAL := help
	scripts/bench_pbpk.py $(DATA) --out .cache/bench-pbpk.md && cat .cache/bench-pbpk.md >> BENCHMARKS.md

fuzz: ## fuzz the wire's parsers for a minute each, the model parsers for five
	scripts/fuzz
	for target in formula simmodel pkml; do crates/pbpk/fuzz/run $$target 300 || exit 1; done
