//! `paraph graph`: an agent's graph as text, without running it.

use crate::args::{DrawingFormat, GraphArgs};
use crate::failure::{FINISHED, Failure};
use crate::output::print;
use paraph_agents::Support;

pub(super) fn draw(args: &GraphArgs) -> Result<u8, Failure> {
    super::agent(&args.agent)?;
    let support = Support::new(&[], &[]).map_err(|error| Failure::Broken(error.to_string()))?;
    let drawing = support.drawing();
    print(&match args.format {
        DrawingFormat::Mermaid => drawing.mermaid(false),
        DrawingFormat::Dot => drawing.dot(false),
    })?;
    Ok(FINISHED)
}
