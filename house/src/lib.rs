//! The house rules of this workspace, as pure functions over its text.
