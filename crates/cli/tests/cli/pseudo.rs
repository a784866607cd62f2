//! The program at a pseudo-terminal, with somebody who reads and types.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long anybody waits for a text to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was shown so far, and whether more can come.
#[derive(Default)]
struct Screen {
    shown: String,
    over: bool,
}

pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<(Mutex<Screen>, Condvar)>,
    reader: JoinHandle<()>,
    /// How much of what was shown was waited for.
    read: usize,
}

impl Terminal {
    pub(crate) fn start(mut command: Command) -> Terminal {
        use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let ours = openpt(flags).unwrap();
        unlockpt(&ours).unwrap();
        let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
        command
            .stdin(theirs.try_clone().unwrap())
            .stdout(theirs.try_clone().unwrap())
            .stderr(theirs);
        let child = command.spawn().unwrap();
        // It has its ends from here on; when it is gone, nobody has.
        drop(command);
        let keyboard = File::from(ours);
        let screen: Arc<(Mutex<Screen>, Condvar)> = Arc::default();
        let reader = {
            let (mut from, screen) = (keyboard.try_clone().unwrap(), screen.clone());
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                loop {
                    let count = from.read(&mut bytes).unwrap_or(0);
                    let mut seen = screen.0.lock().unwrap();
                    seen.shown
                        .push_str(&String::from_utf8_lossy(&bytes[..count]));
                    seen.over = count == 0;
                    screen.1.notify_all();
                    if seen.over {
                        return;
                    }
                }
            })
        };
        Terminal {
            child,
            keyboard,
            screen,
            reader,
            read: 0,
        }
    }

    /// Waits until a text is shown that was not waited for before; gives what was shown up to its end.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let (screen, changed) = &*self.screen;
        let seen = screen.lock().unwrap();
        let missing = |seen: &mut Screen| !seen.over && !seen.shown[self.read..].contains(text);
        let (seen, _) = changed.wait_timeout_while(seen, PATIENCE, missing).unwrap();
        let new = &seen.shown[self.read..];
        let at = new
            .find(text)
            .unwrap_or_else(|| panic!("{text:?} is not in {new}"));
        let new = new[..at + text.len()].to_owned();
        self.read += new.len();
        new
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn child(&self) -> &Child {
        &self.child
    }

    /// Waits for the end; gives the exit code and all that was shown, with line breaks as files have them.
    pub(crate) fn ended(mut self) -> (i32, String) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        self.reader.join().unwrap();
        let shown = self.screen.0.lock().unwrap().shown.replace("\r\n", "\n");
        (code, shown)
    }
}
