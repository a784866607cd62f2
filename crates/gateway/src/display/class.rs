//! Which characters nobody can see, which move others, and which read from right to left.

use unicode_general_category::{GeneralCategory, get_general_category};

/// Characters that show nothing, or nothing of their own, or that no font knows: controls, formats (zero-width ones,
/// bidi controls, tags, the soft hyphen, the byte order mark), separators but the plain space, variation selectors,
/// fillers, and what is unassigned or private.
pub fn is_hidden(character: char) -> bool {
    if (' '..='~').contains(&character) {
        return false;
    }
    // Letters, marks and symbols by their category, but blank all the same.
    let blank = matches!(character,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{16fe4}' | '\u{1d159}'
        | '\u{e0100}'..='\u{e01ef}');
    blank
        || matches!(
            get_general_category(character),
            GeneralCategory::Control
                | GeneralCategory::Format
                | GeneralCategory::LineSeparator
                | GeneralCategory::ParagraphSeparator
                | GeneralCategory::SpaceSeparator
                | GeneralCategory::PrivateUse
                | GeneralCategory::Surrogate
                | GeneralCategory::Unassigned
        )
}

/// Marks that sit on the character before them.
pub(super) fn is_mark(character: char) -> bool {
    character > '\u{2ff}'
        && matches!(
            get_general_category(character),
            GeneralCategory::NonspacingMark
                | GeneralCategory::EnclosingMark
                | GeneralCategory::SpacingMark
        )
}

/// The twelve characters that change the direction of the text around them.
pub(super) fn is_bidi(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Blocks of scripts that are written from right to left.
pub(super) fn is_right_to_left(character: char) -> bool {
    matches!(character,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
        && !is_hidden(character)
}

/// The letter that a tag character stands for: machines read them as ASCII, people see nothing.
pub(super) fn tag_letter(character: char) -> Option<char> {
    let code = u32::from(character).checked_sub(0xe0000)?;
    char::from_u32(code).filter(|letter| (' '..='~').contains(letter))
}
