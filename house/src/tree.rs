//! The files of the checkout, as git sees them. Called by `tests/house.rs`; reads, never writes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// One text file of the checkout.
#[derive(Clone, Debug)]
pub struct TextFile {
    /// Path relative to the workspace's root, with forward slashes.
    pub path: String,
    /// The whole content.
    pub text: String,
}

impl TextFile {
    /// A file from its path and content.
    pub fn new(path: &str, text: &str) -> Self {
        TextFile {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// Whether this is Rust source.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the whole file is test code: it lies below a `tests` folder or is a `tests.rs`.
    pub fn is_test(&self) -> bool {
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || self.path.ends_with("/tests.rs")
    }

    /// Whether this is an example that a newcomer is meant to read in one go.
    pub fn is_example(&self) -> bool {
        self.is_rust() && (self.path.starts_with("examples/") || self.path.contains("/examples/"))
    }

    /// The file's name without folders and without `.rs`.
    pub fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.strip_suffix(".rs").unwrap_or(name)
    }
}

/// The workspace's root: the parent of this package's folder.
pub fn root() -> PathBuf {
    let house = Path::new(env!("CARGO_MANIFEST_DIR"));
    house.parent().unwrap_or(house).to_path_buf()
}

/// All text files that git tracks or would track, in git's order; binary files are left out.
///
/// # Errors
/// When git cannot be run, or a file cannot be read although it exists.
pub fn text_files(root: &Path) -> io::Result<Vec<TextFile>> {
    let listing = git_listing(root)?;
    let mut files = Vec::new();
    for path in listing.split('\0').filter(|path| !path.is_empty()) {
        let full = root.join(path);
        // A file that was deleted but not yet committed is still listed; a submodule is a folder.
        if !full.is_file() {
            continue;
        }
        if let Ok(text) = String::from_utf8(fs::read(&full)?) {
            files.push(TextFile {
                path: path.replace('\\', "/"),
                text,
            });
        }
    }
    Ok(files)
}

fn git_listing(root: &Path) -> io::Result<String> {
    let arguments = [
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("git ls-files failed: {said}")));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_sorted_into_kinds_by_their_path() {
        let kinds = |path: &str| {
            let file = TextFile::new(path, "");
            (file.is_rust(), file.is_test(), file.is_example())
        };
        assert_eq!(kinds("crates/graph/src/run.rs"), (true, false, false));
        assert_eq!(kinds("crates/graph/src/run/tests.rs"), (true, true, false));
        assert_eq!(kinds("crates/graph/tests/fork.rs"), (true, true, false));
        assert_eq!(
            kinds("crates/agents/examples/own_tool.rs"),
            (true, false, true)
        );
        assert_eq!(kinds("README.md"), (false, false, false));
    }

    #[test]
    fn this_very_file_is_listed() {
        let files = text_files(&root()).unwrap();
        assert!(files.iter().any(|file| file.path == "house/src/tree.rs"));
    }
}
