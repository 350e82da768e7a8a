# The whole life of the project in a few words. `make` alone lists them.

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help demo test check bench fuzz

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 10

demo: ## build, then a short guided tour on embedded parts
	cargo build --package durward
	cargo run --quiet --package durward -- demo

test: ## install what the tests need into .cache, then build and test everything
	scripts/setup-tests
	cargo build --workspace
	cargo test --workspace

check: ## format, lints, the rules of the house
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo xtask tidy

bench: ## release build, measure, write BENCHMARKS.md again
	cargo build --release --package durward
	cargo run --quiet --release --package durward -- lab standard --write BENCHMARKS.md

fuzz: ## fuzz each parser of the wire for a minute
	scripts/fuzz
