//! Where stores lie: a file of SQLite, or a database of Postgres; and opening either.
//!
//! Called by children and by the parent alike; the only file here that names the store crate.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use paraph_graph::Threads;
use paraph_store::Opened;
use serde::{Deserialize, Serialize};

use crate::Fault;

/// A store that processes can open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// `sqlite://PATH` or `postgres://…`.
    pub url: String,
    /// How long a lease lasts without a sign of life, in milliseconds; nothing for the store's own idea.
    pub lease_ms: Option<u64>,
}

impl Place {
    /// The store in a file.
    pub fn file(path: &Path) -> Place {
        Place {
            url: format!("sqlite://{}", path.display()),
            lease_ms: None,
        }
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<PathBuf> {
        self.url.strip_prefix("sqlite://").map(PathBuf::from)
    }

    /// Opens it.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn open(&self) -> Result<Arc<dyn Threads>, Fault> {
        Ok(self.open_all().await?.threads)
    }

    /// The gateway's part of it.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn gateway(&self) -> Result<Arc<dyn paraph_gateway::Store>, Fault> {
        Ok(self.open_all().await?.gateway)
    }

    /// Opens it in all its roles.
    pub(crate) async fn open_all(&self) -> Result<Opened, Fault> {
        let mut options = paraph_store::Options::default();
        if let Some(lease) = self.lease_ms {
            options.lease = Duration::from_millis(lease);
        }
        Ok(paraph_store::open(&self.url, options).await?)
    }

    /// What the database's own check says against it; nothing for one that has none.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn damage(&self) -> Result<Vec<String>, Fault> {
        let Some(path) = self.path() else {
            return Ok(Vec::new());
        };
        let database = rusqlite::Connection::open(path)?;
        let mut check = database.prepare("PRAGMA integrity_check")?;
        let said = check.query_map((), |row| row.get::<_, String>(0))?;
        let mut damage: Vec<String> = said.collect::<Result<_, _>>()?;
        damage.retain(|line| line != "ok");
        let mut keys = database.prepare("PRAGMA foreign_key_check")?;
        let orphans = keys.query_map((), |row| row.get::<_, String>(0))?;
        for table in orphans {
            damage.push(format!("a row of {} belongs to nothing", table?));
        }
        Ok(damage)
    }
}

/// Where trials put their stores: each a file of its own, or all in one database.
#[derive(Clone, Debug)]
pub enum Stand {
    /// A folder for files.
    Folder(PathBuf),
    /// A Postgres database.
    Database(Place),
}

impl Stand {
    /// The store of one trial.
    pub fn place(&self, trial: &str) -> Place {
        match self {
            Stand::Folder(folder) => Place::file(&folder.join(format!("{trial}.db"))),
            Stand::Database(place) => place.clone(),
        }
    }

    /// Removes what a trial left, if it is in files.
    pub fn clear(&self, trial: &str) {
        let Stand::Folder(folder) = self else { return };
        let Ok(files) = std::fs::read_dir(folder) else {
            return;
        };
        for file in files.flatten() {
            let name = file.file_name();
            let own = name
                .to_string_lossy()
                .strip_prefix(trial)
                .is_some_and(|rest| rest.starts_with(".db"));
            if own {
                // What cannot be removed goes with the folder.
                let _ = std::fs::remove_file(file.path());
                let _ = std::fs::remove_dir_all(file.path());
            }
        }
    }

    /// The kind of store.
    pub fn name(&self) -> &'static str {
        match self {
            Stand::Folder(_) => "sqlite",
            Stand::Database(_) => "postgres",
        }
    }
}
