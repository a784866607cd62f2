//! The colours, for light and for dark surroundings.
//!
//! An SVG carries both and follows its reader; a PNG has the light ones on its own background.

use crate::plan::Style;

/// What a shape is, which decides how it is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// The picture's own ground.
    Ground,
    /// A node's box.
    Node,
    /// The box of the start or the end.
    Terminal,
    /// The second border of a subgraph that is one box.
    Inner,
    /// The box around an opened subgraph.
    Frame,
    /// A line of such an edge, its arrow, and what is written on it.
    Edge(Style),
    /// What lies under the text on a line.
    Plate,
    /// The same inside a frame.
    FramePlate,
    /// A node's name.
    Name,
    /// The name of the start or the end.
    TerminalName,
    /// What is said in small letters.
    Small,
}

/// A colour as red, green and blue.
pub(crate) type Colour = (u8, u8, u8);

/// How a role is painted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    pub(crate) class: &'static str,
    pub(crate) fill: Option<Colour>,
    pub(crate) stroke: Option<Stroke>,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke {
    pub(crate) colour: Colour,
    /// In pixels.
    pub(crate) width: f64,
    /// How long dashes and gaps are, if it is not one line.
    pub(crate) dash: Option<(f64, f64)>,
}

impl Role {
    pub(crate) const ALL: [Role; 14] = [
        Role::Ground,
        Role::Node,
        Role::Terminal,
        Role::Inner,
        Role::Frame,
        Role::Edge(Style::Fixed),
        Role::Edge(Style::Conditional),
        Role::Edge(Style::Join),
        Role::Edge(Style::OnError),
        Role::Plate,
        Role::FramePlate,
        Role::Name,
        Role::TerminalName,
        Role::Small,
    ];

    /// How it is painted in light or dark surroundings.
    pub(crate) fn paint(self, dark: bool) -> Paint {
        let pick = |light: Colour, night: Colour| if dark { night } else { light };
        let ground = pick((255, 255, 255), (17, 22, 31));
        let frame = pick((248, 249, 252), (23, 30, 43));
        let (class, fill, stroke) = match self {
            Role::Ground => ("ground", Some(ground), None),
            Role::Node => (
                "node",
                Some(pick((239, 244, 255), (30, 41, 66))),
                line(pick((91, 124, 196), (124, 156, 227)), 1.25, None),
            ),
            Role::Terminal => ("terminal", Some(pick((51, 65, 92), (203, 213, 230))), None),
            Role::Inner => (
                "inner",
                None,
                line(pick((91, 124, 196), (124, 156, 227)), 1.0, None),
            ),
            Role::Frame => (
                "frame",
                Some(frame),
                line(pick((154, 165, 186), (84, 98, 124)), 1.25, None),
            ),
            Role::Edge(style) => return edge(style, dark),
            Role::Plate => ("plate", Some(ground), None),
            Role::FramePlate => ("frame-plate", Some(frame), None),
            Role::Name => ("name", Some(pick((23, 32, 51), (230, 236, 248))), None),
            Role::TerminalName => (
                "terminal-name",
                Some(pick((255, 255, 255), (17, 22, 31))),
                None,
            ),
            Role::Small => ("small", Some(pick((84, 96, 122), (160, 172, 198))), None),
        };
        Paint {
            class,
            fill,
            stroke,
        }
    }
}

/// The paint of an edge's line; its arrow and text are filled with the line's colour.
fn edge(style: Style, dark: bool) -> Paint {
    let pick = |light: Colour, night: Colour| if dark { night } else { light };
    let (class, colour, width, dash) = match style {
        Style::Fixed => ("always", pick((71, 85, 115), (160, 173, 201)), 1.5, None),
        Style::Conditional => (
            "conditional",
            pick((71, 85, 115), (160, 173, 201)),
            1.5,
            Some((6.0, 4.0)),
        ),
        Style::Join => ("join", pick((109, 76, 178), (178, 152, 237)), 3.0, None),
        Style::OnError => (
            "on-error",
            pick((192, 57, 43), (240, 128, 116)),
            1.75,
            Some((2.0, 4.0)),
        ),
    };
    Paint {
        class,
        fill: None,
        stroke: line(colour, width, dash),
    }
}

fn line(colour: Colour, width: f64, dash: Option<(f64, f64)>) -> Option<Stroke> {
    Some(Stroke {
        colour,
        width,
        dash,
    })
}
