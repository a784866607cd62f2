//! Where the program connects to, seen from below: every address that any of its system calls names is one that the
//! settings or the agent's file named. There is no telemetry, and no look for a newer version.

use crate::approvals::Shop;
use crate::sandbox::Sandbox;
use std::collections::BTreeSet;
use std::process::Stdio;

/// The addresses that the program's system calls name while it runs with these arguments, as `IP:PORT`; nothing where
/// system calls cannot be traced.
fn reached(sandbox: &Sandbox, args: &[&str]) -> Option<BTreeSet<String>> {
    let program = sandbox.command(args);
    let mut traced = std::process::Command::new("strace");
    let log = sandbox.path("calls.txt");
    traced
        .args(["-f", "-qq", "-e", "trace=network", "-o"])
        .arg(&log);
    traced.arg(program.get_program()).args(program.get_args());
    traced
        .current_dir(program.get_current_dir().unwrap())
        .env_clear();
    traced.envs(
        program
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let ran = traced.stdin(Stdio::null()).output().ok()?;
    let calls = std::fs::read_to_string(&log).unwrap_or_default();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    if calls.is_empty() && said.contains("ptrace") {
        return None;
    }
    assert_eq!(ran.status.code(), Some(0), "{said}");
    Some(calls.lines().filter_map(address).collect())
}

/// The address of a system call's line, if it names one of a network.
fn address(line: &str) -> Option<String> {
    let after = |mark: &str| Some(line.split_once(mark)?.1);
    let digits =
        |text: &str| -> String { text.chars().take_while(|c| c.is_ascii_digit()).collect() };
    // What the program binds and what it is told of itself are not what it reaches out to.
    let reaches = ["connect(", "sendto(", "sendmsg(", "sendmmsg("];
    if !reaches.iter().any(|call| line.contains(call)) || !line.contains("AF_INET") {
        return None;
    }
    let port = digits(after("port=htons(")?);
    let host = match after("inet_addr(\"").or_else(|| after("inet_pton(AF_INET6, \"")) {
        Some(rest) => rest.split('"').next()?.to_owned(),
        None => "?".to_owned(),
    };
    Some(format!("{host}:{port}"))
}

fn none_to_trace() {
    eprintln!("skipped: there is no `strace` here, or it may trace nothing");
}

#[test]
fn a_line_of_a_trace_is_read_as_the_address_that_it_names() {
    let table = [
        (
            r#"12 connect(9, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("192.0.2.7")}, 16) = -1 EINPROGRESS"#,
            Some("192.0.2.7:443"),
        ),
        (
            r#"12 connect(9, {sa_family=AF_INET6, sin6_port=htons(53), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "2001:db8::1", &sin6_addr), sin6_scope_id=0}, 28) = 0"#,
            Some("2001:db8::1:53"),
        ),
        (
            r#"12 sendto(9, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("192.0.2.1")}, 16) = 1"#,
            Some("192.0.2.1:53"),
        ),
        (
            r#"12 connect(9, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT"#,
            None,
        ),
        (
            r#"12 bind(9, {sa_family=AF_INET, sin_port=htons(0), sin_addr=inet_addr("127.0.0.1")}, 16) = 0"#,
            None,
        ),
        (r#"12 socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 9"#, None),
    ];
    for (line, expected) in table {
        assert_eq!(address(line).as_deref(), expected, "{line}");
    }
}

#[test]
fn a_rehearsal_connects_to_nothing() {
    let sandbox = Sandbox::new();
    let commands = [
        &["run", "support", "--model", "rehearsal", "--quiet"][..],
        &["doctor"],
        &["runs", "list"],
        &["--version"],
    ];
    for args in commands {
        match reached(&sandbox, args) {
            Some(reached) => assert_eq!(reached, BTreeSet::new(), "{args:?}"),
            None => return none_to_trace(),
        }
    }
}

#[test]
fn a_run_with_an_effect_connects_to_where_its_file_says_and_nowhere_else() {
    let shop = Shop::new();
    let waiting = shop.asked("t");
    let args = [&["approvals"], &waiting.approve(&["--quiet"])[..]].concat();
    let Some(reached) = reached(&shop.sandbox, &args) else {
        return none_to_trace();
    };
    let there = format!("127.0.0.1:{}", shop.server.port());
    assert_eq!(reached, BTreeSet::from([there]));
    assert_eq!(shop.paid().len(), 1);
}
