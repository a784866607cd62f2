//! How a node acts on the world: it asks the counter, and waits for the answer.
//!
//! Called by the nodes of `graphs`. Says on standard output what is durable by now, for the parent to hold the
//! store to.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use paraph_graph::{Ctx, NodeError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::counter::Hit;

/// The world, as one process of one trial reaches it.
#[derive(Clone, Debug)]
pub(crate) struct Outside {
    /// Nothing for a run that has no effects, to see how it goes uncut.
    pub(crate) counter: Option<SocketAddr>,
    pub(crate) trial: String,
    pub(crate) process: usize,
    /// How long an effect takes besides.
    pub(crate) takes: Duration,
}

impl Outside {
    /// A world that does nothing.
    pub(crate) fn nowhere() -> Self {
        Outside {
            counter: None,
            trial: String::new(),
            process: 0,
            takes: Duration::ZERO,
        }
    }

    /// Does one effect in both ways, each in a step whose result is saved: with a key that the world
    /// recognises, and without one.
    pub(crate) async fn act(&self, ctx: &Ctx, effect: &str) -> Result<(), NodeError> {
        let key = ctx.key(effect);
        ctx.step("keyed", self.ask(effect, Some(key))).await?;
        ctx.step("plain", self.ask(effect, None)).await?;
        if self.counter.is_some() {
            say(&format!("memo {effect}"));
        }
        Ok(())
    }

    pub(crate) async fn ask(&self, effect: &str, key: Option<String>) -> Result<(), NodeError> {
        let Some(counter) = self.counter else {
            return Ok(());
        };
        let hit = Hit {
            trial: self.trial.clone(),
            effect: effect.to_owned(),
            key,
            process: self.process,
        };
        let mut stream = TcpStream::connect(counter).await?;
        let line = serde_json::to_string(&hit)? + "\n";
        stream.write_all(line.as_bytes()).await?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await?;
        if answer != "ok\n" {
            return Err(NodeError::msg(format!("the counter said {answer:?}")));
        }
        if !self.takes.is_zero() {
            tokio::time::sleep(self.takes).await;
        }
        Ok(())
    }
}

/// One line on standard output, in one write: a kill leaves all of it or nothing.
pub(crate) fn say(line: &str) {
    let line = format!("{line}\n");
    let mut out = std::io::stdout().lock();
    // A parent that is gone hears nothing; then nobody minds.
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}
