//! A graph of your own: two nodes in a loop, over a typed state.

use paraph_graph::{Ctx, END, Graph, MemoryStore, Result, State, Update};

#[derive(State, Clone, Default)]
struct Draft {
    text: String,
    #[reduce(append)]
    remarks: Vec<String>,
}

/// A node reads the state and says what to write; it cannot change anything itself.
async fn write(draft: &Draft, _: &Ctx) -> Result<Update<Draft>> {
    Ok(Draft::update().text(format!("{}!", draft.text)))
}

async fn review(draft: &Draft, _: &Ctx) -> Result<Update<Draft>> {
    Ok(Draft::update().remarks([format!("`{}` could be louder", draft.text)]))
}

fn enough(draft: &Draft) -> &'static str {
    if draft.remarks.len() < 3 {
        "write"
    } else {
        END
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let graph = Graph::<Draft>::new("draft").node("write", write);
    let graph = graph.node("review", review).start("write");
    let graph = graph.edge("write", "review");
    let graph = graph.branch("review", enough, ["write", END]).build()?;
    let thread = graph.thread(&MemoryStore::shared(), "letter-1");
    let draft = thread.run(Draft::update().text("Hello")).await?.done()?;
    println!("{}\n{}", draft.text, draft.remarks.join("\n"));
    println!("{}", graph.mermaid());
    Ok(())
}
