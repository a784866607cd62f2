//! The desk at a terminal: what somebody is asked there, and what comes of their answers.

use crate::approvals::{Shop, pays, says};
use crate::pseudo::Terminal;
use serde_json::{Value, json};

const QUESTION: &str = "(it keeps waiting)? ";

impl Shop {
    /// A run at a terminal.
    fn at_terminal(&self, env: &[(&str, &str)]) -> Terminal {
        let args = ["run", "clerk.toml", "Pay order 7 back.", "--thread", "t-1"];
        let model = ["--model", "scripted:script.jsonl"];
        let mut command = self.sandbox.command(&[&args[..], &model].concat());
        command.envs(env.iter().copied());
        Terminal::start(command)
    }

    /// The states of all actions, the oldest first.
    fn states(&self) -> Vec<String> {
        let listed = self.approvals(&["list", "--all", "--json"]).json();
        let rows = listed.as_array().unwrap().iter();
        rows.map(|row| row["state"].as_str().unwrap().to_owned())
            .collect()
    }

    fn kinds(&self) -> Vec<String> {
        let listed = self.sandbox.run(&["audit", "list", "--json"]).json();
        let rows = listed.as_array().unwrap().iter();
        rows.map(|row| row["event"]["kind"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn somebody_at_the_terminal_is_shown_what_waits_and_approves_it() {
    let shop = Shop::new();
    let mut terminal = shop.at_terminal(&[]);
    let shown = terminal.until(QUESTION);
    for expected in ["effect    Call `pay_back`", "cents = 4900", "digest    "] {
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
    // What is no answer is asked again.
    terminal.types("yes\n");
    terminal.until(QUESTION);
    terminal.types("a\n");
    let (code, shown) = terminal.ended();
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.contains("approved by ") && shown.ends_with("It is done.\n"),
        "{shown}"
    );
    assert_eq!(shop.paid(), [json!({"order": 7, "cents": 4900})]);
    assert_eq!(shop.kinds()[..3], ["proposed", "shown", "decided"]);
}

#[test]
fn arguments_are_changed_in_an_editor_and_decided_about_anew() {
    let shop = Shop::new();
    let mut terminal = shop.at_terminal(&[("EDITOR", "true")]);
    terminal.until(QUESTION);
    terminal.types("e\n");
    terminal.until("nothing was changed");
    terminal.until(QUESTION);
    terminal.types("q\n");
    assert_eq!(terminal.ended().0, 5);
    assert_eq!(shop.states(), ["pending"]);

    let shop = Shop::new();
    let mut terminal = shop.at_terminal(&[("EDITOR", "sed -i s/4900/500/")]);
    terminal.until("cents = 4900");
    terminal.until(QUESTION);
    terminal.types("e\n");
    terminal.until("cents = 500");
    terminal.until(QUESTION);
    terminal.types("a\n");
    let (code, shown) = terminal.ended();
    assert_eq!(code, 0, "{shown}");
    assert_eq!(shop.paid(), [json!({"order": 7, "cents": 500})]);
    assert_eq!(shop.states(), ["edited", "succeeded"]);
}

#[test]
fn whoever_changes_arguments_and_leaves_is_told_of_what_waits_then() {
    let shop = Shop::new();
    let mut terminal = shop.at_terminal(&[("EDITOR", "sed -i s/4900/100/")]);
    terminal.until(QUESTION);
    terminal.types("e\n");
    terminal.until("cents = 100");
    terminal.until(QUESTION);
    terminal.types("q\n");
    let (code, shown) = terminal.ended();
    assert_eq!(code, 5, "{shown}");
    let last = shown.rsplit("Waiting: everything so far is saved.").next();
    assert!(
        last.unwrap().contains(r#"{"cents":100,"order":7}"#),
        "{shown}"
    );
    assert_eq!(shop.states(), ["edited", "pending"]);
    let command = last.unwrap().split("approve it  paraph ").nth(1).unwrap();
    let words: Vec<_> = command.lines().next().unwrap().split(' ').collect();
    let approved = shop.sandbox.run(&words);
    assert_eq!((approved.code, approved.out.as_str()), (0, "It is done.\n"));
    assert_eq!(shop.paid(), [json!({"order": 7, "cents": 100})]);
}

#[test]
fn a_refusal_at_the_terminal_needs_its_reason() {
    let shop = Shop::new();
    let mut terminal = shop.at_terminal(&[]);
    terminal.until(QUESTION);
    terminal.types("r\n");
    terminal.until("why? (the model reads it) ");
    terminal.types("  \n");
    terminal.until("why? (the model reads it) ");
    // The way back is no reason.
    terminal.types("q\n");
    terminal.until("nothing was decided");
    terminal.until(QUESTION);
    terminal.types("r\n");
    terminal.until("why? (the model reads it) ");
    terminal.types("paid back on Monday\n");
    let (code, shown) = terminal.ended();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("refused by "), "{shown}");
    assert_eq!(shop.paid(), Vec::<Value>::new());
    assert_eq!(shop.states(), ["rejected"]);
}

#[test]
fn a_change_is_asked_for_and_an_answer_given_in_words_at_the_terminal() {
    let shop = Shop::new();
    shop.script(&[&pays(7, 4900), &pays(7, 2000), &says("As you like.")]);
    let mut terminal = shop.at_terminal(&[]);
    terminal.until(QUESTION);
    terminal.types("c\n");
    terminal.until("what should be different?");
    terminal.types("less, please\n");
    let shown = terminal.until(QUESTION);
    assert!(
        shown.contains("asked to be changed by ") && shown.contains("cents = 2000"),
        "{shown}"
    );
    terminal.types("w\n");
    terminal.until("your answer?");
    terminal.types("leave it\n");
    let (code, shown) = terminal.ended();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.ends_with("As you like.\n"), "{shown}");
    assert_eq!(shop.paid(), Vec::<Value>::new());
    assert_eq!(shop.states(), ["superseded", "answered"]);
}

#[test]
fn whoever_leaves_or_interrupts_the_question_keeps_it_waiting() {
    for interrupted in [false, true] {
        let shop = Shop::new();
        let mut terminal = shop.at_terminal(&[]);
        terminal.until(QUESTION);
        match interrupted {
            true => crate::streams::send("-INT", terminal.child()),
            false => terminal.types("q\n"),
        }
        let (code, shown) = terminal.ended();
        assert_eq!(code, 5, "{shown}");
        assert_eq!(shop.states(), ["pending"]);
        // The command that it leaves behind works as it stands.
        let command = shown.split("approve it  paraph ").nth(1).unwrap();
        let words: Vec<_> = command.lines().next().unwrap().split(' ').collect();
        let approved = shop.sandbox.run(&words);
        assert_eq!((approved.code, approved.out.as_str()), (0, "It is done.\n"));
        assert_eq!(shop.paid().len(), 1);
    }
}

#[test]
fn a_store_that_is_gone_with_the_machine_and_a_thread_that_is_nowhere_are_told() {
    let sandbox = crate::sandbox::Sandbox::new();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let is_there = |line: &str| line.contains(" /dev/shm ") && line.contains(" - tmpfs ");
    if mounts.lines().any(is_there) {
        let store = (
            "PARAPH_STORE",
            "sqlite:///dev/shm/paraph-that-nobody-made.db",
        );
        let doctor = sandbox.run_with(&["doctor"], &[store], "");
        let warning = "is on a file system in memory (tmpfs)";
        assert!(doctor.out.contains(warning), "{}", doctor.out);
    }
    assert_eq!(sandbox.run(&["run", "support", "--quiet"]).code, 0);
    let nowhere = sandbox.run(&["runs", "resume", "--thread", "nowhere"]);
    assert_eq!(nowhere.code, 2);
    assert!(
        nowhere.err.contains("there is no thread `nowhere`"),
        "{}",
        nowhere.err
    );
}
