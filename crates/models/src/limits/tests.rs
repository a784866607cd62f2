//! Who waits how long, on a paused clock.

use std::num::{NonZeroU32, NonZeroU64};

use futures::FutureExt;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn limiter(in_flight: u32, requests: u32, tokens: u64) -> Arc<Limiter> {
    Arc::new(Limiter::new(RateLimits {
        in_flight: NonZeroU32::new(in_flight),
        requests_per_minute: NonZeroU32::new(requests),
        tokens_per_minute: NonZeroU64::new(tokens),
    }))
}

/// Seconds since the test began.
fn clock() -> impl Fn() -> u64 {
    let start = Instant::now();
    move || start.elapsed().as_secs_f64().round() as u64
}

#[tokio::test(start_paused = true)]
async fn without_limits_nobody_waits() {
    let (limiter, now) = (limiter(0, 0, 0), clock());
    for _ in 0..1000 {
        drop(limiter.admit(u64::MAX).await);
    }
    assert_eq!(now(), 0);
}

#[tokio::test(start_paused = true)]
async fn never_are_more_calls_in_flight_and_who_waits_longest_is_next() {
    let limiter = limiter(2, 0, 0);
    let (one, _two) = (limiter.admit(0).await, limiter.admit(0).await);
    let mut third = Box::pin(limiter.admit(0));
    let mut fourth = Box::pin(limiter.admit(0));
    assert!((&mut third).now_or_never().is_none());
    assert!((&mut fourth).now_or_never().is_none());
    one.settle(0);
    assert!((&mut fourth).now_or_never().is_none(), "it came later");
    let third = third.await;
    drop(third);
    fourth.await;
}

#[tokio::test(start_paused = true)]
async fn a_minutes_requests_go_at_once_and_the_next_when_they_come_back() {
    let (limiter, now) = (limiter(0, 60, 0), clock());
    for _ in 0..60 {
        limiter.admit(0).await.settle(0);
    }
    assert_eq!(now(), 0);
    for second in 1..=5 {
        limiter.admit(0).await.settle(0);
        assert_eq!(now(), second);
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_are_set_aside_before_the_call_and_settled_after_it() {
    let (limiter, now) = (limiter(0, 0, 600), clock());
    let first = limiter.admit(500).await;
    let second = limiter.admit(400).await;
    assert_eq!(
        now(),
        30,
        "300 of its tokens were missing, 10 come back each second"
    );
    // It used less than was set aside.
    first.settle(100);
    limiter.admit(400).await.settle(400);
    assert_eq!(now(), 30);
    second.settle(1000);
    limiter.admit(60).await.settle(60);
    assert_eq!(now(), 96, "600 too many were used");
}

#[tokio::test(start_paused = true)]
async fn a_call_larger_than_a_minute_goes_when_all_is_there_and_others_wait_for_it() {
    let (limiter, now) = (limiter(0, 0, 600), clock());
    limiter.admit(6000).await.settle(6000);
    assert_eq!(now(), 0);
    limiter.admit(10).await.settle(10);
    assert_eq!(now(), 541);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_waiting_gives_everything_back() {
    let (limiter, now) = (limiter(1, 1, 100), clock());
    limiter.admit(100).await.settle(100);
    let waiting = tokio::time::timeout(SECOND, limiter.admit(100));
    assert!(waiting.await.is_err());
    limiter.admit(100).await.settle(100);
    assert_eq!(now(), 60, "and not 120");
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_everybody_who_was_not_admitted_yet() {
    let (limiter, now) = (limiter(0, 60, 0), clock());
    let error = ModelError::RateLimited {
        retry_after: Some(20 * SECOND),
        message: String::new(),
    };
    limiter.admit(0).await.fail(&error);
    limiter.admit(0).await.settle(0);
    assert_eq!(now(), 20);
    limiter.pause(Duration::MAX);
    assert!(limiter.admit(0).now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_used_no_tokens_and_a_broken_one_may_have() {
    let message = String::new;
    let table = [
        (ModelError::Auth { message: message() }, 0),
        (ModelError::Connect { message: message() }, 0),
        (ModelError::BadRequest { message: message() }, 0),
        (ModelError::Disconnected { message: message() }, 60),
        (ModelError::Empty { usage: None }, 60),
        (
            ModelError::Empty {
                usage: Some(Box::new(Usage::new(300, 0))),
            },
            30,
        ),
    ];
    for (error, seconds) in table {
        let (limiter, now) = (limiter(0, 0, 600), clock());
        limiter.admit(600).await.fail(&error);
        limiter.admit(600).await.settle(0);
        assert_eq!(now(), seconds, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_callers_at_once_never_overshoot_a_minute() {
    let limiter = limiter(8, 30, 3000);
    let start = Instant::now();
    let calls = (0..50).map(|_| {
        let limiter = Arc::clone(&limiter);
        tokio::spawn(async move {
            let permit = limiter.admit(100).await;
            let at = start.elapsed().as_secs_f64();
            permit.settle(100);
            at
        })
    });
    let mut times = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        times.push(call.await.unwrap());
    }
    times.sort_by(f64::total_cmp);
    assert!(times[29] < 0.01 && times[30] > 1.9, "{times:?}");
    assert!((39.0..41.5).contains(&times[49]), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_call_waits_for_is_told_and_that_its_turn_has_come() {
    let told: Arc<Mutex<Vec<Option<LimitWait>>>> = Arc::default();
    let heard = Arc::clone(&told);
    let listener = WaitListener::new(move |wait| heard.lock().unwrap().push(wait));
    let wait = |what: &str, seconds: Option<u64>| {
        Some(LimitWait {
            what: what.to_owned(),
            time: seconds.map(Duration::from_secs),
        })
    };
    let said = || std::mem::take(&mut *told.lock().unwrap());

    let requests = limiter(0, 2, 0);
    for _ in 0..2 {
        requests.admit_told(0, Some(&listener)).await.settle(0);
    }
    assert_eq!(said(), [], "there was no wait");
    requests.admit_told(0, Some(&listener)).await.settle(0);
    let own = "the configured limit requests_per_minute = 2";
    assert_eq!(said(), [wait(own, Some(30)), None]);

    let tokens = limiter(0, 0, 600);
    tokens.admit(600).await.settle(600);
    tokens.admit_told(100, Some(&listener)).await.settle(0);
    let own = "the configured limit tokens_per_minute = 600";
    assert_eq!(said(), [wait(own, Some(10)), None]);

    let slots = limiter(1, 0, 0);
    let held = slots.admit(0).await;
    let mut next = Box::pin(slots.admit_told(0, Some(&listener)));
    assert!((&mut next).now_or_never().is_none());
    assert_eq!(said(), [wait("the configured limit in_flight = 1", None)]);
    slots.pause(Duration::from_secs(7));
    held.settle(0);
    next.await.settle(0);
    let asked = "the provider, which asked to wait";
    assert_eq!(said(), [wait(asked, Some(7)), None]);
}
