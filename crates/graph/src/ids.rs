//! Identifiers: runs, checkpoints, tasks, and the keys that tasks hand to the outside.
//!
//! Run and checkpoint ids are time-ordered UUIDs (version 7). A task's id comes from the checkpoint that
//! made it due, and its place among the tasks made due there. The thread's head has no part in it: an
//! update of the thread leaves tasks their ids, a fork gives them new ones.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// The UUID itself.
            #[must_use]
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                $name(uuid)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                Uuid::parse_str(text).map($name)
            }
        }
    };
}

id! {
    /// One execution on a thread.
    RunId
}
id! {
    /// One saved superstep. Later checkpoints compare greater.
    CheckpointId
}
id! {
    /// One node execution of a superstep; stays the same when the task runs again.
    TaskId
}

impl RunId {
    /// A fresh id.
    #[must_use]
    pub fn fresh() -> Self {
        RunId(Uuid::now_v7())
    }
}

impl CheckpointId {
    /// A fresh id, greater than all that this process gave before.
    #[must_use]
    pub fn fresh() -> Self {
        CheckpointId(Uuid::now_v7())
    }

    /// A fresh id, greater than `newest` too: another machine's clock may be ahead of this one's.
    pub(crate) fn after(newest: Option<CheckpointId>) -> Self {
        let fresh = Self::fresh();
        match newest {
            Some(newest) if newest >= fresh => {
                CheckpointId(Uuid::from_u128(newest.0.as_u128().saturating_add(1)))
            }
            _ => fresh,
        }
    }
}

/// Where a task was born: what its identity is made of. Cheap to copy; hashed only when asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Birth {
    /// The checkpoint, or for a run without a store a number that only this superstep has.
    pub(crate) at: Uuid,
    /// The task's place among those born there.
    pub(crate) index: u32,
}

impl Birth {
    /// The task's id in its thread and namespace.
    pub(crate) fn task(self, thread: &str, namespace: &str) -> TaskId {
        let digest = self.digest(thread, namespace, &[b"task"]);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        TaskId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// A key of the task for `parts`: the first 16 bytes of a SHA-256, as 32 hexadecimal digits.
    pub(crate) fn key(self, thread: &str, namespace: &str, parts: &[&str]) -> String {
        let parts: Vec<&[u8]> = parts.iter().map(|p| p.as_bytes()).collect();
        let digest = self.digest(thread, namespace, &parts);
        let mut hex = String::with_capacity(32);
        for byte in &digest[..16] {
            use fmt::Write as _;
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }

    fn digest(self, thread: &str, namespace: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"paraph/task/v1");
        let index = self.index.to_be_bytes();
        let fixed: [&[u8]; 4] = [
            thread.as_bytes(),
            namespace.as_bytes(),
            self.at.as_bytes(),
            &index,
        ];
        for part in fixed.iter().chain(parts) {
            // Length first, so that no two lists of parts run into the same bytes.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}
