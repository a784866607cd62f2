//! The step machine by tables.
