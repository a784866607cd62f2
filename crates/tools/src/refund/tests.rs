//! What is signed of a refund, the ledger with its crashes and rivals, and what answers of a service mean.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::ledger::{Entry, Unwritten, append, name_of};
use super::service::what_it_means;
use super::*;
use crate::outbound::OutboundSettings;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

fn refund(amount_cents: u64) -> Refund {
    Refund {
        user_id: 42,
        amount_cents,
        reason: "within 14 days (refund-v3)".to_owned(),
    }
}

fn entry(key: &str, amount_cents: u64) -> Entry {
    Entry {
        key: key.to_owned(),
        refund: name_of(key),
        user_id: 42,
        amount_cents,
        currency: CURRENCY.to_owned(),
        reason: "late \u{2014} \"very\"\nlate".to_owned(),
        action: "a-1".to_owned(),
        digest: "d-1".to_owned(),
        at_ms: 1,
    }
}

fn lines(path: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn outbound() -> Outbound {
    Outbound::new(&OutboundSettings::default()).unwrap()
}

#[test]
fn a_person_reads_the_amount_twice_and_where_it_goes() {
    let path = std::env::temp_dir().join("refunds.jsonl");
    let local = IssueRefund::new(&outbound(), Refunds::Ledger(path)).unwrap();
    assert_eq!(
        local.describe(&refund(4_905)),
        "Refund 49.05 USD (4905 cents) to user 42. It is written into the refund ledger of this machine. \
         The reason given: within 14 days (refund-v3)"
    );
    assert_eq!(local.subject(&refund(4_905)), "refund to user 42");
    let service = Refunds::Service {
        base: Base::new("https://pay.example/v1").unwrap(),
        token: None,
    };
    assert_eq!(service.place(), "https://pay.example");
    let service = IssueRefund::new(&outbound(), service).unwrap();
    assert_eq!(
        service.describe(&refund(5)),
        "Refund 0.05 USD (5 cents) to user 42. It is sent to https://pay.example. \
         The reason given: within 14 days (refund-v3)"
    );
}

#[test]
fn settings_that_cannot_be_used_are_refused() {
    let table = [
        (
            Refunds::Ledger("refunds.jsonl".into()),
            "the refund ledger: `refunds.jsonl` is no whole path of a file: write it from the root on",
        ),
        (
            Refunds::Service {
                base: Base::new("https://pay.example").unwrap(),
                token: Some("two\nlines".into()),
            },
            "the token of the refund service: it has characters that no header can carry",
        ),
    ];
    for (refunds, why) in table {
        let refused = issue_refund(&outbound(), refunds).unwrap_err();
        assert_eq!(refused.to_string(), why);
    }
}

#[test]
fn a_key_is_written_once_and_never_with_another_refund() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep").join("refunds.jsonl");
    let first = entry("k-1", 4_900);
    assert_eq!(append(&path, &first, None), Ok(first.clone()));
    let again = Entry {
        at_ms: 2,
        ..first.clone()
    };
    assert_eq!(append(&path, &again, None), Ok(first.clone()));
    let why = format!(
        "{} has another refund under this key: 4900 cents to user 42",
        path.display()
    );
    assert_eq!(
        append(&path, &entry("k-1", 4_901), None),
        Err(Unwritten::Nothing(why))
    );
    append(&path, &entry("k-2", 1), None).unwrap();
    assert_eq!(lines(&path), [first, entry("k-2", 1)]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
}

#[test]
fn what_a_crash_cut_off_is_no_refund_and_what_a_person_left_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("refunds.jsonl");
    let whole = serde_json::to_string(&entry("k-1", 1)).unwrap();
    let cut_off = whole.get(..40).unwrap();
    let table = [
        // An editor took the last end of line away.
        (whole.clone(), vec![entry("k-1", 1), entry("k-2", 2)]),
        (
            format!("{whole}\n{cut_off}"),
            vec![entry("k-1", 1), entry("k-2", 2)],
        ),
        (cut_off.to_owned(), vec![entry("k-2", 2)]),
        (String::new(), vec![entry("k-2", 2)]),
    ];
    for (before, after) in table {
        std::fs::write(&path, &before).unwrap();
        append(&path, &entry("k-2", 2), None).unwrap();
        assert_eq!(lines(&path), after, "{before}");
    }
}

#[test]
fn nothing_is_written_into_what_is_no_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("refunds.jsonl");
    let whole = serde_json::to_string(&entry("k-1", 1)).unwrap();
    for text in [
        format!("{whole}\nmy notes\n"),
        "x".repeat(20_000),
        "{}\n".to_owned(),
    ] {
        std::fs::write(&path, &text).unwrap();
        let Err(Unwritten::Nothing(why)) = append(&path, &entry("k-2", 2), None) else {
            panic!("{text} was taken for a ledger");
        };
        assert!(why.contains(" is no refund: "), "{why}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_refund_is_held_to_what_the_user_had_when_it_was_signed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("refunds.jsonl");
    let given = |user| ledger::given(&path, user).unwrap().to_string();
    assert_eq!(given(42), "0 refunds, 0.00 USD");
    let signed = given(42);
    append(&path, &entry("k-1", 4_900), Some(&signed)).unwrap();
    append(
        &path,
        &Entry {
            user_id: 7,
            ..entry("k-7", 1)
        },
        None,
    )
    .unwrap();
    assert_eq!(
        (given(42), given(7)),
        ("1 refund, 49.00 USD".into(), "1 refund, 0.01 USD".into())
    );
    let why = "user 42 had 0 refunds, 0.00 USD when the refund was signed, and has 1 refund, 49.00 USD now";
    assert_eq!(
        append(&path, &entry("k-2", 100), Some(&signed)),
        Err(Unwritten::Nothing(why.into()))
    );
    // The same refund again is no second one, whatever the user has by now.
    assert!(append(&path, &entry("k-1", 4_900), Some(&signed)).is_ok());
    assert_eq!(lines(&path).len(), 2);
}

/// How many processes write at once, and how many keys each of them.
const RIVALS: usize = 4;
const KEYS: usize = 15;

#[test]
fn processes_that_write_the_same_keys_at_once_write_each_of_them_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("refunds.jsonl");
    let mut rivals: Vec<_> = (0..RIVALS)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "refund::tests::a_rival", "--ignored"])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for rival in &mut rivals {
        let mut input = rival.stdin.take().unwrap();
        writeln!(input, "{}", path.display()).unwrap();
    }
    for mut rival in rivals {
        assert!(rival.wait().unwrap().success());
    }
    let written = lines(&path);
    let keys: std::collections::BTreeSet<_> = written.iter().map(|line| &line.key).collect();
    assert_eq!((written.len(), keys.len()), (KEYS, KEYS));
}

#[test]
#[ignore = "a part of the test above, which starts it as a process of its own"]
fn a_rival() {
    let mut path = String::new();
    std::io::stdin().lock().read_line(&mut path).unwrap();
    let path = Path::new(path.trim());
    if path.is_absolute() {
        for number in 0..KEYS {
            append(path, &entry(&format!("k-{number}"), 1), None).unwrap();
        }
    }
}

#[test]
fn only_what_certainly_sent_nothing_is_said_to_have_done_nothing() {
    let host = || "https://pay.example".to_owned();
    let status = |status| Error::Status {
        host: host(),
        status,
        said: String::new(),
        retry_after: None,
    };
    let connect = |sent| Error::Connect {
        host: host(),
        problem: "refused".to_owned(),
        sent,
    };
    let table = [
        (connect(false), true),
        (connect(true), false),
        (
            Error::Unresolved {
                host: host(),
                problem: "no such name".to_owned(),
            },
            true,
        ),
        (
            Error::Timeout {
                host: host(),
                after: GRACE,
            },
            false,
        ),
        (
            Error::Broken {
                host: host(),
                problem: "cut off".to_owned(),
            },
            false,
        ),
        (
            Error::Redirect {
                host: host(),
                problem: "elsewhere".to_owned(),
            },
            false,
        ),
        (status(400), true),
        (status(401), true),
        (status(404), true),
        (status(408), false),
        (status(409), false),
        (status(422), true),
        (status(425), false),
        (status(429), true),
        (status(500), false),
        (status(502), false),
        (status(504), false),
    ];
    for (error, nothing) in table {
        let expected = match nothing {
            true => EffectError::nothing_happened(error.to_string()),
            false => EffectError::unknown(error.to_string()),
        };
        assert_eq!(what_it_means(&error), expected, "{error}");
    }
}

#[test]
fn what_was_not_found_is_waited_for_before_it_is_sent_again() {
    let seconds = Duration::from_secs;
    let table = [
        (seconds(0), Found::NotYet(seconds(10))),
        (seconds(85), Found::NotYet(seconds(5))),
        (seconds(90), Found::SendAgain),
        (seconds(9_000), Found::SendAgain),
    ];
    for (since, expected) in table {
        assert_eq!(not_found(since), expected, "{since:?}");
    }
}
