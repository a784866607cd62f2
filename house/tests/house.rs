//! Runs the house rules over the whole checkout. Every finding is printed as `file:line: what is wrong: what to do`.

use std::collections::BTreeSet;

use house::tree::{TextFile, root, text_files};
use house::{Finding, documents, doors, manifests, pure, security, sources};

/// Ends the test with all findings, sorted by place.
fn report(findings: impl IntoIterator<Item = Finding>) {
    let findings: BTreeSet<Finding> = findings.into_iter().collect();
    let text: String = findings
        .iter()
        .map(|finding| format!("  {finding}\n"))
        .collect();
    assert!(
        findings.is_empty(),
        "house rules broken: {}\n{text}",
        findings.len()
    );
}

fn files() -> Vec<TextFile> {
    let files = text_files(&root());
    assert!(
        files.is_ok(),
        "the checkout cannot be read: {:?}",
        files.err()
    );
    files.unwrap_or_default()
}

fn packages() -> Vec<manifests::Package> {
    let packages = manifests::packages(&root());
    assert!(
        packages.is_ok(),
        "the packages cannot be read: {:?}",
        packages.err()
    );
    packages.unwrap_or_default()
}

/// The file at a path, or a finding that it is missing.
fn file<'a>(files: &'a [TextFile], path: &str) -> Result<&'a TextFile, Finding> {
    let found = files.iter().find(|file| file.path == path);
    found.ok_or_else(|| Finding::new(path, 1, "is missing: write it"))
}

#[test]
fn rust_files_keep_the_rules_on_heads_sizes_names_and_exceptions() {
    report(
        files()
            .iter()
            .filter(|file| file.is_rust())
            .flat_map(sources::check),
    );
}

#[test]
fn the_step_machine_is_pure() {
    let files = files();
    let missing = file(&files, pure::MACHINE).err();
    let machine = files.iter().filter(|file| pure::is_machine(file));
    report(machine.flat_map(pure::check).chain(missing));
}

#[test]
fn packages_use_only_what_the_architecture_allows() {
    report(manifests::check_dependencies(&packages()));
}

#[test]
fn lints_are_strict_and_inherited() {
    let files = files();
    let mut found = Vec::new();
    for package in packages() {
        match file(&files, &package.manifest) {
            Ok(manifest) => found.extend(manifests::check_member(manifest)),
            Err(missing) => found.push(missing),
        }
    }
    for (path, check) in [
        (
            "Cargo.toml",
            manifests::check_lints as fn(&TextFile) -> Vec<Finding>,
        ),
        ("clippy.toml", manifests::check_limits),
    ] {
        match file(&files, path) {
            Ok(file) => found.extend(check(file)),
            Err(missing) => found.push(missing),
        }
    }
    report(found);
}

#[test]
fn no_text_holds_unfinished_work_or_places_of_one_machine() {
    report(files().iter().flat_map(documents::check));
}

#[test]
fn the_readme_has_a_status_table_and_the_architecture_is_short_and_whole() {
    let files = files();
    let packages = packages();
    let folders: Vec<&str> = packages.iter().map(manifests::Package::folder).collect();
    let mut found = Vec::new();
    match file(&files, "README.md") {
        Ok(readme) => found.extend(documents::check_readme(readme)),
        Err(missing) => found.push(missing),
    }
    match file(&files, "ARCHITECTURE.md") {
        Ok(architecture) => found.extend(documents::check_architecture(architecture, &folders)),
        Err(missing) => found.push(missing),
    }
    report(found);
}

#[test]
fn the_page_on_security_has_every_threat_and_names_tests_that_are_there() {
    let files = files();
    let found = match file(&files, security::PAGE) {
        Ok(page) => security::check(page, &files),
        Err(missing) => vec![missing],
    };
    report(found);
}

#[test]
fn what_is_shipped_has_no_door_that_only_tests_use() {
    let files = files();
    let missing = file(&files, doors::SETTINGS).err();
    let shipped = files.iter().filter(|file| doors::is_shipped(file));
    report(shipped.flat_map(doors::check).chain(missing));
}
