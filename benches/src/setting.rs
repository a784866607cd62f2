//! What is switched on while a shape runs: where it is saved, and somebody who listens. Plain data.

use std::fmt;

use paraph_graph::Durability;
use serde::{Serialize, Serializer};

/// When a superstep is saved in a store that outlives the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Save {
    /// At the end.
    Exit,
    /// Behind the run.
    Async,
    /// Before the next superstep.
    Sync,
}

impl Save {
    /// The engine's word for it.
    pub fn durability(self) -> Durability {
        match self {
            Save::Exit => Durability::Exit,
            Save::Async => Durability::Async,
            Save::Sync => Durability::Sync,
        }
    }
}

impl fmt::Display for Save {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Save::Exit => "exit",
            Save::Async => "async",
            Save::Sync => "sync",
        })
    }
}

/// Where a run is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Nowhere.
    Nowhere,
    /// In a fresh store of this process, after every superstep.
    Memory,
    /// In a fresh file of SQLite.
    Sqlite(Save),
    /// In a fresh database of a Postgres server.
    Postgres(Save),
}

/// One way to run a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where it is saved.
    pub kept: Kept,
    /// Whether the updates of all nodes are streamed as JSON and read.
    pub updates: bool,
}

impl Setting {
    /// Within one process, from the cheapest to the dearest.
    pub const QUICK: [Setting; 4] = [
        Setting::new(Kept::Nowhere, false),
        Setting::new(Kept::Nowhere, true),
        Setting::new(Kept::Memory, false),
        Setting::new(Kept::Memory, true),
    ];

    /// Both stores in every durability.
    pub const DURABLE: [Setting; 6] = [
        Setting::new(Kept::Sqlite(Save::Exit), false),
        Setting::new(Kept::Sqlite(Save::Async), false),
        Setting::new(Kept::Sqlite(Save::Sync), false),
        Setting::new(Kept::Postgres(Save::Exit), false),
        Setting::new(Kept::Postgres(Save::Async), false),
        Setting::new(Kept::Postgres(Save::Sync), false),
    ];

    /// Both stores, each superstep on the disk before the next begins.
    pub const SYNC: [Setting; 2] = [
        Setting::new(Kept::Sqlite(Save::Sync), false),
        Setting::new(Kept::Postgres(Save::Sync), false),
    ];

    const fn new(kept: Kept, updates: bool) -> Setting {
        Setting { kept, updates }
    }

    /// The setting with that name, as [`fmt::Display`] writes it.
    pub fn parse(name: &str) -> Option<Setting> {
        Setting::QUICK
            .into_iter()
            .chain(Setting::DURABLE)
            .find(|setting| setting.to_string() == name)
    }

    /// Whether anything is saved.
    pub fn saves(self) -> bool {
        self.kept != Kept::Nowhere
    }

    /// When, if it is in a store that outlives the process.
    pub fn durable(self) -> Option<Save> {
        match self.kept {
            Kept::Nowhere | Kept::Memory => None,
            Kept::Sqlite(save) | Kept::Postgres(save) => Some(save),
        }
    }

    /// Whether it needs a Postgres server.
    pub fn needs_postgres(self) -> bool {
        matches!(self.kept, Kept::Postgres(_))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = match self.kept {
            Kept::Nowhere => "none".to_owned(),
            Kept::Memory => "memory".to_owned(),
            Kept::Sqlite(save) => format!("sqlite-{save}"),
            Kept::Postgres(save) => format!("postgres-{save}"),
        };
        f.pad(&if self.updates {
            kept + "+updates"
        } else {
            kept
        })
    }
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
