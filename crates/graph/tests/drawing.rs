//! Drawings: the whole text, for every kind of node and edge, with subgraphs shut and open.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use serde_json::json;

#[derive(State, Clone, Default, Debug, PartialEq)]
struct S {
    n: u32,
}

async fn node(_: &S, _: &Ctx) -> Result<Update<S>> {
    Ok(S::update())
}

async fn jump(_: &S, _: &Ctx) -> Result<Command<S>> {
    Ok(Command::goto(END))
}

const EACH: Each<u32> = Each::new("each");

async fn each(_: u32, _: &S, _: &Ctx) -> Result<Update<S>> {
    Ok(S::update())
}

fn graph(name: &'static str) -> Builder<S> {
    Graph::<S>::new(name)
}

// 23.
#[test]
fn a_line_is_drawn_from_start_to_end() {
    let graph = graph("line")
        .node("one", node)
        .node("two", node)
        .start("one")
        .edge("one", "two")
        .end("two")
        .build()
        .unwrap();
    assert_eq!(
        graph.mermaid(),
        r#"flowchart TD
    n0(["start"])
    n1["one"]
    n2["two"]
    n3(["end"])
    n0 --> n1
    n1 --> n2
    n2 --> n3
"#
    );
    assert_eq!(
        graph.dot(),
        r#"digraph "line" {
    compound=true; fontname="sans-serif";
    node [shape=box, style=rounded, fontname="sans-serif"];
    edge [fontname="sans-serif"];
    n0 [label="start", shape=oval];
    n1 [label="one"];
    n2 [label="two"];
    n3 [label="end", shape=oval];
    n0 -> n1;
    n1 -> n2;
    n2 -> n3;
}
"#
    );
}

/// One of everything: a start branch, a loop on itself and one of two nodes, sends, a join, a
/// command, a handler, a deferred node.
fn everything() -> Graph<S> {
    let guarded = Policy {
        on_error: Some("rescue".into()),
        ..Policy::default()
    };
    graph("all")
        .node("loop", node)
        .node("left", node)
        .node("right", node)
        .node("both", node)
        .each(EACH, each)
        .node("jump", jump)
        .node("rescue", node)
        .node("late", node)
        .start_branch(|_| "loop", ["loop", "left", END])
        .branch("loop", |_| END, ["loop", "left", "right", EACH.name(), END])
        .join(["left", "right"], "both")
        .edge("both", "jump")
        .edge(EACH, ["late", "jump"])
        .commands("jump", ["loop", END, "loop"])
        .policy("left", guarded)
        .edge("rescue", "late")
        .deferred("late")
        .end("late")
        .build()
        .unwrap()
}

// 23.
#[test]
fn every_kind_of_edge_is_drawn_in_its_own_way_loops_included() {
    assert_eq!(
        everything().mermaid(),
        r#"flowchart TD
    n0(["start"])
    n1["loop"]
    n2["left"]
    n3["right"]
    n4["both"]
    n5["each"]
    n6["jump"]
    n7["rescue"]
    n8["late"]
    n9(["end"])
    n0 -.-> n1
    n0 -.-> n2
    n0 -.-> n9
    n1 -.-> n1
    n1 -.-> n2
    n1 -.-> n3
    n1 -.-> n5
    n1 -.-> n9
    n2 ==> n4
    n2 -.->|"error"| n7
    n3 ==> n4
    n4 --> n6
    n5 --> n6
    n5 --> n8
    n6 -.-> n1
    n6 -.-> n9
    n7 --> n8
    n8 --> n9
"#
    );
    assert_eq!(
        everything().dot(),
        r#"digraph "all" {
    compound=true; fontname="sans-serif";
    node [shape=box, style=rounded, fontname="sans-serif"];
    edge [fontname="sans-serif"];
    n0 [label="start", shape=oval];
    n1 [label="loop"];
    n2 [label="left"];
    n3 [label="right"];
    n4 [label="both"];
    n5 [label="each"];
    n6 [label="jump"];
    n7 [label="rescue"];
    n8 [label="late"];
    n9 [label="end", shape=oval];
    n0 -> n1 [style=dashed];
    n0 -> n2 [style=dashed];
    n0 -> n9 [style=dashed];
    n1 -> n1 [style=dashed];
    n1 -> n2 [style=dashed];
    n1 -> n3 [style=dashed];
    n1 -> n5 [style=dashed];
    n1 -> n9 [style=dashed];
    n2 -> n4 [style=bold];
    n2 -> n7 [style=dotted, label="error"];
    n3 -> n4 [style=bold];
    n4 -> n6;
    n5 -> n6;
    n5 -> n8;
    n6 -> n1 [style=dashed];
    n6 -> n9 [style=dashed];
    n7 -> n8;
    n8 -> n9;
}
"#
    );
}

fn nested() -> Graph<S> {
    let deep = graph("deep")
        .node("leaf", node)
        .start("leaf")
        .end("leaf")
        .build()
        .unwrap();
    let sub = graph("sub")
        .node("own", node)
        .node("deep", deep.shared())
        .start("own")
        .branch("own", |_| END, ["deep", END])
        .end("deep")
        .build()
        .unwrap();
    graph("outer")
        .node("before", node)
        .node("sub", sub.mapped(|_: &S| S::update(), |_: S| S::update()))
        .start("before")
        .edge("before", "sub")
        .end("sub")
        .build()
        .unwrap()
}

// 23.
#[test]
fn a_subgraph_is_drawn_shut_or_open_at_every_level() {
    assert_eq!(
        nested().mermaid(),
        r#"flowchart TD
    n0(["start"])
    n1["before"]
    n2[["sub"]]
    n3(["end"])
    n0 --> n1
    n1 --> n2
    n2 --> n3
"#
    );
    assert_eq!(
        nested().drawing().mermaid(true),
        r#"flowchart TD
    n0(["start"])
    n1["before"]
    subgraph n2["sub"]
        n2_n0(["start"])
        n2_n1["own"]
        subgraph n2_n2["deep"]
            n2_n2_n0(["start"])
            n2_n2_n1["leaf"]
            n2_n2_n2(["end"])
            n2_n2_n0 --> n2_n2_n1
            n2_n2_n1 --> n2_n2_n2
        end
        n2_n3(["end"])
        n2_n0 --> n2_n1
        n2_n1 -.-> n2_n2
        n2_n1 -.-> n2_n3
        n2_n2 --> n2_n3
    end
    n3(["end"])
    n0 --> n1
    n1 --> n2
    n2 --> n3
"#
    );
    assert_eq!(
        nested().drawing().dot(true),
        r#"digraph "outer" {
    compound=true; fontname="sans-serif";
    node [shape=box, style=rounded, fontname="sans-serif"];
    edge [fontname="sans-serif"];
    n0 [label="start", shape=oval];
    n1 [label="before"];
    subgraph "cluster_n2" {
        label="sub"; style=rounded;
        n2_n0 [label="start", shape=oval];
        n2_n1 [label="own"];
        subgraph "cluster_n2_n2" {
            label="deep"; style=rounded;
            n2_n2_n0 [label="start", shape=oval];
            n2_n2_n1 [label="leaf"];
            n2_n2_n2 [label="end", shape=oval];
            n2_n2_n0 -> n2_n2_n1;
            n2_n2_n1 -> n2_n2_n2;
        }
        n2_n3 [label="end", shape=oval];
        n2_n0 -> n2_n1;
        n2_n1 -> n2_n2_n0 [lhead="cluster_n2_n2", style=dashed];
        n2_n1 -> n2_n3 [style=dashed];
        n2_n2_n2 -> n2_n3 [ltail="cluster_n2_n2"];
    }
    n3 [label="end", shape=oval];
    n0 -> n1;
    n1 -> n2_n0 [lhead="cluster_n2"];
    n2_n3 -> n3 [ltail="cluster_n2"];
}
"#
    );
}

#[test]
fn names_that_mean_something_to_a_drawing_language_are_drawn_as_text() {
    let graph = graph("a \"graph\"")
        .node("say \"<hi>\" & \\ #1;", node)
        .node("end", node)
        .start("say \"<hi>\" & \\ #1;")
        .edge("say \"<hi>\" & \\ #1;", "end")
        .end("end")
        .build()
        .unwrap();
    assert_eq!(
        graph.mermaid(),
        r#"flowchart TD
    n0(["start"])
    n1["say #quot;#lt;hi#gt;#quot; #amp; \ #35;1;"]
    n2["end"]
    n3(["end"])
    n0 --> n1
    n1 --> n2
    n2 --> n3
"#
    );
    assert_eq!(
        graph.dot(),
        r#"digraph "a \"graph\"" {
    compound=true; fontname="sans-serif";
    node [shape=box, style=rounded, fontname="sans-serif"];
    edge [fontname="sans-serif"];
    n0 [label="start", shape=oval];
    n1 [label="say \"<hi>\" & \\ #1;"];
    n2 [label="end"];
    n3 [label="end", shape=oval];
    n0 -> n1;
    n1 -> n2;
    n2 -> n3;
}
"#
    );
}

// SERVER-NEEDS 14.
#[test]
fn a_drawing_is_data_with_subgraphs_inside_their_nodes() {
    let plain = |name: &str| json!({"name": name, "deferred": false, "each": false});
    let edge = |from: &str, to: &str, kind: &str| json!({"from": from, "to": to, "kind": kind});
    let mut deep = plain("deep");
    deep["inside"] = json!({
        "name": "deep",
        "nodes": [plain(START), plain("leaf"), plain(END)],
        "edges": [edge(START, "leaf", "fixed"), edge("leaf", END, "fixed")],
    });
    let mut sub = plain("sub");
    sub["inside"] = json!({
        "name": "sub",
        "nodes": [plain(START), plain("own"), deep, plain(END)],
        "edges": [
            edge(START, "own", "fixed"),
            edge("own", "deep", "conditional"),
            edge("own", END, "conditional"),
            edge("deep", END, "fixed"),
        ],
    });
    assert_eq!(
        serde_json::to_value(nested().drawing()).unwrap(),
        json!({
            "name": "outer",
            "nodes": [plain(START), plain("before"), sub, plain(END)],
            "edges": [
                edge(START, "before", "fixed"),
                edge("before", "sub", "fixed"),
                edge("sub", END, "fixed"),
            ],
        })
    );
    let drawing = everything().drawing();
    let marked = |test: fn(&DrawnNode) -> bool| -> Vec<Name> {
        let found = drawing.nodes.iter().filter(|n| test(n));
        found.map(|n| n.name.clone()).collect()
    };
    assert_eq!(marked(|n| n.deferred), ["late"]);
    assert_eq!(marked(|n| n.each), ["each"]);
    let kinds: Vec<_> = drawing.edges.iter().map(|e| e.kind).collect();
    assert_eq!(kinds.iter().filter(|k| **k == EdgeKind::Join).count(), 2);
    assert_eq!(kinds.iter().filter(|k| **k == EdgeKind::OnError).count(), 1);
}

#[test]
fn labels_are_written_on_edges_of_every_kind_as_text() {
    let guarded = Policy {
        on_error: Some("rescue".into()),
        ..Policy::default()
    };
    let graph = graph("told")
        .node("ask", node)
        .node("rescue", node)
        .node("left", node)
        .node("right", node)
        .node("both", node)
        .start_branch(|_| "ask", ["ask", END])
        .branch("ask", |_| END, ["left", "right", END])
        .policy("ask", guarded)
        .join(["left", "right"], "both")
        .end(["both", "rescue"])
        .label(START, "ask", "has a \"task\"")
        .label("ask", END, "answers <at once> | stops")
        .label("ask", "rescue", "fails")
        .label("left", "both", "when done")
        .label("both", END, "at last")
        .build()
        .unwrap();
    let mermaid = graph.mermaid();
    let (_, edges) = mermaid.split_once("n6([\"end\"])\n").unwrap();
    assert_eq!(
        edges,
        r##"    n0 -.->|"has a #quot;task#quot;"| n1
    n0 -.-> n6
    n1 -.-> n3
    n1 -.-> n4
    n1 -.->|"answers #lt;at once#gt; | stops"| n6
    n1 -.->|"fails"| n2
    n2 --> n6
    n3 ==>|"when done"| n5
    n4 ==> n5
    n5 -->|"at last"| n6
"##
    );
    let dot = graph.dot();
    for line in [
        r#"    n0 -> n1 [style=dashed, label="has a \"task\""];"#,
        r#"    n1 -> n2 [style=dotted, label="fails"];"#,
        r#"    n3 -> n5 [style=bold, label="when done"];"#,
        r#"    n5 -> n6 [label="at last"];"#,
    ] {
        assert!(dot.contains(line), "{line}\n{dot}");
    }
    let json = serde_json::to_value(graph.drawing()).unwrap();
    assert_eq!(
        json["edges"][4],
        json!({"from": "ask", "to": END, "kind": "conditional", "label": "answers <at once> | stops"})
    );
}
