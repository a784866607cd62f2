//! Copying a thread under another name.
