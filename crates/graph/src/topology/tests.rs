//! Faults that `build` finds.
