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

# Fetch the small language model and its server that some tests want
llm:
    .ci/llm

# Fetch the sentence model that the test of `local-embeddings` wants, and run that test
minilm:
    .ci/minilm
    cargo test -p paraph-models --features local-embeddings --test local_embeddings

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

# Measure engine and stores beside their floors and LangGraph; `just bench react_100` or `react_100@sqlite-sync` takes one
bench *SHAPES:
    benches/run {{SHAPES}}

# Measure retrieval on GitBugs, which lies beside the repository (not part of it), with the local sentence model
bench-retrieval DATA="../shared/data/gitbugs":
    .ci/minilm
    cargo run --release --quiet -p paraph-bench-retrieval --features local-embeddings -- {{DATA}} \
        "${CARGO_TARGET_DIR:-target}/minilm/model" "${CARGO_TARGET_DIR:-target}"

# Kill runs at random moments, N for each store and graph: `just crash 2000`, `just crash 1 --seed 17`, `just crash 0 --failpoints`
crash N="100" *OPTIONS:
    cargo run --release --quiet -p paraph-crash -- {{N}} --folder "${CARGO_TARGET_DIR:-target}/crash" {{OPTIONS}}

# Prove what the gateway promises, at full size; less of it: `just prove race stops --of 50`, `just prove kills --seed 17`
prove *WHAT:
    cargo run --release --quiet -p paraph-crash -- prove --folder "${CARGO_TARGET_DIR:-target}/prove" {{WHAT}}
    {{ if WHAT == "" { "PARAPH_POLICY_CASES=10000000 cargo test --release -p paraph-gateway --test policy -- --nocapture differential" } else { "" } }}

# Kill LangGraph in the same way, for comparison
crash-langgraph N="100" *OPTIONS:
    crash/langgraph/run {{N}} {{OPTIONS}}

# Draw a built-in agent's graph as Mermaid text
picture AGENT="support":
    cargo run --quiet -- graph {{AGENT}} --format mermaid

# All that CI runs, in the same order
verify:
    .ci/run
