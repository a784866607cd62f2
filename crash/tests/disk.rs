//! Disks that are full, files that cannot be written or are damaged: a sentence that says so, nothing half
//! written, and a run that goes on when the disk is well again.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use crash::{Attempt, Counter, End, Evidence, Launch, Order, Place, Shape, Uncut, check, uncut};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::runtime::Runtime;
use uuid::Uuid;

struct Ground {
    folder: tempfile::TempDir,
    counter: Counter,
    runtime: Runtime,
    uncut: Uncut,
}

impl Ground {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let uncut = runtime.block_on(uncut(Shape::Branched, "sync")).unwrap();
        Ground {
            folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
            counter: Counter::start().unwrap(),
            runtime,
            uncut,
        }
    }

    fn order(&self, path: &Path) -> Order {
        Order {
            place: Place::file(path),
            thread: Uuid::now_v7().to_string(),
            run: Uuid::now_v7(),
            shape: Shape::Branched,
            durability: "sync".to_owned(),
            counter: self.counter.address(),
            process: 0,
            takes_ms: 0,
            stop: None,
        }
    }

    /// Runs a second child on a disk that is well again, and looks at everything. The first one counts as cut.
    fn goes_on(&self, order: Order, first: Attempt) {
        let order = Order {
            process: 1,
            ..order
        };
        let second = child().start(&order).unwrap().end(None).unwrap();
        let first = Attempt {
            end: End::Cut,
            ..first
        };
        let evidence = Evidence {
            order: &order,
            attempts: &[first, second],
            hits: &self.counter.hits(&order.thread),
            uncut: &self.uncut,
        };
        let found = self.runtime.block_on(check(evidence)).unwrap();
        assert_eq!(found.wrong, Vec::<String>::new());
    }
}

fn child() -> Launch {
    Launch::of(env!("CARGO_BIN_EXE_paraph-crash"))
}

/// That a child ended by itself, with one sentence that has one of these words in it.
fn says(attempt: &Attempt, words: &[&str]) {
    let End::Failed {
        code: Some(2),
        said,
    } = &attempt.end
    else {
        panic!("no clear error: {attempt:?}");
    };
    assert!(said.starts_with("error: "), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert!(
        words.iter().any(|word| said.to_lowercase().contains(word)),
        "{said}"
    );
}

/// The last where a run came to rest but its row could not say so: to its own process it is still driven.
const FULL: [&str; 4] = ["full", "space", "disk", "is driven by"];

#[test]
fn whatever_size_a_file_may_have_the_run_ends_with_a_sentence_and_goes_on_later() {
    let ground = Ground::new();
    let mut failed = 0;
    for kilobytes in (4..).step_by(48) {
        let order = ground.order(&ground.folder.path().join(format!("limit-{kilobytes}.db")));
        // No file of this process may grow beyond the limit; the write fails instead of a signal.
        let script = format!(
            "trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"",
            kilobytes * 2
        );
        let shell = ["sh", "-c", &script].map(str::to_owned);
        let first = child()
            .under(shell)
            .start(&order)
            .unwrap()
            .end(None)
            .unwrap();
        if first.end == End::Done {
            break;
        }
        failed += 1;
        says(&first, &FULL);
        ground.goes_on(order, first);
    }
    println!("{failed} sizes were too small");
    assert!(failed > 2, "the limit was never reached");
}

/// A small file system in memory, unmounted at the end.
struct Small(PathBuf);

impl Small {
    fn mount(at: &Path, kilobytes: usize) -> Option<Small> {
        fs::create_dir_all(at).unwrap();
        let size = format!("size={kilobytes}k");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(at)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Small(at.to_owned())),
            _ => {
                println!("skipped: this process may mount nothing");
                None
            }
        }
    }

    fn grow(&self) {
        let grown = Command::new("mount")
            .args(["-o", "remount,size=64m"])
            .arg(&self.0)
            .status();
        assert!(grown.unwrap().success());
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_ends_the_run_with_a_sentence_and_it_goes_on_when_there_is_room() {
    let ground = Ground::new();
    let mut failed = 0;
    for kilobytes in (200..).step_by(120) {
        let folder = ground.folder.path().join(format!("small-{kilobytes}"));
        let Some(disk) = Small::mount(&folder, kilobytes) else {
            return;
        };
        let order = ground.order(&folder.join("a.db"));
        let first = child().start(&order).unwrap().end(None).unwrap();
        if first.end == End::Done {
            break;
        }
        failed += 1;
        says(&first, &FULL);
        disk.grow();
        ground.goes_on(order, first);
    }
    assert!(failed > 0, "the disk was never full");
}

#[test]
fn a_file_that_may_not_be_written_is_named_and_left_as_it_is() {
    let ground = Ground::new();
    let path = ground.folder.path().join("kept.db");
    let order = ground.order(&path);
    assert_eq!(
        child().start(&order).unwrap().end(None).unwrap().end,
        End::Done
    );
    // Root may write to everything, so the child is somebody else; who may then not come as far as the
    // program or the folder, unless both lie in a folder that is open to all.
    let open = tempfile::Builder::new()
        .prefix("paraph-crash-")
        .tempdir()
        .unwrap();
    let (program, copy) = (open.path().join("paraph-crash"), open.path().join("a.db"));
    fs::copy(env!("CARGO_BIN_EXE_paraph-crash"), &program).unwrap();
    fs::copy(&path, &copy).unwrap();
    for (path, mode) in [(open.path(), 0o555), (&program, 0o555), (&copy, 0o444)] {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let before = fs::read(&copy).unwrap();
    let mut launch = Launch::of(program.to_string_lossy());
    if rustix::process::geteuid().is_root() {
        let other = [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ];
        launch = launch.under(other.map(str::to_owned));
    }
    let order = ground.order(&copy);
    let attempt = launch.start(&order).unwrap().end(None).unwrap();
    says(
        &attempt,
        &["read-only", "readonly", "permission", "written"],
    );
    assert_eq!(fs::read(&copy).unwrap(), before);
}

#[test]
fn a_damaged_file_is_an_error_and_a_copy_from_before_goes_on() {
    let ground = Ground::new();
    let path = ground.folder.path().join("damaged.db");
    let order = Order {
        // The child ends after the first notes of the first round.
        stop: Some(crash::Stop {
            write: 12,
            when: crash::When::After,
        }),
        ..ground.order(&path)
    };
    let first = child().start(&order).unwrap().end(None).unwrap();
    assert_eq!(first.end, End::Cut);
    let order = Order {
        stop: None,
        ..order
    };
    // What is in the log is brought into the file, so that there is one file to damage.
    rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
        .unwrap();
    let whole = fs::read(&path).unwrap();
    let mut sentences = 0;
    for page in 1..whole.len() / 4096 {
        let mut damaged = whole.clone();
        damaged[page * 4096..][..4096].fill(0xA5);
        fs::write(&path, &damaged).unwrap();
        let attempt = child().start(&order).unwrap().end(None).unwrap();
        match &attempt.end {
            // A page that nobody needs for this thread, or an index that is read by nobody.
            End::Done => {}
            _ => {
                says(
                    &attempt,
                    &[
                        "never",
                        "malformed",
                        "damaged",
                        "corrupt",
                        "cannot be read",
                        "not a database",
                    ],
                );
                sentences += 1;
            }
        }
        for file in [path.with_extension("db-wal"), path.with_extension("db-shm")] {
            let _ = fs::remove_file(file);
        }
    }
    assert!(sentences > 0);
    println!(
        "{sentences} of {} damaged pages were found by the run",
        whole.len() / 4096 - 1
    );
    fs::write(&path, &whole).unwrap();
    // The damaged copies had effects of their own.
    let hits = ground.counter.hits(&order.thread);
    assert!(!hits.is_empty());
    let attempt = child().start(&order).unwrap().end(None).unwrap();
    assert_eq!(attempt.end, End::Done);
}
