//! `paraph store …`: the store as a whole.

mod backup;
mod check;
mod migrate;
mod stats;

use super::on_store;
use crate::args::StoreCommand;
use crate::failure::Failure;

pub(super) fn run(command: &StoreCommand) -> Result<u8, Failure> {
    match command {
        StoreCommand::Migrate(args) => migrate::migrate(args),
        StoreCommand::Check(args) => {
            on_store(&args.store, async |kept, _| check::check(&kept, args).await)
        }
        StoreCommand::Stats(args) => {
            on_store(&args.store, async |kept, _| stats::stats(&kept, args).await)
        }
        StoreCommand::Backup(args) => on_store(&args.store, async |kept, _| {
            backup::backup(&kept, args).await
        }),
    }
}
