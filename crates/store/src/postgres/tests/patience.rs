//! How long a server that is away is waited for: by the first who ask, and by those who ask after them.

use super::{cluster::Cluster, *};

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_after_a_wait_in_vain_waits_little_until_the_server_answers_again() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let all = Duration::from_millis(1500);
    let options = Options {
        patience: all,
        ..Options::default()
    };
    let store = Postgres::connect(&cluster.url(), options).await.unwrap();
    let patience = || store.db.shared.patience();
    assert_eq!(patience(), all);
    cluster.stop(Stop::Abrupt);
    let began = tokio::time::Instant::now();
    assert!(count(&store, "a", 1).await.is_err());
    assert!(began.elapsed() >= all, "{:?}", began.elapsed());
    assert_eq!(patience(), BRIEF);
    // Whatever else is tried in vain changes nothing of that.
    let read = store.read(|tx| {
        Box::pin(async move { Ok(one(tx, Statement::new("SELECT 1", [])).await?.written) })
    });
    assert!(read.await.is_err());
    assert!(store.now_ms().await.is_err());
    assert_eq!(patience(), BRIEF);
    cluster.begin();
    assert_eq!(counted(&store, "a").await, 0);
    assert_eq!(patience(), all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patience_shorter_than_a_moment_stays_as_it_is() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let options = Options {
        patience: Duration::from_millis(50),
        ..Options::default()
    };
    let store = Postgres::connect(&cluster.url(), options).await.unwrap();
    store.db.shared.saw(false);
    assert_eq!(store.db.shared.patience(), Duration::from_millis(50));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_is_waited_for_as_a_write_is() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let open = async |patience| {
        let options = Options {
            patience,
            ..Options::default()
        };
        let store = Postgres::connect(&cluster.url(), options).await;
        Arc::new(store.unwrap())
    };
    // Neither has asked for the time before, so that none is known.
    let (patient, impatient) = (
        open(Duration::from_secs(60)).await,
        open(Duration::from_millis(100)).await,
    );
    cluster.stop(Stop::Orderly);
    let asked = tokio::spawn({
        let patient = patient.clone();
        async move { patient.now_ms().await }
    });
    let said = impatient.now_ms().await.unwrap_err().to_string();
    assert!(said.contains("Connection refused"), "{said}");
    assert!(!asked.is_finished());
    tokio::task::block_in_place(|| cluster.begin());
    assert!(asked.await.unwrap().unwrap() > 0);
}
