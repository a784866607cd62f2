//! Reading: a few connections, each of which reads as of one moment and never waits for the writer.

use super::connection::{Open, Place};
use crate::{
    database::{Fault, Work},
    sql::SqlError,
};
use futures::{FutureExt, future::BoxFuture};
use rusqlite::Connection;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Connections that are not in use, and how many may be.
pub(super) struct Readers {
    place: Place,
    free: Mutex<Vec<Connection>>,
    room: Semaphore,
}

impl Readers {
    pub(super) fn new(place: Place, most: usize) -> Self {
        Readers {
            place,
            free: Mutex::default(),
            room: Semaphore::new(most.max(1)),
        }
    }

    fn one<T>(&self, work: &Work<T>) -> Result<T, Fault> {
        let free = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let mut connection = match free {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let done = self.within(&mut connection, work);
        // One on which a transaction could not be ended is closed.
        if connection.is_autocommit() {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.push(connection);
        }
        done
    }

    fn connect(&self) -> Result<Connection, SqlError> {
        let opened = self.place.connect().and_then(|connection| {
            connection.pragma_update(None, "query_only", "ON")?;
            Ok(connection)
        });
        opened.map_err(|e| self.place.error(&e))
    }

    /// It may be done again: while another process opens the file, nobody can read it.
    fn within<T>(&self, connection: &mut Connection, work: &Work<T>) -> Result<T, Fault> {
        let is_busy = |fault: &Fault| matches!(fault, Fault::Sql(SqlError::Transient(_)));
        self.place.again_while(is_busy, || {
            let begin = connection.execute_batch("BEGIN");
            begin.map_err(|e| self.place.error(&e))?;
            let done = run(work, connection, &self.place);
            if connection.execute_batch("COMMIT").is_err() {
                // Nothing is lost with it; if this fails too, the connection goes.
                let _ = connection.execute_batch("ROLLBACK");
            }
            done
        })
    }
}

/// Work on a transaction of SQLite never waits, so one poll is all of it.
pub(super) fn run<T>(
    work: &Work<T>,
    connection: &mut Connection,
    place: &Place,
) -> Result<T, Fault> {
    let mut tx = Open { connection, place };
    let done = work(&mut tx).now_or_never();
    done.unwrap_or_else(|| {
        let why = "a transaction waited for something else than its statements";
        Err(Fault::Sql(SqlError::Lasting(why.to_owned())))
    })
}

pub(super) fn read<T: Send + 'static>(
    readers: Arc<Readers>,
    work: Work<T>,
) -> BoxFuture<'static, Result<T, Fault>> {
    Box::pin(async move {
        // It is never closed.
        let _room = readers.room.acquire().await.ok();
        let blocking = {
            let readers = readers.clone();
            tokio::task::spawn_blocking(move || readers.one(&work))
        };
        blocking.await.unwrap_or_else(|e| {
            Err(Fault::Sql(SqlError::Lasting(format!(
                "reading was ended: {e}"
            ))))
        })
    })
}
