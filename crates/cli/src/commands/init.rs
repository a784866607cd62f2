//! `paraph init`: a folder with an agent that runs at once, without a key and without a network.
//!
//! Nothing that is there is written over: either all three files are made, or none.

use crate::args::InitArgs;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print};
use crate::stores::quoted;
use crate::terminal::printable;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

const FILES: [(&str, &str); 3] = [
    ("agent.toml", include_str!("init/agent.toml")),
    (".env.example", include_str!("init/env.example")),
    (".gitignore", include_str!("init/gitignore")),
];

pub(super) fn init(args: &InitArgs) -> Result<u8, Failure> {
    let dir = &args.dir;
    let there: Vec<_> = FILES
        .iter()
        .map(|(name, _)| dir.join(name))
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| path.display().to_string())
        .collect();
    if !there.is_empty() {
        return Err(Failure::Usage(format!(
            "there already: {}. Nothing was written; name another folder, or move these away",
            there.join(", ")
        )));
    }
    std::fs::create_dir_all(dir)
        .map_err(|error| Failure::Usage(format!("{}: {error}", dir.display())))?;
    let mut made: Vec<&str> = Vec::new();
    for (name, text) in FILES {
        if let Err(error) = write_new(&dir.join(name), text) {
            for name in made {
                let _ = std::fs::remove_file(dir.join(name));
            }
            return Err(Failure::Usage(format!(
                "{}: {error}",
                dir.join(name).display()
            )));
        }
        made.push(name);
    }
    for (name, _) in FILES {
        print(&printable(&dir.join(name).display().to_string()))?;
    }
    let file = quoted(&dir.join("agent.toml").display().to_string());
    note(&printable(&format!(
        "next:\n  paraph run {file} \"Plan a day in Basel\"   runs it, without a key\n  \
         paraph check {file}                       finds mistakes in it\n  \
         then choose a model: see the line `model` in the file, and .env.example for keys"
    )));
    Ok(FINISHED)
}

fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}
