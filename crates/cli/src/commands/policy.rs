//! `paraph policy`: the rules of an agent in a file, tried and explained. Nothing is called, connected to or stored.

mod explain;
mod test;

use crate::args::PolicyCommand;
use crate::failure::Failure;

pub(super) fn run(command: &PolicyCommand) -> Result<u8, Failure> {
    match command {
        PolicyCommand::Test(args) => test::test(args),
        PolicyCommand::Explain(args) => explain::explain(args),
    }
}
