//! The MCP client against servers that others wrote: the reference servers of npm, and the Python SDK.
//!
//! They are fetched by `.ci/run` below `target/mcp-peers`. Where they are missing these tests skip themselves and say
//! so, or fail where `PARAPH_REQUIRE_SERVICES=1`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![cfg(target_os = "linux")]

mod rude;
mod stand_in;

use paraph_gateway::Level;
use paraph_tools::{McpOptions, McpProtocol, McpServer};
use rude::{Run, Told, connect, message, missing, outbound, program, refused};
use serde_json::json;
use stand_in::{Answer, StandIn};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where `.ci/run` puts what it fetches.
fn fetched(path: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let file = target.join("mcp-peers").join(path);
    if file.exists() {
        return Some(file);
    }
    missing("no MCP servers below `target/mcp-peers`: `.ci/run` fetches them");
    None
}

fn reading(name: &str, command: &Path, args: &[&str]) -> McpServer {
    McpServer {
        name: name.to_owned(),
        command: Some(command.to_str().unwrap().to_owned()),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        levels: [("*".to_owned(), Level::Read)].into(),
        trust_first_sight: true,
        ..McpServer::default()
    }
}

/// One of npm's reference servers.
fn node(name: &str, args: &[&str]) -> Option<McpServer> {
    let script = format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
    let script = fetched(&script)?;
    let mut all = vec![script.to_str().unwrap()];
    all.extend(args);
    Some(reading(name, &program("node")?, &all))
}

fn python(args: &[&str]) -> Option<McpServer> {
    let python = fetched("venv/bin/python")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/python_server.py");
    let mut all = vec![script.to_str().unwrap()];
    all.extend(args);
    Some(reading("demo", &python, &all))
}

#[tokio::test]
async fn everything_lists_calls_tells_progress_and_fails() {
    let Some(server) = node("everything", &["stdio"]) else {
        return;
    };
    let client = connect(&server).await;
    assert_eq!(client.protocol().await.as_deref(), Some("2025-11-25"));
    let run = Run::of(client.tools()).await;
    assert_eq!(
        run.call("everything__echo", json!({"message": "hi"})).await,
        "Echo: hi"
    );
    let sum = run
        .call("everything__get-sum", json!({"a": 2, "b": 40}))
        .await;
    assert!(sum.as_str().unwrap().contains("42"), "{sum}");
    let long = json!({"duration": 1, "steps": 4});
    let told = Told::default();
    let long = run
        .call_told("everything__trigger-long-running-operation", long, &told)
        .await;
    assert!(long.as_str().unwrap().contains("completed"), "{long}");
    let told = told.reports();
    assert!(!told.is_empty());
    assert!(
        told.iter()
            .all(|(tool, _)| tool == "everything__trigger-long-running-operation"),
        "{told:?}"
    );
    let read = run.call("everything__echo", json!({"message": 7})).await;
    assert_eq!(read["error"], "tool_bad_args:everything__echo");
    client.close().await;
}

#[tokio::test]
async fn everything_is_cancelled_and_serves_on() {
    let Some(mut server) = node("everything", &["stdio"]) else {
        return;
    };
    server.timeout_seconds = Some(1.0);
    let client = connect(&server).await;
    let run = Run::of(client.tools()).await;
    let long = json!({"duration": 60, "steps": 60});
    let read = run
        .call("everything__trigger-long-running-operation", long)
        .await;
    assert!(
        message(&read).ends_with("the MCP server `everything` did not answer in 1 seconds"),
        "{read}"
    );
    assert_eq!(
        run.call("everything__echo", json!({"message": "on"})).await,
        "Echo: on"
    );
    client.close().await;
}

#[tokio::test]
async fn the_filesystem_server_reads_in_its_folder_and_refuses_outside() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    std::fs::write(place.join("note.txt"), "what is written here").unwrap();
    let Some(server) = node("filesystem", &[place.to_str().unwrap()]) else {
        return;
    };
    let client = connect(&server).await;
    let run = Run::of(client.tools()).await;
    let at = |path: &str| json!({"path": place.join(path)});
    let read = run.call("filesystem__read_text_file", at("note.txt")).await;
    assert!(read.to_string().contains("what is written here"), "{read}");
    let read = run
        .call("filesystem__read_text_file", json!({"path": "/etc/passwd"}))
        .await;
    assert!(
        message(&read).contains("the MCP server `filesystem`: "),
        "{read}"
    );
    client.close().await;
}

#[tokio::test]
async fn the_memory_server_keeps_what_it_is_told_over_calls() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut server) = node("memory", &[]) else {
        return;
    };
    let file = folder.path().join("memory.jsonl");
    server.env = [(
        "MEMORY_FILE_PATH".to_owned(),
        paraph_tools::Setting::Text(file.to_str().unwrap().to_owned()),
    )]
    .into();
    let client = connect(&server).await;
    let run = Run::of(client.tools()).await;
    let entity =
        json!({"entities": [{"name": "Boston", "entityType": "city", "observations": ["cold"]}]});
    run.call("memory__create_entities", entity).await;
    let read = run
        .call("memory__search_nodes", json!({"query": "Boston"}))
        .await;
    assert!(read.to_string().contains("cold"), "{read}");
    client.close().await;
}

#[tokio::test]
async fn the_python_sdk_is_spoken_to_over_stdio() {
    let Some(server) = python(&["stdio"]) else {
        return;
    };
    let client = connect(&server).await;
    assert_eq!(client.protocol().await.as_deref(), Some("2026-07-28"));
    let run = Run::of(client.tools()).await;
    let sum = run.call("demo__add", json!({"a": 2, "b": 40})).await;
    assert!(sum.to_string().contains("42"), "{sum}");
    let failed = run
        .call("demo__fail", json!({"why": "no such thing"}))
        .await;
    assert!(
        message(&failed).starts_with("`demo__fail` failed: the MCP server `demo`: "),
        "{failed}"
    );
    client.close().await;
}

/// A server over HTTP on this machine; ends with its value.
struct OverHttp(Child, u16);

impl Drop for OverHttp {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn python_over_http() -> Option<(OverHttp, McpServer)> {
    let python = python(&[])?;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let child = Command::new(python.command.as_deref().unwrap())
        .args([python.args[0].as_str(), "http", &port.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = OverHttp(child, port);
    for _ in 0..3_000 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let settings = McpServer {
        name: "demo".to_owned(),
        url: Some(format!("http://127.0.0.1:{}/mcp", server.1)),
        levels: python.levels,
        trust_first_sight: true,
        ..McpServer::default()
    };
    Some((server, settings))
}

#[tokio::test]
async fn the_python_sdk_is_spoken_to_over_http_and_found_again_after_it_was_away() {
    let Some((server, mut settings)) = python_over_http().await else {
        return;
    };
    settings.timeout_seconds = Some(5.0);
    for (protocol, spoken) in [
        (McpProtocol::Auto, "2026-07-28"),
        (McpProtocol::V2025, "2025-11-25"),
    ] {
        settings.protocol = protocol;
        let client = connect(&settings).await;
        assert_eq!(client.protocol().await.as_deref(), Some(spoken));
        let run = Run::of(client.tools()).await;
        let sum = run.call("demo__add", json!({"a": 2, "b": 40})).await;
        assert!(sum.to_string().contains("42"), "{sum}");
        let failed = run
            .call("demo__fail", json!({"why": "no such thing"}))
            .await;
        assert!(
            message(&failed).starts_with("`demo__fail` failed: "),
            "{failed}"
        );
        client.close().await;
    }
    settings.timeout_seconds = Some(0.5);
    let client = connect(&settings).await;
    let run = Run::of(client.tools()).await;
    let slow = run.call("demo__wait", json!({"seconds": 2})).await;
    assert!(
        message(&slow).ends_with("did not answer in 0.5 seconds"),
        "{slow}"
    );
    drop(server);
    let gone = run.call("demo__add", json!({"a": 1, "b": 1})).await;
    assert!(message(&gone).starts_with("`demo__add` failed: "), "{gone}");
}

#[tokio::test]
async fn over_http_nothing_is_redirected_and_no_header_is_told() {
    let other = StandIn::start(|_| Answer::json(200, &json!({})));
    let to = other.url();
    let server = StandIn::start(move |_| Answer::redirect(&to));
    let settings = |url: String| McpServer {
        name: "moved".to_owned(),
        url: Some(url),
        headers: [(
            "Authorization".to_owned(),
            serde_json::from_value(json!({"env": "KEY", "prefix": "Bearer "})).unwrap(),
        )]
        .into(),
        start_seconds: Some(5.0),
        ..McpServer::default()
    };
    let connect = async |url: String| {
        let secrets = |_: &str| Some("s3cret-token".into());
        let options = McpOptions {
            secrets: Some(&secrets),
            ..McpOptions::default()
        };
        let connected =
            paraph_tools::McpClient::connect(&outbound(), &settings(url), options).await;
        connected.unwrap_err().to_string()
    };
    let error = connect(server.url()).await;
    assert!(error.starts_with("the MCP server `moved`: "), "{error}");
    assert_eq!(other.seen(), []);
    assert_eq!(
        server.seen()[0].header("authorization"),
        Some("Bearer s3cret-token")
    );
    let echo = StandIn::start(|seen| Answer::new(400, "text/plain", format!("{:?}", seen.headers)));
    let error = connect(echo.url()).await;
    assert!(
        error.starts_with("the MCP server `moved`: ") && !error.contains("s3cret"),
        "{error}"
    );
    let error = refused(&McpServer {
        name: "x".to_owned(),
        url: Some("https://169.254.169.254/mcp".to_owned()),
        ..McpServer::default()
    })
    .await;
    assert!(
        error.contains("a link-local address, where clouds keep credentials"),
        "{error}"
    );
}

#[tokio::test]
async fn the_filesystem_server_is_searched_by_names_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    std::fs::write(place.join("mites.md"), "# Mites\n\nThey cost 31 percent.").unwrap();
    let here = place.to_str().unwrap();
    let Some(mut server) = node("filesystem", &[here]) else {
        return;
    };
    let sources = json!({
        "search": "search_files", "search_args": {"path": here, "pattern": "**/*{query}*"},
        "page": "read_text_file", "page_args": {"path": "{id}"}, "lines": true, "nothing": "No matches found"
    });
    server.sources = Some(serde_json::from_value(sources).unwrap());
    let client = connect(&server).await;
    let run = Run::of(client.sources().unwrap()).await;
    let found = run.call("web_search", json!({"query": "mites"})).await;
    assert_eq!(found["results"][0]["title"], "mites.md", "{found}");
    let page = run
        .call("fetch_page", json!({"url": found["results"][0]["url"]}))
        .await;
    assert_eq!(page["text"], "# Mites\n\nThey cost 31 percent.", "{page}");
    let none = run.call("web_search", json!({"query": "zebra"})).await;
    assert_eq!(
        message(&none),
        "`web_search` failed: the search found nothing; try fewer or other words"
    );
    client.close().await;
}

#[tokio::test]
async fn the_python_sdk_is_searched_by_its_lists_and_read() {
    let Some(mut server) = python(&["stdio"]) else {
        return;
    };
    server.sources = Some(serde_json::from_value(json!({"page_args": {"name": "{id}"}})).unwrap());
    let client = connect(&server).await;
    let run = Run::of(client.sources().unwrap()).await;
    let found = run.call("web_search", json!({"query": "mites"})).await;
    let expected = json!({"results": [
        {"title": "On mites", "url": "mcp:demo/book-1", "content": "Of mites.", "score": null},
    ]});
    assert_eq!(found, expected);
    let page = run
        .call("fetch_page", json!({"url": "mcp:demo/book-1"}))
        .await;
    assert_eq!(
        page,
        json!({"title": "book-1", "url": "mcp:demo/book-1", "text": "All of book-1."})
    );
    client.close().await;
}
