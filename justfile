# Everyday commands; `just` lists them. `just verify` is what CI runs.

[private]
default:
    @just --list --unsorted

# Format all code
fmt:
    cargo fmt --all

# Warnings of clippy are errors
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# All tests, documentation examples too; with arguments only what they select (`just test -p paraph-graph`)
test *ARGS:
    cargo test {{ if ARGS == "" { "--workspace" } else { ARGS } }}

# Only the house rules: crate arrows, file sizes, names, forbidden words
house:
    cargo test -p house

# The manual, warnings are errors
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Licences, banned crates and sources of all dependencies (`cargo-deny` from PATH or from `just verify`)
deny:
    @PATH="$PATH:${CARGO_TARGET_DIR:-target}/ci-tools/bin" cargo deny --log-level error check --hide-inclusion-graph licenses bans sources

# Build each library from what its package would contain
package:
    .ci/package

# Measure the engine beside its floor and LangGraph; `just bench react_100` takes one shape
bench *SHAPES:
    benches/run {{SHAPES}}

# Draw a built-in agent's graph as Mermaid text
picture AGENT="support":
    cargo run --quiet -- graph {{AGENT}} --format mermaid

# All that CI runs, in the same order
verify:
    .ci/run
