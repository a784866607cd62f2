//! What can be wrong with a graph that should be drawn, or with how it should be drawn.
//!
//! Every function of this crate returns it; a caller can show the texts as they are.

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is more of something than is drawn.
    #[error("the graph has {count} {what}, and at most {limit} are drawn{advice}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there are, or how many had been counted when it was enough.
        count: usize,
        /// How many are drawn.
        limit: usize,
        /// What to do instead, or nothing.
        advice: &'static str,
    },
    /// Subgraphs stand in subgraphs too many times over.
    #[error("the graph has subgraphs within subgraphs deeper than {limit} levels")]
    TooDeep {
        /// How many levels are drawn.
        limit: usize,
    },
    /// An edge names a node that is not in the drawing.
    #[error("the edge from `{from}` to `{to}` names a node that the graph does not have")]
    UnknownNode {
        /// The node it leaves.
        from: String,
        /// The node it leads to.
        to: String,
    },
    /// A scale that no picture can have.
    #[error("the scale {0} is not between {min} and {max}", min = crate::MIN_SCALE, max = crate::MAX_SCALE)]
    BadScale(f32),
    /// A PNG would have too many pixels.
    #[error(
        "the picture would be {width} × {height} pixels, and at most {limit} pixels are drawn: use a smaller scale, or SVG"
    )]
    TooManyPixels {
        /// Its width in pixels.
        width: u64,
        /// Its height in pixels.
        height: u64,
        /// How many pixels are drawn in all.
        limit: u64,
    },
    /// A text or file would be too long.
    #[error("the {what} would be longer than {limit} bytes")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// The included font, or the library that draws, refuses what it should take.
    #[error("the picture cannot be drawn: {0}")]
    Drawing(String),
}
