//! Research over an MCP server: reviewed, searched, cited, killed and gone on with, and what is refused.
//!
//! The server is the library of `paraph-tools`, in Python. Without Python 3 these tests skip themselves and say so, or fail
//! where `PARAPH_REQUIRE_SERVICES=1`.

use crate::rude::program;
use crate::sandbox::{Ended, Sandbox};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const QUESTION: &str = "How much of the honey harvest did the mites cost?";

/// An agent's file with such a server over a folder of two documents.
fn library(sandbox: &Sandbox) -> Option<String> {
    let python = program("python3")?;
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/tests/peers/library_server.py");
    sandbox
        .file(
            "shop/books/mites.md",
            "# Mites\n\nThe mites cost 31 percent of the honey harvest in the dry year.",
        )
        .file(
            "shop/books/harvest.md",
            "# Harvest\n\nThe honey harvest was 412 kilograms in the dry year. Without mites it would have been more.",
        );
    Some(format!(
        "name = \"sources\"\nprompt = \"Nobody speaks here.\"\n[mcp.library]\ncommand = {python:?}\nargs = [{script:?}, \"books\", \
         \"usual\", \"searches\"]\nlevels = {{ search = \"read\", fetch = \"read\" }}\n"
    ))
}

/// The same with what `doctor` printed of it.
fn reviewed(sandbox: &Sandbox, file: &str) -> Option<()> {
    let settings = library(sandbox)?;
    sandbox.file(file, &settings);
    let examined = sandbox.run(&["doctor", file, "--online"]);
    let at = examined
        .out
        .find("\n[mcp.")
        .unwrap_or_else(|| panic!("{}", examined.out));
    sandbox.file(file, &format!("{settings}{}", &examined.out[at..]));
    Some(())
}

fn research(sandbox: &Sandbox, sources: &str, more: &[&str]) -> Ended {
    let args = [
        "run",
        "research",
        QUESTION,
        "--model",
        "rehearsal",
        "--sources",
        sources,
    ];
    sandbox.run(&[&args, more].concat())
}

#[test]
fn a_server_is_searched_once_it_is_reviewed_and_its_documents_are_cited() {
    let sandbox = Sandbox::new();
    let file = "shop/sources.toml";
    let Some(settings) = library(&sandbox) else {
        return;
    };
    sandbox.file(file, &settings);
    let refused = research(&sandbox, file, &[]);
    assert_eq!(
        (refused.code, refused.out.as_str()),
        (2, ""),
        "{}",
        refused.err
    );
    let why = "`library__search` is disabled: nobody has reviewed what the server says of it; a person has to review it; \
               paraph doctor FILE --online prints what to review";
    assert!(refused.err.contains(why), "{}", refused.err);
    reviewed(&sandbox, file);
    for sources in [file, "shop/sources.toml#library"] {
        let ended = research(&sandbox, sources, &["--json"]);
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert!(
            ended.err.contains("sources: the MCP server `library` of "),
            "{}",
            ended.err
        );
        let report = ended.json()["report"].clone();
        assert_eq!(
            report["references"][0]["url"], "https://library.example/mites.md",
            "{report}"
        );
        assert_eq!(report["figures"]["fabricated_refused"], 0);
        let body = report["body"].as_str().unwrap();
        assert!(
            body.contains("31 percent of the honey harvest in the dry year [1]"),
            "{body}"
        );
        // What a server says of its tools reaches no model.
        assert!(!ended.out.contains("PRAISE"), "{}", ended.out);
    }
}

#[test]
fn a_run_that_goes_on_searches_the_same_server() {
    let sandbox = Sandbox::new();
    let file = "shop/sources.toml";
    let Some(()) = reviewed(&sandbox, file) else {
        return;
    };
    let first = research(
        &sandbox,
        file,
        &["--thread", "bees", "--checkpoint-every", "1"],
    );
    assert_eq!(first.code, 5, "{}", first.err);
    let text = std::fs::read_to_string(sandbox.path(file)).unwrap();
    let resume = ["runs", "resume", "--thread", "bees", "--answer", "stop"];
    // Other settings are another server.
    sandbox.file(file, &text.replace("\"books\"", "\"others\""));
    let refused = sandbox.run(&resume);
    assert_eq!(refused.code, 2, "{}", refused.err);
    let why = "has other settings than when the run began: put them back to go on with the run, or ask again";
    assert!(refused.err.contains(why), "{}", refused.err);
    // What concerns others in the file does not matter.
    sandbox.file(file, &text.replace("Nobody speaks here.", "Nobody speaks."));
    let last = sandbox.run(&resume);
    assert_eq!(last.code, 0, "{}", last.err);
    assert!(
        last.out.contains("<https://library.example/mites.md>"),
        "{}",
        last.out
    );
}

#[test]
fn servers_that_cannot_be_searched_are_named_before_anything_runs() {
    let sandbox = Sandbox::new();
    sandbox.file("none.toml", "name = \"none\"\nprompt = \"x\"\n").file(
        "two.toml",
        "name = \"two\"\nprompt = \"x\"\n[mcp.books]\ncommand = \"a\"\n[mcp.maps]\ncommand = \"b\"\n",
    );
    sandbox.file(
        "odd.toml",
        "name = \"odd\"\nprompt = \"x\"\n[mcp.books]\ncommand = \"a\"\nsources = { search_args = { q = \"words\" }, pages = \"x\" }\n",
    );
    for (sources, why) in [
        ("gone.toml", "--sources: gone.toml: "),
        (
            "none.toml",
            "--sources: none.toml has no MCP server; [mcp.NAME] describes one",
        ),
        (
            "two.toml",
            "--sources: two.toml has the MCP servers books, maps: say which one is searched, as two.toml#books",
        ),
        (
            "two.toml#book",
            "--sources: two.toml has no MCP server `book`; did you mean `books`?",
        ),
        (
            "odd.toml",
            "`mcp.books.sources` has no key `pages`; did you mean `page`?",
        ),
    ] {
        let refused = research(&sandbox, sources, &[]);
        assert_eq!(
            (refused.code, refused.out.as_str()),
            (2, ""),
            "{sources}: {}",
            refused.err
        );
        assert!(refused.err.contains(why), "{sources}: {}", refused.err);
    }
    let checked = sandbox.run(&["check", "odd.toml"]);
    let why = "odd.toml:3:6: the MCP server `books`: `sources.search_args` says nowhere where `{query}` goes";
    assert_eq!(checked.code, 2);
    let said = format!("{}{}", checked.out, checked.err);
    assert!(said.contains(why), "{said}");
}

/// How many runs are killed, at moments spread over the time that one takes.
const KILLS: u32 = 50;

/// The searches of this question, by the rehearsal.
const SEARCHES: usize = 6;

fn lines(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().count()
}

/// The searches of a thread that are known to have ended.
fn ended(sandbox: &Sandbox, thread: &str) -> usize {
    let told = sandbox.run(&["runs", "events", "--thread", thread]).out;
    let is_search =
        |line: &&str| line.contains("\"tool_ended\"") && line.contains("\"web_search\"");
    told.lines().filter(is_search).count()
}

/// Kills a run at this moment and goes on with it: no search is made again whose result was there.
fn killed_and_gone_on_with(moment: Duration) {
    let sandbox = Sandbox::new();
    let (file, counted) = ("shop/sources.toml", sandbox.path("shop/searches"));
    if reviewed(&sandbox, file).is_none() {
        return;
    }
    let args = [
        "run",
        "research",
        QUESTION,
        "--model",
        "rehearsal",
        "--sources",
        file,
        "--thread",
        "bees",
        "--quiet",
    ];
    let mut child = sandbox
        .command(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(moment);
    let _ = child.kill();
    let _ = child.wait();
    let known = ended(&sandbox, "bees");
    let before = lines(&counted);
    let shown = sandbox.run(&["runs", "resume", "--thread", "bees", "--json", "--quiet"]);
    if shown.code == 2 {
        // Killed before the run was written down: there is nothing to go on with.
        assert!(
            ["no thread", "no run", "there is no store"]
                .iter()
                .any(|none| shown.err.contains(none)),
            "{}",
            shown.err
        );
        assert_eq!((known, before), (0, 0), "{}", shown.err);
        return;
    }
    let result = shown.json();
    assert_eq!(
        result["stop_reason"], "success",
        "killed after {moment:?}: {}",
        shown.err
    );
    let rows = result["trace"].as_array().unwrap();
    let searches = rows
        .iter()
        .filter(|row| row["tool"] == "web_search")
        .count();
    let again = lines(&counted) - before;
    assert_eq!(searches, SEARCHES, "killed after {moment:?}");
    assert!(
        again + known <= SEARCHES,
        "killed after {moment:?}: {again} searches though {known} had ended"
    );
}

/// The server that is searched writes down each search, so what is counted is what really reached it.
#[test]
fn a_killed_run_goes_on_and_repeats_no_search() {
    let sandbox = Sandbox::new();
    let file = "shop/sources.toml";
    if reviewed(&sandbox, file).is_none() {
        return;
    }
    let began = Instant::now();
    let whole = research(&sandbox, file, &["--quiet"]);
    let took = began.elapsed();
    assert_eq!(
        (whole.code, lines(&sandbox.path("shop/searches"))),
        (0, SEARCHES),
        "{}",
        whole.err
    );
    let next = AtomicU32::new(0);
    let workers = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 8));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= KILLS {
                        return;
                    }
                    killed_and_gone_on_with(took * n / KILLS);
                }
            });
        }
    });
}
