//! What the builtin tools take, before any of them is made: for whoever checks a configuration.
//!
//! A made tool needs a client and settings; its arguments' schema does not. Both come from the same types.

use schemars::schema_for;
use serde_json::Value;

/// The JSON Schema of what a tool of this crate takes; nothing for another name.
///
/// ```
/// use paraph_tools::{arguments, think};
/// assert_eq!(arguments("think"), Some(think().schema));
/// assert_eq!(arguments("rm"), None);
/// ```
pub fn arguments(tool: &str) -> Option<Value> {
    let schema = match tool {
        "web_search" => schema_for!(crate::search::Query),
        "fetch_page" => schema_for!(crate::page::Address),
        "get_weather" => schema_for!(crate::weather::Where),
        "think" => schema_for!(crate::think::Thought),
        "issue_refund" => schema_for!(crate::refund::Refund),
        _ => return None,
    };
    Some(schema.to_value())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Outbound, OutboundSettings, Refunds, Weather, WebSearch, fetch_page, get_weather,
        issue_refund, think, web_search,
    };

    #[test]
    fn the_arguments_are_those_of_the_made_tools() {
        let outbound = Outbound::new(&OutboundSettings::default()).unwrap();
        let folder = std::env::current_dir().unwrap();
        let tools = [
            think(),
            fetch_page(&outbound),
            web_search(&outbound, WebSearch::tavily(None).unwrap()).unwrap(),
            get_weather(&outbound, Weather::open_meteo().unwrap()),
            issue_refund(&outbound, Refunds::Ledger(folder.join("refunds.jsonl"))).unwrap(),
        ];
        for tool in tools {
            let mut known = arguments(&tool.name).unwrap();
            let mut made = tool.schema;
            // The gateway takes its own type's name away where it makes a schema of a type.
            for schema in [&mut known, &mut made] {
                schema.as_object_mut().unwrap().remove("title");
                schema.as_object_mut().unwrap().remove("$schema");
            }
            assert_eq!(known, made, "{}", tool.name);
        }
    }
}
