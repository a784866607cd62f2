//! Pieces and what they make: tables and properties.
