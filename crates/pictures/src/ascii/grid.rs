//! Characters in rows and columns.
//!
//! `sheet` draws on it. A character of two columns takes its own cell and the next one.

use unicode_width::UnicodeWidthChar as _;

/// What stands in the second cell of a wide character.
const TAKEN: char = '\0';

#[derive(Debug)]
pub(super) struct Grid {
    pub(super) width: usize,
    rows: Vec<Vec<char>>,
}

impl Grid {
    pub(super) fn new(width: usize, height: usize) -> Grid {
        Grid {
            width,
            rows: vec![vec![' '; width]; height],
        }
    }

    pub(super) fn height(&self) -> usize {
        self.rows.len()
    }

    /// Puts a character into a cell. Outside of the grid nothing happens.
    pub(super) fn set(&mut self, x: usize, y: usize, character: char) {
        if let Some(cell) = self.rows.get_mut(y).and_then(|row| row.get_mut(x)) {
            *cell = character;
        }
    }

    /// Writes a text from a cell on.
    pub(super) fn write(&mut self, x: usize, y: usize, text: &str) {
        let mut x = x;
        for character in text.chars() {
            let columns = character.width().unwrap_or(0);
            if columns == 0 {
                continue;
            }
            self.set(x, y, character);
            (1..columns).for_each(|next| self.set(x + next, y, TAKEN));
            x += columns;
        }
    }

    /// Draws a box with a border.
    pub(super) fn frame(&mut self, x: usize, y: usize, width: usize, height: usize) {
        let (right, bottom) = (x + width.saturating_sub(1), y + height.saturating_sub(1));
        for column in x..=right {
            let border = if column == x || column == right {
                '+'
            } else {
                '-'
            };
            self.set(column, y, border);
            self.set(column, bottom, border);
        }
        for row in y + 1..bottom {
            self.set(x, row, '|');
            self.set(right, row, '|');
        }
    }

    /// Copies another grid onto this one.
    pub(super) fn paste(&mut self, x: usize, y: usize, other: &Grid) {
        for (down, row) in other.rows.iter().enumerate() {
            for (side, &character) in row.iter().enumerate() {
                self.set(x + side, y + down, character);
            }
        }
    }

    /// The rows as lines, without blanks at their ends.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let line: String = row.iter().filter(|&&cell| cell != TAKEN).collect();
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// How many columns a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}
