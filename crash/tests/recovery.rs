//! Two processes want to recover one run at the same moment (reports G18 and G20): one of them does, the other
//! finds it done, and no effect is there twice.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use crash::{
    Attempt, Counter, End, Evidence, Launch, Order, Place, Shape, Stop, When, check, uncut,
};
use tokio::runtime::Runtime;
use uuid::Uuid;

#[test]
fn of_two_who_recover_a_run_one_does_it_and_both_see_the_same_end() {
    let runtime = Runtime::new().unwrap();
    let uncut = runtime.block_on(uncut(Shape::Branched, "sync")).unwrap();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let launch = Launch::of(env!("CARGO_BIN_EXE_paraph-crash"));
    // Early in the run, while a question is open, and near its end.
    for write in [2, 12, 24, 40] {
        let counter = Counter::start().unwrap();
        let order = |process, stop| Order {
            place: Place::file(&folder.path().join(format!("recovered-{write}.db"))),
            thread: format!("recovered-{write}"),
            run: Uuid::from_u128(write as u128 + 1),
            shape: Shape::Branched,
            durability: "sync".to_owned(),
            counter: counter.address(),
            process,
            takes_ms: 1,
            stop,
        };
        let stop = Stop {
            write,
            when: When::After,
        };
        let first = launch
            .start(&order(0, Some(stop)))
            .unwrap()
            .end(None)
            .unwrap();
        assert_eq!(first.end, End::Cut);
        let both = [1, 2].map(|process| launch.start(&order(process, None)).unwrap());
        let [one, other] = both.map(|child| child.end(None).unwrap());
        assert_eq!(
            (&one.end, &other.end),
            (&End::Done, &End::Done),
            "{one:?} {other:?}"
        );
        // To the check one of them is the last; which of them did more is chance.
        let one = Attempt {
            end: End::Cut,
            ..one
        };
        let evidence = Evidence {
            order: &order(2, None),
            attempts: &[first, one, other],
            hits: &counter.hits(&format!("recovered-{write}")),
            uncut: &uncut,
        };
        let found = runtime.block_on(check(evidence)).unwrap();
        assert_eq!(found.wrong, Vec::<String>::new(), "write {write}");
    }
}
