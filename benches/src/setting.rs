//! What is switched on while a shape runs: checkpoints, and somebody who listens. Plain data.

use std::fmt;

/// One way to run a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Whether every superstep is saved to a fresh in-memory store.
    pub memory: bool,
    /// Whether the updates of all nodes are streamed as JSON and read.
    pub updates: bool,
}

impl Setting {
    /// All four, from the cheapest to the dearest.
    pub const ALL: [Setting; 4] = [
        Setting {
            memory: false,
            updates: false,
        },
        Setting {
            memory: false,
            updates: true,
        },
        Setting {
            memory: true,
            updates: false,
        },
        Setting {
            memory: true,
            updates: true,
        },
    ];

    /// The setting with that name, as [`fmt::Display`] writes it.
    pub fn parse(name: &str) -> Option<Setting> {
        Setting::ALL
            .into_iter()
            .find(|setting| setting.to_string() == name)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match (self.memory, self.updates) {
            (false, false) => "none",
            (false, true) => "none+updates",
            (true, false) => "memory",
            (true, true) => "memory+updates",
        })
    }
}
