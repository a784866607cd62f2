//! `paraph graph`: an agent's graph as text or as a picture, without running it.

use crate::application::Described;
use crate::args::{DrawingFormat, GraphArgs};
use crate::config::Config;
use crate::failure::{FINISHED, Failure};
use crate::output::{print, print_bytes};
use crate::patience::patiently;
use crate::stores::{address, file_of};
use crate::writing::refuse_own;
use paraph_graph::Drawing;
use std::io::IsTerminal as _;
use std::path::Path;

/// Which endings of file names say which form.
const ENDINGS: [(&str, DrawingFormat); 7] = [
    ("svg", DrawingFormat::Svg),
    ("png", DrawingFormat::Png),
    ("txt", DrawingFormat::Ascii),
    ("mmd", DrawingFormat::Mermaid),
    ("mermaid", DrawingFormat::Mermaid),
    ("dot", DrawingFormat::Dot),
    ("gv", DrawingFormat::Dot),
];

/// What was drawn.
enum Drawn {
    Text(String),
    #[cfg_attr(
        not(feature = "pictures"),
        expect(dead_code, reason = "only pictures are no text")
    )]
    Bytes(Vec<u8>),
}

pub(super) fn draw(args: &GraphArgs) -> Result<u8, Failure> {
    let format = format(args.format, args.output.as_deref())?;
    if args.scale.is_some() && format != DrawingFormat::Png {
        return Err(Failure::usage("--scale is for PNG: add --format png"));
    }
    let to_terminal = args.output.is_none() && std::io::stdout().is_terminal();
    if format == DrawingFormat::Png && to_terminal {
        return Err(Failure::usage(
            "a PNG is nothing for a terminal: write it to a file with `-o graph.png`, or try --format ascii",
        ));
    }
    let drawing = Described::of(&args.agent)?.drawing()?;
    let drawn = drawn(&drawing, format, args)?;
    match &args.output {
        Some(path) => write(path, &drawn)?,
        None => match drawn {
            Drawn::Text(text) => print(&text)?,
            Drawn::Bytes(bytes) => print_bytes(&bytes)?,
        },
    }
    Ok(FINISHED)
}

/// The form that was asked for, which may not contradict the file's name.
fn format(asked: Option<DrawingFormat>, path: Option<&Path>) -> Result<DrawingFormat, Failure> {
    let Some(path) = path else {
        return Ok(asked.unwrap_or(DrawingFormat::Mermaid));
    };
    let ending = path
        .extension()
        .map(|ending| ending.to_string_lossy().to_lowercase());
    let said = ENDINGS
        .iter()
        .find(|(known, _)| Some(*known) == ending.as_deref());
    match (asked, said) {
        (Some(asked), Some(&(ending, said))) if asked != said => Err(Failure::usage(format!(
            "--format {} and the ending `.{ending}` of {} say two different things",
            name(asked),
            path.display()
        ))),
        (Some(format), _) | (None, Some(&(_, format))) => Ok(format),
        (None, None) => Err(Failure::usage(format!(
            "{}: its ending does not say in which form to draw (known: {}); add --format",
            path.display(),
            ENDINGS.map(|(ending, _)| format!(".{ending}")).join(" ")
        ))),
    }
}

fn name(format: DrawingFormat) -> &'static str {
    match format {
        DrawingFormat::Mermaid => "mermaid",
        DrawingFormat::Dot => "dot",
        DrawingFormat::Svg => "svg",
        DrawingFormat::Png => "png",
        DrawingFormat::Ascii => "ascii",
    }
}

fn drawn(drawing: &Drawing, format: DrawingFormat, args: &GraphArgs) -> Result<Drawn, Failure> {
    match format {
        DrawingFormat::Mermaid => Ok(Drawn::Text(drawing.mermaid(args.xray))),
        DrawingFormat::Dot => Ok(Drawn::Text(drawing.dot(args.xray))),
        _ => picture(drawing, format, args),
    }
}

#[cfg(feature = "pictures")]
fn picture(drawing: &Drawing, format: DrawingFormat, args: &GraphArgs) -> Result<Drawn, Failure> {
    /// As wide as every terminal.
    const COLUMNS: usize = 80;
    let drawn = match format {
        DrawingFormat::Svg => paraph_pictures::svg(drawing, args.xray).map(Drawn::Text),
        DrawingFormat::Png => {
            paraph_pictures::png(drawing, args.xray, args.scale).map(Drawn::Bytes)
        }
        _ => paraph_pictures::ascii(drawing, args.xray, COLUMNS).map(Drawn::Text),
    };
    drawn.map_err(|error| match error {
        paraph_pictures::Error::Drawing(_) => Failure::Broken(error.to_string()),
        error => Failure::usage(error),
    })
}

#[cfg(not(feature = "pictures"))]
fn picture(_: &Drawing, format: DrawingFormat, _: &GraphArgs) -> Result<Drawn, Failure> {
    Err(Failure::usage(format!(
        "--format {}: this program was built without the feature `pictures`; mermaid and dot are there",
        name(format)
    )))
}

/// Writes the file, when all of it is known.
fn write(path: &Path, drawn: &Drawn) -> Result<(), Failure> {
    // Drawing needs no settings, so that faulty ones are no fault here: then no store is known either.
    let config = Config::load(&Default::default(), Vec::new());
    let store = config.and_then(|config| address(&config)).ok();
    let store = store.and_then(|found| file_of(&found.text));
    refuse_own("--output", path, store.as_deref())?;
    let bytes = match drawn {
        Drawn::Text(text) => text.as_bytes(),
        Drawn::Bytes(bytes) => bytes,
    };
    let (named, bytes) = (path.to_owned(), bytes.to_vec());
    patiently(path, move || std::fs::write(named, bytes))
        .unwrap_or_else(|| Err(std::io::Error::other("nobody reads from this pipe")))
        .map_err(|error| Failure::usage(format!("--output: {}: {error}", path.display())))
}
