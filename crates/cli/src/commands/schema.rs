//! `paraph schema`: the JSON Schema of a file that people write, for their editors.

use crate::args::SchemaCommand;
use crate::failure::{FINISHED, Failure};
use crate::output::print_json;

pub(super) fn print(command: &SchemaCommand) -> Result<u8, Failure> {
    match command {
        SchemaCommand::Agent => print_json(&paraph_agents::agent_schema())?,
    }
    Ok(FINISHED)
}
