//! Interrupts: Ctrl-C, and the request to terminate. The first one is for the run; the second ends the
//! program on the spot, whatever the run is doing, and so does a run that does not come to its end.

use crate::failure::INTERRUPTED;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a run may take to wind down after the first interrupt.
const GRACE: Duration = Duration::from_secs(10);

/// Lets a write beyond the largest size that a file may have (`ulimit -f`) fail like one to a full disk,
/// where the system would end the program. Must be called inside a runtime; lasts as long as the process.
pub(crate) fn outlive_large_files() {
    #[cfg(any(target_os = "linux", target_vendor = "apple", target_os = "freebsd"))]
    {
        /// SIGXFSZ, on all systems for which this is compiled.
        const LARGE_FILE: i32 = 25;
        let kind = tokio::signal::unix::SignalKind::from_raw(LARGE_FILE);
        // Who is told of it does not matter; that somebody is, does.
        if let Err(error) = tokio::signal::unix::signal(kind) {
            let what = "a write beyond the limit on file sizes will end the program";
            crate::output::note(&format!("warning: {what} ({error})"));
        }
    }
}

/// The first interrupt.
pub(crate) struct Interrupt(Option<oneshot::Receiver<()>>);

impl Interrupt {
    /// Listens from now on. Must be called inside a runtime.
    pub(crate) fn listen() -> std::io::Result<Interrupt> {
        let mut signals = Signals::new()?;
        let (sender, receiver) = oneshot::channel();
        // In a task of its own: a tool that holds up the run must not hold up its end.
        tokio::spawn(async move {
            signals.next().await;
            let _ = sender.send(());
            // Whoever reads our output may have stopped without going away: then nothing else would end.
            let _ = tokio::time::timeout(GRACE, signals.next()).await;
            std::process::exit(i32::from(INTERRUPTED));
        });
        Ok(Interrupt(Some(receiver)))
    }

    /// Waits for it; it comes once, and whoever waits after that waits for ever.
    pub(crate) async fn wait(&mut self) {
        if let Some(receiver) = &mut self.0 {
            let came = receiver.await;
            self.0 = None;
            if came.is_ok() {
                return;
            }
        }
        // Nobody can interrupt any more.
        std::future::pending::<()>().await;
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
