//! Interrupts: Ctrl-C, and the request to terminate. The first one is for the run, the second is final.

use tokio::sync::mpsc;

/// Interrupts as they arrive.
pub(crate) struct Interrupts(mpsc::Receiver<()>);

impl Interrupts {
    /// Listens from now on. Must be called inside a runtime.
    pub(crate) fn listen() -> std::io::Result<Interrupts> {
        let (sender, receiver) = mpsc::channel(8);
        spawn(sender)?;
        Ok(Interrupts(receiver))
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // Nobody can interrupt any more.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
fn spawn(sender: mpsc::Sender<()>) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let (mut signals, sender) = (signal(kind)?, sender.clone());
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if sender.send(()).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}

#[cfg(not(unix))]
fn spawn(sender: mpsc::Sender<()>) -> std::io::Result<()> {
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            if sender.send(()).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}
