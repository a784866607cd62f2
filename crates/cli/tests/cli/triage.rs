//! Triage through the binary: measured.

use crate::sandbox::Sandbox;

#[test]
fn the_evaluations_are_reported_apart() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&["eval", "gates", "--trials", "2", "--json"]);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    let report = ended.json();
    assert_eq!(report["cases"], report["passed"]);
    assert_eq!(
        (&report["original"], &report["trials"]),
        (&serde_json::json!(11), &serde_json::json!(2))
    );
    let ended = sandbox.run(&["eval", "gates", "--case", "nothing/"]);
    assert_eq!(ended.code, 2);
    let ended = sandbox.run(&["eval", "diagnosis", "--model", "rehearsal"]);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert!(
        ended
            .out
            .contains("graded by code (a capability, and no gate)")
            && ended.out.contains("95 % interval"),
        "{}",
        ended.out
    );
    assert!(!ended.out.contains("opinion"));
}
