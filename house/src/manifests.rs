//! Rules on the packages: which may use which, that all inherit the lints, and what none may depend on.
//!
//! Called by `tests/house.rs` with what `cargo metadata` says and with the manifests' text.

use std::path::Path;
use std::process::Command;
use std::{error, io};

use serde_json::Value;

use crate::Finding;
use crate::tree::TextFile;

/// For each package of the workspace the packages of the workspace that it may use, in code and in tests.
///
/// A new line or a new arrow is an architecture change: say in ARCHITECTURE.md which dependency it stops.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "paraph",
        &[
            "paraph-agents",
            "paraph-gateway",
            "paraph-graph",
            "paraph-models",
            "paraph-pictures",
            "paraph-retrieval",
            "paraph-store",
            "paraph-tools",
        ],
    ),
    (
        "paraph-agents",
        &[
            "paraph-gateway",
            "paraph-graph",
            "paraph-models",
            "paraph-retrieval",
        ],
    ),
    ("paraph-gateway", &["paraph-gateway-derive"]),
    ("paraph-gateway-derive", &[]),
    ("paraph-graph", &["paraph-graph-derive"]),
    ("paraph-graph-derive", &[]),
    ("paraph-models", &[]),
    ("paraph-pictures", &["paraph-graph"]),
    ("paraph-retrieval", &["paraph-models"]),
    (
        "paraph-store",
        &["paraph-gateway", "paraph-graph", "paraph-retrieval"],
    ),
    ("paraph-tools", &["paraph-gateway", "paraph-retrieval"]),
];

/// Packages that only develop the others: nobody may use them, and they may use what they look at.
const TOOLS: [&str; 4] = [
    "house",
    "paraph-bench",
    "paraph-bench-retrieval",
    "paraph-crash",
];

/// Dependencies that are kept out, with where they may be used all the same and what to do instead.
const KEPT_OUT: [(&str, &[&str], &str); 2] = [
    (
        "anyhow",
        &["paraph"],
        "give the crate's `Error` a variant; `anyhow` is for the binary and for tests",
    ),
    (
        "async-trait",
        &[],
        "return `impl Future + Send`, or a boxed future where `dyn` is needed",
    ),
];

/// Lints that the workspace sets, with the levels that are strict enough.
const LINTS: [(&str, &[&str]); 10] = [
    ("unsafe_code", &["forbid"]),
    ("missing_docs", &["warn", "deny"]),
    ("unreachable_pub", &["warn", "deny"]),
    ("unwrap_used", &["deny"]),
    ("expect_used", &["deny"]),
    ("todo", &["deny"]),
    ("dbg_macro", &["deny"]),
    ("await_holding_lock", &["deny"]),
    ("too_many_arguments", &["warn", "deny"]),
    ("too_many_lines", &["warn", "deny"]),
];

/// Limits that `clippy.toml` sets for those lints.
const LIMITS: [(&str, usize); 2] = [
    ("too-many-arguments-threshold", 5),
    ("too-many-lines-threshold", 80),
];

/// One package of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its manifest, relative to the workspace's root.
    pub manifest: String,
    /// What it depends on directly.
    pub dependencies: Vec<Dependency>,
}

impl Package {
    /// The last part of its folder's path: `graph` for `crates/graph/Cargo.toml`.
    pub fn folder(&self) -> &str {
        self.manifest.rsplit('/').nth(1).unwrap_or_default()
    }
}

/// One direct dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The package that is depended on.
    pub name: String,
    /// Whether only tests, examples and benchmarks see it.
    pub dev: bool,
}

/// The packages of the workspace, from `cargo metadata`.
///
/// # Errors
/// When cargo cannot be run, fails, or says something that is no metadata.
pub fn packages(root: &Path) -> Result<Vec<Package>, Box<dyn error::Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = [
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ];
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("cargo metadata failed: {said}")).into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let base = text(&metadata["workspace_root"]);
    let list = metadata["packages"].as_array().cloned().unwrap_or_default();
    Ok(list
        .iter()
        .map(|package| read_package(package, base))
        .collect())
}

fn read_package(package: &Value, base: &str) -> Package {
    let manifest = text(&package["manifest_path"]);
    let relative = manifest.strip_prefix(base).unwrap_or(manifest);
    let list = package["dependencies"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    Package {
        name: text(&package["name"]).to_owned(),
        manifest: relative
            .replace('\\', "/")
            .trim_start_matches('/')
            .to_owned(),
        dependencies: list
            .iter()
            .map(|dependency| Dependency {
                name: text(&dependency["name"]).to_owned(),
                dev: dependency["kind"] == "dev",
            })
            .collect(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The arrows between the workspace's packages, and the dependencies that are kept out.
pub fn check_dependencies(packages: &[Package]) -> Vec<Finding> {
    let mut found = Vec::new();
    for package in packages {
        let name = package.name.as_str();
        if TOOLS.contains(&name) {
            continue;
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
            let advice = format!(
                "`{name}` is a new package: add its arrows to house/src/manifests.rs and its reason to ARCHITECTURE.md"
            );
            found.push(Finding::new(&package.manifest, 1, advice));
            continue;
        };
        for dependency in &package.dependencies {
            let advice =
                arrow(packages, name, allowed, dependency).or_else(|| kept_out(name, dependency));
            found.extend(advice.map(|advice| Finding::new(&package.manifest, 1, advice)));
        }
    }
    found
}

fn arrow(packages: &[Package], name: &str, allowed: &[&str], to: &Dependency) -> Option<String> {
    let inside = packages.iter().any(|package| package.name == to.name);
    if !inside || allowed.contains(&to.name.as_str()) {
        return None;
    }
    let to = &to.name;
    Some(format!(
        "`{name}` may not use `{to}`: declare a trait here and let the caller pass it in"
    ))
}

fn kept_out(name: &str, dependency: &Dependency) -> Option<String> {
    let (kept, users, instead) = KEPT_OUT
        .iter()
        .find(|(kept, ..)| *kept == dependency.name)?;
    let fine = dependency.dev || users.contains(&name);
    (!fine).then(|| format!("`{name}` may not use `{kept}`: {instead}"))
}

/// That a member's manifest takes over the workspace's lints.
pub fn check_member(manifest: &TextFile) -> Option<Finding> {
    let inherits = setting(&manifest.text, "[lints]", "workspace") == Some("true");
    let advice = "does not inherit the lints: add `[lints]` with `workspace = true`";
    (!inherits).then(|| Finding::new(&manifest.path, 1, advice))
}

/// That the workspace's manifest sets every lint the rules rely on.
pub fn check_lints(root: &TextFile) -> Vec<Finding> {
    let level = |lint| {
        let table = |tool| setting(&root.text, tool, lint);
        table("[workspace.lints.rust]").or_else(|| table("[workspace.lints.clippy]"))
    };
    LINTS
        .iter()
        .filter(|(lint, levels)| !level(lint).is_some_and(|set| levels.contains(&set)))
        .map(|(lint, levels)| {
            let advice = format!(
                "the lint `{lint}` must be set to `{}` for the workspace",
                levels[0]
            );
            Finding::new(&root.path, 1, advice)
        })
        .collect()
}

/// That clippy knows how long a function may be and how many arguments it may take.
pub fn check_limits(clippy: &TextFile) -> Vec<Finding> {
    LIMITS
        .iter()
        .filter(|(key, most)| {
            let set = setting(&clippy.text, "", key).and_then(|value| value.parse::<usize>().ok());
            set.is_none_or(|set| set > *most)
        })
        .map(|(key, most)| Finding::new(&clippy.path, 1, format!("`{key}` must be at most {most}")))
        .collect()
}

/// The value of `key` in a table of a TOML file, without quotes; the empty table is what stands before the first.
///
/// Enough for flat `key = value` lines, which is all that the rules look at.
fn setting<'a>(toml: &'a str, table: &str, key: &str) -> Option<&'a str> {
    let mut here = table.is_empty();
    for line in toml.lines().map(str::trim) {
        if line.starts_with('[') {
            here = line == table;
        } else if here
            && let Some((name, value)) = line.split_once('=')
            && name.trim() == key
        {
            return Some(value.trim().trim_matches('"'));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, bool)]) -> Package {
        Package {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml"),
            dependencies: dependencies
                .iter()
                .map(|&(name, dev)| Dependency {
                    name: name.to_owned(),
                    dev,
                })
                .collect(),
        }
    }

    fn advice(packages: &[Package]) -> Vec<String> {
        check_dependencies(packages)
            .into_iter()
            .map(|found| found.advice)
            .collect()
    }

    #[test]
    fn the_allowed_arrows_pass_and_any_other_is_found_even_in_tests() {
        let graph = package("paraph-graph", &[]);
        let agents = package(
            "paraph-agents",
            &[("paraph-graph", false), ("serde", false)],
        );
        assert_eq!(advice(&[graph.clone(), agents]), Vec::<String>::new());
        for dev in [false, true] {
            let gateway = package("paraph-gateway", &[("paraph-graph", dev)]);
            let found = advice(&[graph.clone(), gateway]);
            assert!(
                found.len() == 1
                    && found[0].starts_with("`paraph-gateway` may not use `paraph-graph`")
            );
        }
    }

    #[test]
    fn an_unknown_package_is_found() {
        let found = advice(&[package("paraph-stuff", &[])]);
        assert!(found.len() == 1 && found[0].starts_with("`paraph-stuff` is a new package"));
    }

    #[test]
    fn nobody_may_use_the_tools() {
        let found = advice(&[
            package("house", &[]),
            package("paraph-models", &[("house", true)]),
        ]);
        assert!(found.len() == 1 && found[0].starts_with("`paraph-models` may not use `house`"));
    }

    #[test]
    fn anyhow_is_for_the_binary_and_tests_and_async_trait_for_nobody() {
        assert_eq!(
            advice(&[package("paraph", &[("anyhow", false)])]),
            Vec::<String>::new()
        );
        assert_eq!(
            advice(&[package("paraph-graph", &[("anyhow", true)])]),
            Vec::<String>::new()
        );
        assert_eq!(
            advice(&[package("paraph-graph", &[("anyhow", false)])]).len(),
            1
        );
        assert_eq!(
            advice(&[package("paraph", &[("async-trait", false)])]).len(),
            1
        );
    }

    #[test]
    fn a_member_without_the_lints_is_found() {
        let check =
            |text: &str| check_member(&TextFile::new("crates/x/Cargo.toml", text)).is_some();
        assert!(!check(
            "[package]\nname = \"x\"\n\n[lints]\nworkspace = true\n"
        ));
        assert!(check("[package]\nname = \"x\"\n"));
        assert!(check("[lints]\n[dependencies]\nworkspace = true\n"));
    }

    #[test]
    fn a_lint_that_is_missing_or_too_weak_is_found() {
        let strict = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\nmissing_docs = \"warn\"\nunreachable_pub = \"warn\"\n\
            [workspace.lints.clippy]\nunwrap_used = \"deny\"\nexpect_used = \"deny\"\ntodo = \"deny\"\ndbg_macro = \"deny\"\n\
            await_holding_lock = \"deny\"\ntoo_many_arguments = \"warn\"\ntoo_many_lines = \"warn\"\n";
        let count = |text: &str| check_lints(&TextFile::new("Cargo.toml", text)).len();
        assert_eq!(count(strict), 0);
        assert_eq!(count(&strict.replace("forbid", "allow")), 1);
        assert_eq!(count(""), LINTS.len());
    }

    #[test]
    fn limits_that_are_missing_or_too_wide_are_found() {
        let count = |text: &str| check_limits(&TextFile::new("clippy.toml", text)).len();
        assert_eq!(
            count("too-many-arguments-threshold = 5\ntoo-many-lines-threshold = 80\n"),
            0
        );
        assert_eq!(count("too-many-arguments-threshold = 9\n"), 2);
    }
}
