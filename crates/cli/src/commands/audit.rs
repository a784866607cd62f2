//! `paraph audit …`: the chain of what happened to actions and switches, for people who have to answer for it.

mod anchor;
mod erase;
mod export;
mod list;
mod pack;
mod verify;

use super::{on_listed, on_store};
use crate::args::{AuditCommand, AuditVerifyArgs};
use crate::failure::Failure;
use crate::stores::Kept;
use paraph_gateway::{ApprovalError, AuditEntry};

/// How many entries are read at a time.
const PAGE: usize = 500;

pub(super) fn run(command: &AuditCommand) -> Result<u8, Failure> {
    match command {
        AuditCommand::List(args) => on_listed(
            &args.chain.store,
            ("audit entries", args.json),
            async |kept, _| list::list(&kept, args).await,
        ),
        AuditCommand::Verify(AuditVerifyArgs {
            pack: Some(file),
            anchors,
            json,
            ..
        }) => pack::verify(file, anchors, *json),
        AuditCommand::Pack(args) => {
            on_store(&args.store, async |kept, _| pack::pack(&kept, args).await)
        }
        AuditCommand::Verify(args) => on_store(&args.chain.store, async |kept, _| {
            verify::verify(&kept, args).await
        }),
        AuditCommand::Anchor(args) => on_store(&args.chain.store, async |kept, config| {
            anchor::anchor(&kept, &config, args).await
        }),
        AuditCommand::Erase(args) => on_store(&args.chain.store, async |kept, config| {
            erase::erase(&kept, &config, args).await
        }),
        AuditCommand::Export(args) => on_store(&args.chain.store, async |kept, _| {
            export::export(&kept, args).await
        }),
    }
}

/// At most so many entries of a chain behind one.
async fn page(
    kept: &Kept,
    tenant: &str,
    (after, limit): (u64, usize),
) -> Result<Vec<AuditEntry>, Failure> {
    let page = kept.desk().audit(tenant, after, limit).await;
    page.map_err(|error: ApprovalError| Failure::Broken(error.to_string()))
}
