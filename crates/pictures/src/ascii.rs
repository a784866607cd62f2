//! A graph in characters, for a terminal: boxes and lines out of ASCII if it is narrow enough, else a list.
//!
//! Only names may have other characters than ASCII. The kinds of lines differ in their characters, which a last line
//! explains.

mod grid;
mod list;
mod sheet;
mod tracks;

#[cfg(test)]
mod tests;

use crate::{
    Error,
    plan::{Cut, Plan, Style},
};
use paraph_graph::Drawing;
use sheet::Unfit;

/// Names of more characters are shortened, and boxes are as wide as this at least: first comfortably, then tightly.
const TRIES: [(usize, usize); 2] = [(28, 9), (14, 0)];
/// What stands for what is left out.
const MARK: &str = "..";
/// In a list they are not, within reason.
const LONGEST_LISTED: usize = 200;
/// No terminal is wider.
const MOST_COLUMNS: usize = 400;

/// The drawing in at most `columns` columns; with `xray`, subgraphs are drawn open. What does not fit is a list of
/// the nodes with the edges that leave them, however wide that is.
///
/// # Errors
/// When the graph is too large, or an edge names a node that is not there.
pub fn ascii(drawing: &Drawing, xray: bool, columns: usize) -> Result<String, Error> {
    let columns = columns.min(MOST_COLUMNS);
    let cut = |longest| Cut {
        longest,
        mark: MARK,
    };
    let mut needed = None;
    for (longest, least) in TRIES {
        let plan = Plan::of(drawing, xray, cut(longest))?;
        match sheet::draw(&plan, columns, least)? {
            Ok(grid) => return Ok(grid.text() + &legend(&plan)),
            Err(Unfit::Wide(width)) => needed = Some(width),
            Err(Unfit::Tangled) => {}
        }
    }
    let plan = Plan::of(drawing, xray, cut(LONGEST_LISTED))?;
    Ok(list::list(&plan, needed))
}

/// A line's characters: down, and to the side.
fn strokes(style: Style) -> (char, char) {
    match style {
        Style::Fixed => ('|', '-'),
        Style::Conditional => (':', '.'),
        Style::Join => ('#', '#'),
        Style::OnError => ('!', '~'),
    }
}

/// What the lines mean, if there is more than one kind.
fn legend(plan: &Plan) -> String {
    let styles = plan.styles();
    if styles.iter().all(|&style| style == Style::Fixed) {
        return String::new();
    }
    let entries: Vec<String> = styles
        .into_iter()
        .map(|style| match strokes(style) {
            (down, side) if down == side => format!("{down} {}", style.words()),
            (down, side) => format!("{down} {side} {}", style.words()),
        })
        .collect();
    format!("\n{}\n", entries.join("    "))
}
