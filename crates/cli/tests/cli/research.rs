//! The research agent: rehearsed, over folders, against stand-ins for the web, with people, killed, and measured.

use crate::sandbox::Sandbox;
use crate::stand_in::tavily;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const QUESTION: &str = "How much of the honey harvest did the mites cost?";

/// A folder of documents, and some files that are none.
fn notes(sandbox: &Sandbox) {
    std::fs::create_dir_all(sandbox.path("notes/sub")).unwrap();
    sandbox
        .file(
            "notes/mites.md",
            "# Mites\n\nThe mites cost 31 percent of the honey harvest in the dry year.\n\nNobody counted in the wet one.",
        )
        .file(
            "notes/sub/harvest.txt",
            "The honey harvest was 412 kilograms in the dry year. Without mites it would have been more.",
        )
        .file("notes/picture.png", "not a text");
}

#[test]
fn the_rehearsal_needs_nothing_and_shows_who_looks_what_up() {
    let sandbox = Sandbox::new();
    let began = Instant::now();
    let ended = sandbox.run(&["run", "research", "--model", "rehearsal"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(began.elapsed() < Duration::from_secs(60));
    for part in [
        "# Which measures against made-up answers",
        "[1]",
        "## Sources",
        "local:",
        "by the rehearsal (rules, and no model), in run ",
    ] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    for line in [
        "rehearsal: the documents are a built-in set",
        "  +- r1  researching Which measures against made-up answers",
        "  |  r1  searching ",
        "  |  r1  reading local:",
        "  |  r1  compressing",
        "  `- r1  done: ",
        "phase  attacking: draft 1",
        "route  conduct_research -> ",
        "route  context_pruner -> ",
    ] {
        assert!(ended.err.contains(line), "{line}: {}", ended.err);
    }
}

#[test]
fn a_folder_of_documents_is_searched_and_cited_and_the_report_written() {
    let sandbox = Sandbox::new();
    notes(&sandbox);
    let run = |file: &str| {
        let args = [
            "run",
            "research",
            QUESTION,
            "--model",
            "rehearsal",
            "--sources",
            "notes",
            "-o",
            file,
        ];
        let ended = sandbox.run(&args);
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert!(
            ended.err.contains(&format!("report written to {file}")),
            "{}",
            ended.err
        );
        (ended, std::fs::read_to_string(sandbox.path(file)).unwrap())
    };
    let (ended, markdown) = run("report.md");
    assert!(
        markdown.contains("31 percent of the honey harvest in the dry year [1]"),
        "{markdown}"
    );
    assert!(markdown.contains("local:mites.md"));
    assert_eq!(ended.out.trim_end(), markdown.trim_end());
    // What is no text is said, and where the folder is, stays out of the report.
    assert!(
        ended.err.contains("picture.png") || ended.err.contains("1 "),
        "{}",
        ended.err
    );
    assert!(!markdown.contains(&sandbox.path("notes").display().to_string()));
    let (_, html) = run("report.html");
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("31 percent"));
    let (_, text) = run("report.json");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["figures"]["fabricated_refused"], 0);
    assert_eq!(report["references"][0]["url"], "local:mites.md");
    assert_eq!(
        report["references"][0]["sha256"].as_str().map(str::len),
        Some(64)
    );
}

#[test]
fn the_result_object_has_the_report_and_all_calls() {
    let sandbox = Sandbox::new();
    notes(&sandbox);
    let ended = sandbox.run(&[
        "run",
        "research",
        QUESTION,
        "--model",
        "rehearsal",
        "--sources",
        "notes",
        "--json",
        "--quiet",
    ]);
    let result = ended.json();
    assert_eq!(
        (result["status"].as_str(), result["stop_reason"].as_str()),
        (Some("ok"), Some("success"))
    );
    assert!(result["answer"].as_str().unwrap().contains("[1]"));
    assert_eq!(result["report"]["figures"]["researchers"], 3);
    let tools: Vec<_> = result["trace"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["tool"].as_str().unwrap())
        .collect();
    for tool in [
        "conduct_research",
        "web_search",
        "fetch_page",
        "think",
        "research_complete",
    ] {
        assert!(tools.contains(&tool), "{tool}: {tools:?}");
    }
}

#[test]
fn mistakes_are_named_before_anything_runs() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("empty")).unwrap();
    let table: [(&[&str], &str); 11] = [
        (&["--sources", "nowhere"], "--sources: nowhere: "),
        (&["--sources", "empty"], "--sources: "),
        (&["--breadth", "0"], "`breadth` is 0; it can be 1 to 64"),
        (&["--depth", "99"], "`depth` is 99; it can be 1 to 50"),
        (
            &["--checkpoint-every", "0"],
            "`checkpoint_every` is 0; it can be 1 to 1000",
        ),
        (&["--checkpoint-cost", "much"], "--checkpoint-cost: "),
        (
            &["--role", "judge=rehearsal"],
            "`judge` is no part of a research run",
        ),
        (&["--role", "writer=nobody:x"], "--role writer: "),
        (
            &["-o", "report.pdf"],
            "a report ends in .md, .html or .json",
        ),
        (&["-o", "nowhere/report.md"], "there is no folder nowhere"),
        (&["--breadth", "many"], "many"),
    ];
    for (more, expected) in table {
        let args = [&["run", "research", QUESTION, "--model", "rehearsal"], more].concat();
        let ended = sandbox.run(&args);
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (2, ""),
            "{more:?}: {}",
            ended.err
        );
        assert!(ended.err.contains(expected), "{more:?}: {}", ended.err);
    }
    let other = sandbox.run(&[
        "run",
        "support",
        "--sources",
        "notes",
        "--model",
        "rehearsal",
    ]);
    assert_eq!(other.code, 2);
    assert!(
        other
            .err
            .contains("--sources is an option of research, not of `support`"),
        "{}",
        other.err
    );
}

#[test]
fn a_person_is_asked_after_so_many_rounds_and_answers_from_another_process() {
    let sandbox = Sandbox::new();
    notes(&sandbox);
    let args = [
        "run",
        "research",
        QUESTION,
        "--model",
        "rehearsal",
        "--sources",
        "notes",
        "--thread",
        "bees",
        "--checkpoint-every",
        "1",
    ];
    let first = sandbox.run(&args);
    assert_eq!(first.code, 5, "{}", first.err);
    for part in [
        "After 1 of 6 rounds",
        "Looked into:",
        "--answer continue",
        "--answer stop",
    ] {
        assert!(first.out.contains(part), "{part}: {}", first.out);
    }
    let more = sandbox.run(&[
        "runs",
        "resume",
        "--thread",
        "bees",
        "--answer",
        "Look at the wet year",
        "--json",
    ]);
    assert_eq!(more.code, 5, "{}", more.err);
    let waits = more.json();
    assert_eq!(
        (&waits["status"], &waits["questions"][0]["name"]),
        (&json!("waiting"), &json!("direction"))
    );
    assert_eq!(waits["questions"][0]["question"]["round"], 2);
    let last = sandbox.run(&[
        "runs", "resume", "--thread", "bees", "--answer", "stop", "-o", "bees.md",
    ]);
    assert_eq!(last.code, 0, "{}", last.err);
    assert!(
        last.out
            .contains("a person stopped the research after 2 of 6 rounds"),
        "{}",
        last.out
    );
    assert!(sandbox.path("bees.md").exists());
    let again = sandbox.run(&["runs", "resume", "--thread", "bees", "--answer", "stop"]);
    assert!(again.err.contains("was over already"), "{}", again.err);
}

#[test]
fn the_web_is_searched_by_its_service_and_what_fails_is_said() {
    let sandbox = Sandbox::new();
    let hit = tavily::hit(
        "Bees",
        "https://bees.example/mites",
        "The mites cost 31 percent of the honey harvest.",
    );
    let service = tavily::start(vec![hit]);
    let url = service.url();
    let env = [
        ("TAVILY_API_KEY", "tvly-stand-in"),
        ("TAVILY_BASE_URL", &*url),
    ];
    // Parts that are rehearsed, and a supervisor that is not: then the web is searched, and not the built-in documents.
    let script = sandbox.lines(&[
        &json!({"tool_calls": [{"id": "a", "name": "conduct_research", "arguments": {"topic": QUESTION}}]}).to_string(),
        &json!({"tool_calls": [{"id": "b", "name": "research_complete", "arguments": {}}]}).to_string(),
        &json!({"content": "Enough."}).to_string(),
    ]);
    let args = [
        "run",
        "research",
        QUESTION,
        "--model",
        &script,
        "--json",
        "--quiet",
        "--role",
        "researcher=rehearsal",
        "--role",
        "compressor=rehearsal",
        "--role",
        "red_team=rehearsal",
        "--role",
        "writer=rehearsal",
    ];
    let ended = sandbox.run_with(&args, &env, "");
    let result = ended.json();
    let report = &result["report"];
    assert_eq!(
        report["references"][0]["url"], "https://bees.example/mites",
        "{result}"
    );
    // The page itself cannot be had from here, and the run goes on without it.
    let page = result["trace"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["tool"] == "fetch_page")
        .unwrap();
    assert_eq!(
        (&page["ok"], result["stop_reason"].as_str()),
        (&json!(false), Some("success"))
    );
}

#[test]
fn the_evaluation_finds_nothing_fabricated() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&["eval", "research", "--model", "rehearsal"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.contains("\nfabricated: 0\n"), "{}", ended.out);
    assert!(
        ended.out.contains("citation precision: 100.0 %"),
        "{}",
        ended.out
    );
    let some = sandbox.run(&[
        "eval",
        "research",
        "--model",
        "rehearsal",
        "--question",
        "overlap",
        "--json",
    ]);
    let measured = some.json();
    assert_eq!(
        (
            &measured["total"]["reports"],
            &measured["total"]["fabricated"]
        ),
        (&json!(1), &json!(0))
    );
    let wrong = sandbox.run(&[
        "eval",
        "research",
        "--model",
        "rehearsal",
        "--question",
        "overlop",
    ]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.err.contains("--question: there is no `overlop`"),
        "{}",
        wrong.err
    );
}

#[test]
fn the_graph_is_drawn_with_its_researchers_inside() {
    let sandbox = Sandbox::new();
    let closed = sandbox.run(&["graph", "research", "--format", "mermaid"]);
    let open = sandbox.run(&["graph", "research", "--format", "mermaid", "--xray"]);
    for node in [
        "write_brief",
        "red_team",
        "context_pruner",
        "conduct_research",
        "final_report",
    ] {
        assert!(closed.out.contains(node), "{node}");
    }
    assert!(!closed.out.contains("compress_research") && open.out.contains("compress_research"));
}
