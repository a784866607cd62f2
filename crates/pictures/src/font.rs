//! The included font: how wide a text is, and the outlines of its letters.
//!
//! `compose` measures with it and `png` draws with it. The file has no kerning, so a text is as wide as the sum of
//! its characters, here and in a browser.

use crate::Error;
use ttf_parser::{Face, GlyphId, OutlineBuilder};
use unicode_width::UnicodeWidthChar as _;

static FILE: &[u8] = include_bytes!("../font/Roboto-Regular.subset.ttf");

/// What an SVG carries: the most usual characters, compressed, as base64 in lines.
pub(crate) static FOR_SVG: &str = include_str!("../font/roboto-latin.woff2.base64");

/// How high capital letters are, in parts of the font's size.
pub(crate) const CAPITALS: f64 = 0.711;

/// The font, ready to measure.
pub(crate) struct Font {
    face: Face<'static>,
    units: f64,
}

impl Font {
    pub(crate) fn included() -> Result<Font, Error> {
        let face = Face::parse(FILE, 0).map_err(|error| Error::Drawing(error.to_string()))?;
        let units = f64::from(face.units_per_em().max(1));
        Ok(Font { face, units })
    }

    /// The width of a text of this size, in pixels.
    pub(crate) fn width(&self, text: &str, size: f64) -> f64 {
        text.chars().map(|c| self.advance(c)).sum::<f64>() * size
    }

    /// Hands out each letter with its place from the text's left, both in parts of the font's size.
    pub(crate) fn letters(&self, text: &str, each: &mut dyn FnMut(GlyphId, f64)) {
        let mut x = 0.0;
        for character in text.chars() {
            each(self.face.glyph_index(character).unwrap_or(GlyphId(0)), x);
            x += self.advance(character);
        }
    }

    /// Draws a letter's outline, in font units with y upwards.
    pub(crate) fn outline(&self, glyph: GlyphId, builder: &mut dyn OutlineBuilder) {
        let _ = self.face.outline_glyph(glyph, builder);
    }

    /// Pixels per font unit at this size.
    pub(crate) fn scale(&self, size: f64) -> f64 {
        size / self.units
    }

    /// A character's width in parts of the size; characters that are not in the font come from another, which is
    /// reckoned with generously.
    fn advance(&self, character: char) -> f64 {
        match self.face.glyph_index(character) {
            Some(glyph) => f64::from(self.face.glyph_hor_advance(glyph).unwrap_or(0)) / self.units,
            None => character.width().unwrap_or(0) as f64 * 0.55,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;

    #[test]
    fn a_text_is_as_wide_as_its_letters() {
        let font = Font::included().unwrap();
        let sum = font.width("s", 14.0) + font.width("tart", 14.0);
        assert!((font.width("start", 14.0) - sum).abs() < 1e-9);
        assert!(font.width("W", 14.0) > font.width("i", 14.0) * 2.0);
        // Two columns of a terminal are reckoned as about one letter's height.
        assert!((font.width("語", 10.0) - 11.0).abs() < 1e-9);
    }
}
