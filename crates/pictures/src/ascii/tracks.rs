//! The rows in which lines run to the side between two layers, so that no two of them lie on each other.
//!
//! `sheet` calls it for each pair of layers. In one column the line that ends there must turn above the one that
//! begins there; where that goes round in a circle, one of them gets another column.

/// A line from one layer to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Its column above and below.
    pub(super) above: usize,
    pub(super) below: usize,
    /// Between which columns its lower end may be moved, if it stands on a box.
    pub(super) reach: Option<(usize, usize)>,
    /// The row in which it runs to the side, once that is known.
    pub(super) row: usize,
}

impl Segment {
    pub(super) fn is_straight(&self) -> bool {
        self.above == self.below
    }

    fn span(&self) -> (usize, usize) {
        (self.above.min(self.below), self.above.max(self.below))
    }
}

/// How often a column is changed before it is given up.
const ATTEMPTS: usize = 32;

/// Gives each segment its row and says how many rows there are, or nothing if it cannot be done.
pub(super) fn assign(segments: &mut [Segment]) -> Option<usize> {
    for _ in 0..ATTEMPTS {
        match rows(segments) {
            Ok(rows) => return Some(rows),
            Err(stuck) => {
                let moved = stuck.into_iter().any(|place| evade(segments, place));
                if !moved {
                    return None;
                }
            }
        }
    }
    None
}

/// Moves the lower end of a segment to a free column beside it.
fn evade(segments: &mut [Segment], place: usize) -> bool {
    let Some((low, high)) = segments[place].reach else {
        return false;
    };
    let here = segments[place].below;
    let is_free = |&column: &usize| {
        let far = |taken: usize| taken.abs_diff(column) > 0;
        let mut others = segments.iter().enumerate();
        (low..=high).contains(&column)
            && others.all(|(other, s)| far(s.above) && (other == place || far(s.below)))
    };
    let found = [
        here + 1,
        here.wrapping_sub(1),
        here + 2,
        here.wrapping_sub(2),
    ];
    let Some(column) = found.into_iter().find(is_free) else {
        return false;
    };
    segments[place].below = column;
    true
}

/// Rows from the top; on failure the segments that wait for each other.
fn rows(segments: &mut [Segment]) -> Result<usize, Vec<usize>> {
    let mut waiting: Vec<usize> = (0..segments.len())
        .filter(|&place| !segments[place].is_straight())
        .collect();
    // Of lines to the right the rightmost turns first, of lines to the left the leftmost: so they do not cross.
    waiting.sort_by_key(|&place| {
        let segment = &segments[place];
        match segment.below > segment.above {
            true => (0, usize::MAX - segment.above),
            false => (1, segment.above),
        }
    });
    let mut rows: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut placed: Vec<usize> = Vec::new();
    while !waiting.is_empty() {
        let is_due = |&place: &usize| {
            let mut others = waiting.iter().filter(|&&other| other != place);
            others.all(|&other| segments[other].above != segments[place].below)
        };
        let Some(next) = waiting.iter().position(is_due) else {
            return Err(waiting);
        };
        let place = waiting.remove(next);
        let above = placed
            .iter()
            .filter(|&&other| segments[other].above == segments[place].below);
        let first = above
            .map(|&other| segments[other].row + 1)
            .max()
            .unwrap_or(0);
        let (low, high) = segments[place].span();
        let is_free = |row: &usize| {
            let taken = rows.get(*row).into_iter().flatten();
            taken
                .into_iter()
                .all(|&(from, to)| to + 1 < low || high + 1 < from)
        };
        let row = (first..=rows.len().max(first))
            .find(is_free)
            .unwrap_or(rows.len());
        rows.resize_with(rows.len().max(row + 1), Vec::new);
        rows[row].push((low, high));
        segments[place].row = row;
        placed.push(place);
    }
    Ok(rows.len())
}
