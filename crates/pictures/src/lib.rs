//! Pictures of graphs: [`svg`], [`png`] and [`ascii`] turn a [`Drawing`](paraph_graph::Drawing) into something to look at.
//!
//! Everything happens in the process: the layout, the drawing and the font are in here, and nothing is read from the
//! machine or fetched. The same drawing gives the same bytes. The crate knows of the engine only what a drawing
//! says; the engine knows nothing of it, and needs none of its libraries.
//!
//! ```
//! # use paraph_graph::{Drawing, DrawnEdge, DrawnNode, EdgeKind};
//! # let node = |name: &'static str| DrawnNode { name: name.into(), deferred: false, each: false, inside: None };
//! # let edge = |from: &'static str, to: &'static str| DrawnEdge { from: from.into(), to: to.into(), kind: EdgeKind::Fixed, label: None };
//! # let drawing = Drawing { name: "small".into(), nodes: vec![node("a"), node("b")], edges: vec![edge("a", "b")] };
//! // let drawing = graph.drawing();
//! let picture = paraph_pictures::svg(&drawing, false)?;
//! assert!(picture.starts_with("<svg "));
//! assert_eq!(paraph_pictures::ascii(&drawing, false, 80)?, "\
//! +-------+
//! |   a   |
//! +-------+
//!     |
//!     v
//! +-------+
//! |   b   |
//! +-------+
//! ");
//! # Ok::<(), paraph_pictures::Error>(())
//! ```
//!
//! # Layout
//! - `plan`: what of a drawing is shown, with names that are safe and short enough.
//! - `layered`: which node stands in which layer and where in it, and where the lines run; without units.
//! - `compose`: boxes, lines and labels in pixels, subgraphs inside their boxes; a `scene` of shapes.
//! - `svg`, `png`: a scene as text, and as pixels; `palette` has the colours, `font` the letters.
//! - `ascii`: the same layout in characters, or a list if that is too wide.

mod error;
mod plan;

mod layered;

mod compose;
mod font;
mod palette;
mod scene;

mod ascii;
mod png;
mod svg;

#[cfg(test)]
mod drawings;

pub use ascii::ascii;
pub use error::Error;
pub use plan::{MAX_DEPTH, MAX_EDGES, MAX_NODES};
pub use png::{MAX_PIXELS, MAX_SCALE, MIN_SCALE, png};
pub use svg::{MAX_SVG_BYTES, svg};
