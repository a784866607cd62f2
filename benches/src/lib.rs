//! The shapes that are measured, and the ways to measure them.
