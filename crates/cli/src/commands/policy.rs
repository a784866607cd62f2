//! `paraph policy`: the rules of an agent in a file, tried and explained, which connects to nothing; and its standing
//! grants, listed with what the store says of them, revoked and restored.

mod explain;
mod grants;
mod test;

use crate::args::PolicyCommand;
use crate::failure::Failure;

pub(super) fn run(command: &PolicyCommand) -> Result<u8, Failure> {
    match command {
        PolicyCommand::Test(args) => test::test(args),
        PolicyCommand::Explain(args) => explain::explain(args),
        PolicyCommand::Grants(args) => grants::grants(args),
        PolicyCommand::Revoke(args) => grants::revoke(args),
        PolicyCommand::Restore(args) => grants::restore(args),
    }
}
