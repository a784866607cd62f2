//! `paraph threads export` and `import`: a thread as a file, from one store into any other.

use super::row;
use crate::args::{ExportArgs, ImportArgs};
use crate::cells::count;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json};
use crate::patience::{patiently, too_slow};
use crate::portable;
use crate::stores::Kept;
use crate::terminal::printable;
use crate::writing::{place, refuse_own};
use paraph_graph::ThreadRow;
use std::io::Read as _;
use std::path::Path;

/// The largest document that is read, in bytes.
const LARGEST: u64 = 4 << 30;

pub(super) async fn export(kept: &Kept, args: &ExportArgs) -> Result<u8, Failure> {
    let row = row(kept, &args.name).await?;
    let Some(path) = &args.output else {
        let out = std::io::BufWriter::new(std::io::stdout());
        let mut out = portable::Out::new(out, "standard output");
        portable::export(kept, &row, &mut out).await?;
        tell_of_left(kept, &row.name).await?;
        return Ok(FINISHED);
    };
    refuse_own("--output", path, kept.file.as_deref())?;
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => straight(kept, &row, path).await?,
        _ => whole(kept, &row, path).await?,
    }
    note(&format!(
        "exported `{}` to {}",
        printable(&row.name),
        path.display()
    ));
    tell_of_left(kept, &row.name).await?;
    Ok(FINISHED)
}

/// Says what of the thread is not in the document.
async fn tell_of_left(kept: &Kept, thread: &str) -> Result<(), Failure> {
    let left = portable::left_behind(kept, thread).await?;
    if !left.is_empty() {
        let left = count(left.len() as u64, "action");
        note(&format!(
            "careful: {left} that nobody has settled stayed here, with what people decide about them: where the thread is \
             read in, a run that waits for one cannot go on"
        ));
    }
    Ok(())
}

fn broken(path: &Path) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::Broken(format!("{}: {error}", path.display()))
}

/// Into a device or a pipe, which stays what it is.
async fn straight(kept: &Kept, row: &ThreadRow, path: &Path) -> Result<(), Failure> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    let named = path.to_owned();
    let file = patiently(path, move || options.open(named))
        .unwrap_or_else(|| Err(std::io::Error::other("nobody reads from this pipe")))
        .map_err(broken(path))?;
    let out = std::io::BufWriter::new(file);
    let mut out = portable::Out::new(out, path.display().to_string());
    portable::export(kept, row, &mut out).await
}

/// Beside its place first: a file of that name is a whole document, or is not touched.
async fn whole(kept: &Kept, row: &ThreadRow, path: &Path) -> Result<(), Failure> {
    let place = place(path).map_err(broken(path))?;
    let mut partial = place.as_os_str().to_owned();
    partial.push(format!(".{}.part", std::process::id()));
    let partial = std::path::PathBuf::from(partial);
    let mut options = std::fs::OpenOptions::new();
    // Whatever has that name already is somebody else's.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&partial).map_err(broken(path))?;
    let written = async {
        let out = std::io::BufWriter::new(&file);
        let mut out = portable::Out::new(out, path.display().to_string());
        portable::export(kept, row, &mut out).await?;
        drop(out);
        file.sync_all().map_err(broken(path))?;
        std::fs::rename(&partial, &place).map_err(broken(path))
    }
    .await;
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    written
}

pub(super) async fn import(kept: &Kept, args: &ImportArgs) -> Result<u8, Failure> {
    if let Some(to) = &args.to {
        crate::commands::check_thread_name("--as", to)?;
    }
    let text = document(&args.file)?;
    let imported = portable::import(kept, &text, args.to.as_deref()).await?;
    if imported.actions_left > 0 {
        let left = count(imported.actions_left as u64, "action");
        note(&format!(
            "careful: {left} that its runs wait for stayed in the store where it was exported: those runs do not go on \
             here"
        ));
    }
    if args.json {
        print_json(&imported)?;
        return Ok(FINISHED);
    }
    let left = match imported.runs_left {
        0 => String::new(),
        left => format!(" ({left} already there)"),
    };
    print(&format!(
        "imported `{}`: {}, {}{left}, {}",
        printable(&imported.name),
        count(imported.checkpoints as u64, "checkpoint"),
        count(imported.runs as u64, "run"),
        count(imported.events as u64, "event"),
    ))?;
    Ok(FINISHED)
}

fn document(path: &Path) -> Result<Vec<u8>, Failure> {
    let (shown, read) = match path == Path::new("-") {
        true => ("standard input".to_owned(), read(std::io::stdin().lock())),
        false => {
            let named = path.to_owned();
            let open = move || read(std::fs::File::open(named)?);
            let text = patiently(path, open);
            let text = text.unwrap_or_else(|| Err(std::io::Error::other(too_slow())));
            (path.display().to_string(), text)
        }
    };
    let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("{shown}: {why}"));
    let text = read.map_err(|error| wrong(&error))?;
    match text.len() as u64 > LARGEST {
        true => Err(wrong(&format_args!("larger than {LARGEST} bytes"))),
        false => Ok(text),
    }
}

fn read(from: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut text)?;
    Ok(text)
}
