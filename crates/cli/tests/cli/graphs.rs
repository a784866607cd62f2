//! Pictures of graphs: what goes to standard output, what to a file, and what is refused.

use crate::sandbox::Sandbox;

const SVG: &str = include_str!("goldens/support.svg");
const ASCII: &str = include_str!("goldens/support.txt");

#[test]
fn the_support_agent_looks_as_it_should() {
    let sandbox = Sandbox::new();
    let drawn = |format| sandbox.run(&["graph", "support", "--format", format]).out;
    assert_eq!(drawn("ascii"), ASCII);
    assert_eq!(drawn("svg"), SVG);
}

#[test]
fn a_file_gets_the_form_that_its_name_says() {
    let sandbox = Sandbox::new();
    let table: [(&str, &[u8]); 6] = [
        ("graph.svg", b"<svg "),
        ("graph.PNG", b"\x89PNG"),
        ("graph.txt", ASCII.as_bytes()),
        ("graph.mmd", b"flowchart TD"),
        ("graph.dot", b"digraph "),
        ("graph.gv", b"digraph "),
    ];
    for (name, begins) in table {
        let ended = sandbox.run(&["graph", "support", "-o", name]);
        assert_eq!(
            (ended.code, ended.out.as_str(), ended.err.as_str()),
            (0, "", ""),
            "{name}"
        );
        let written = std::fs::read(sandbox.path(name)).unwrap();
        assert!(written.starts_with(begins), "{name}");
    }
    let ended = sandbox.run(&[
        "graph", "support", "--xray", "--format", "svg", "-o", "picture",
    ]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(
        std::fs::read_to_string(sandbox.path("picture")).unwrap(),
        SVG
    );
}

#[test]
fn a_png_goes_through_a_pipe_in_the_size_that_was_asked_for() {
    let sandbox = Sandbox::new();
    let width = |scale: &[&str]| {
        let args = [&["graph", "support", "--format", "png"], scale].concat();
        let out = sandbox.command(&args).output().unwrap();
        assert!(out.status.success() && out.stdout.starts_with(b"\x89PNG\r\n\x1a\n"));
        u32::from_be_bytes(out.stdout[16..20].try_into().unwrap())
    };
    assert_eq!(width(&[]), width(&["--scale", "1"]) * 2);
}

#[test]
fn contradictions_and_files_that_cannot_be_written_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.file("kept.svg", "mine");
    sandbox.file("data/paraph/paraph.db", "the store");
    let table: [(&[&str], &str); 7] = [
        (
            &["--format", "png", "-o", "kept.svg"],
            "error: --format png and the ending `.svg` of kept.svg say two different things\n",
        ),
        (
            &["-o", "kept"],
            "error: kept: its ending does not say in which form to draw (known: .svg .png .txt .mmd .mermaid .dot .gv); add --format\n",
        ),
        (
            &["--scale", "2", "-o", "kept.svg"],
            "error: --scale is for PNG: add --format png\n",
        ),
        (
            &["--scale", "9", "-o", "kept.png"],
            "error: the scale 9 is not between 0.1 and 8\n",
        ),
        (
            &["--format", "svg", "-o", "data/paraph/paraph.db"],
            "error: --output: data/paraph/paraph.db belongs to the store, and stays as it is\n",
        ),
        (
            &["-o", "no/folder/graph.svg"],
            "error: --output: no/folder/graph.svg: ",
        ),
        (
            &["-o", "no/.svg", "--format", "dot"],
            "error: --output: no/.svg: ",
        ),
    ];
    for (args, expected) in table {
        let args = [&["graph", "support"], args].concat();
        let ended = sandbox.run(&args);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{args:?}");
        assert!(ended.err.starts_with(expected), "{args:?}: {}", ended.err);
    }
    for (name, text) in [("kept.svg", "mine"), ("data/paraph/paraph.db", "the store")] {
        assert_eq!(std::fs::read_to_string(sandbox.path(name)).unwrap(), text);
    }
    let left = std::fs::read_dir(sandbox.path("")).unwrap().count();
    assert_eq!(left, 2, "nothing else was written");
}

#[test]
fn xray_opens_the_agents_that_an_agent_calls() {
    let sandbox = Sandbox::new();
    let text = "name = \"lead\"\nprompt = \"Lead.\"\n[tools]\nagents = [\"clerk\"]\n\
                [agents.clerk]\nabout = \"Looks things up\"\nprompt = \"Look it up.\"\n";
    sandbox.file("lead.toml", text);
    let drawn = |args: &[&str]| {
        let ended = sandbox.run(&[&["graph", "lead.toml"], args].concat());
        assert_eq!((ended.code, ended.err.as_str()), (0, ""));
        ended.out
    };
    let (shut, open) = (drawn(&[]), drawn(&["--xray"]));
    assert!(
        shut.contains("[[\"clerk\"]]") && !shut.contains("subgraph"),
        "{shut}"
    );
    assert!(
        open.contains("subgraph n3[\"clerk\"]\n        n3_n0([\"start\"])"),
        "{open}"
    );
    for text in [&shut, &open] {
        assert!(
            text.contains("n2 -.->|\"calls\"| n3\n    n3 --> n2\n"),
            "{text}"
        );
    }
    let (shut, open) = (
        drawn(&["--format", "ascii"]),
        drawn(&["--format", "ascii", "--xray"]),
    );
    assert!(shut.contains("clerk (subgraph)") && !open.contains("clerk (subgraph)"));
    assert_eq!(
        (
            shut.matches("( start )").count(),
            open.matches("( start )").count()
        ),
        (1, 2)
    );
}
