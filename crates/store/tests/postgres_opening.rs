//! Opening a Postgres store: what can be wrong with server, database and address, and how it is said.
#![cfg(feature = "postgres")]
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod cluster;

use cluster::{Cluster, Stop};
use paraph_store::{Options, Postgres};
use std::{
    fs,
    time::{Duration, Instant},
};

/// Why it cannot be opened, and that it is said soon.
async fn refused(url: &str, options: Options) -> String {
    let began = Instant::now();
    let error = Postgres::connect(url, options).await.err().unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{url}: {:?}",
        began.elapsed()
    );
    error.to_string()
}

fn impatient() -> Options {
    Options {
        patience: Duration::from_millis(200),
        ..Options::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_opened_says_what_is_wrong_and_what_to_do() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let port = cluster.port();
    cluster.sql(
        "postgres",
        "CREATE ROLE locked LOGIN PASSWORD 'right'; CREATE ROLE guest LOGIN",
    );
    let hba = cluster.data().join("pg_hba.conf");
    let open = fs::read_to_string(&hba).unwrap();
    let login = "host all locked 127.0.0.1/32 scram-sha-256\n";
    fs::write(&hba, format!("{login}{open}")).unwrap();
    cluster.sql("postgres", "SELECT pg_reload_conf()");
    cluster.sql(
        "postgres",
        "CREATE DATABASE ascii TEMPLATE template0 ENCODING 'SQL_ASCII'",
    );
    cluster.database("full");
    cluster.sql("full", "CREATE TABLE run (id int)");
    let at = |login: &str, rest: &str| format!("postgres://{login}@127.0.0.1:{port}/{rest}");
    for (url, words) in [
        (
            at("locked:wrong", "postgres"),
            "user `locked` is not let in; is the password right?",
        ),
        (at("locked", "postgres"), "password missing"),
        (
            at("postgres", "nowhere"),
            "no database `nowhere`; make it with `createdb nowhere`",
        ),
        (
            at("guest", "postgres"),
            "user `guest` may not make tables there",
        ),
        (at("postgres", "ascii"), "encoding is SQL_ASCII"),
        (at("postgres", "full"), "it holds tables of another program"),
        (at("postgres", "postgres?sslmode=require"), "TLS"),
        (
            "postgres://u:secret@no-such-host.invalid/d".to_owned(),
            "the host of no-such-host.invalid:5432 is not known",
        ),
        (
            "postgres://u@%2Fnowhere/d".to_owned(),
            "there is no socket at /nowhere:5432",
        ),
    ] {
        let said = refused(&url, Options::default()).await;
        assert!(said.contains(words), "{url}: {said}");
        assert!(
            !said.contains("secret") && !said.contains("wrong"),
            "{said}"
        );
    }
    // With the right password it opens, once the user may make tables.
    cluster.sql("postgres", "GRANT CREATE ON SCHEMA public TO locked");
    let url = at("locked:right", "postgres");
    drop(Postgres::connect(&url, Options::default()).await.unwrap());
    // Nothing of a database that was refused was changed.
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(cluster.sql("full", tables), "1");
    assert_eq!(cluster.sql("ascii", tables), "0");

    cluster.sql("postgres", "UPDATE paraph_format SET version = 77");
    let said = refused(&cluster.url(), Options::default()).await;
    for words in [
        "format 77",
        "knows formats up to 3",
        "use the version that wrote it",
    ] {
        assert!(said.contains(words), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_is_waited_for_as_long_as_patience_lasts() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    cluster.stop(Stop::Orderly);
    let port = cluster.port();
    let said = refused(&cluster.url(), impatient()).await;
    let words = format!("nothing listens at 127.0.0.1:{port}; is the server running?");
    assert!(said.contains(&words), "{said}");
    let url = cluster.url();
    let opening = tokio::spawn(async move { Postgres::connect(&url, Options::default()).await });
    tokio::task::block_in_place(|| cluster.begin());
    opening.await.unwrap().map(drop).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_wrong_or_missing_is_told_at_opening() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let with = |key: &str| Options {
        key: Some(key.repeat(32).parse().unwrap()),
        ..Options::default()
    };
    let sealed = cluster.database("sealed");
    drop(Postgres::connect(&sealed, with("5e")).await.unwrap());
    drop(Postgres::connect(&sealed, with("5e")).await.unwrap());
    let plain = cluster.database("plain");
    drop(Postgres::connect(&plain, Options::default()).await.unwrap());
    for (url, options) in [
        (&sealed, with("5f")),
        (&sealed, Options::default()),
        (&plain, with("5e")),
    ] {
        let said = refused(url, options).await;
        assert!(said.contains("key"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_hides_what_is_said_and_with_verify_full_knows_to_whom() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let roots = cluster.certificate("server", "localhost");
    let other = cluster.certificate("other", "localhost");
    cluster.stop(Stop::Orderly);
    let conf = cluster.data().join("postgresql.conf");
    let settings = fs::read_to_string(&conf).unwrap();
    fs::write(&conf, format!("{settings}\nssl = on\n")).unwrap();
    cluster.begin();
    let url = |host: &str, parameters: &str| {
        format!(
            "postgres://postgres@{host}:{}/postgres?{parameters}",
            cluster.port()
        )
    };
    let trusting =
        |file: &std::path::Path| format!("sslmode=verify-full&sslrootcert={}", file.display());
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE ssl AND application_name = 'paraph'";
    for (parameters, is_encrypted) in [
        ("sslmode=disable".to_owned(), false),
        ("sslmode=prefer".to_owned(), true),
        ("sslmode=require".to_owned(), true),
        (trusting(&roots), true),
    ] {
        let store = Postgres::connect(&url("localhost", &parameters), Options::default()).await;
        let store = store.map_err(|e| format!("{parameters}: {e}")).unwrap();
        assert_eq!(
            cluster.sql("postgres", encrypted) != "0",
            is_encrypted,
            "{parameters}"
        );
        drop(store);
        while cluster.sql("postgres", encrypted) != "0" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    for (host, parameters, words) in [
        ("localhost", trusting(&other), "certificate"),
        ("127.0.0.1", trusting(&roots), "not valid for name"),
        ("localhost", "sslmode=verify-full".to_owned(), "certificate"),
        (
            "localhost",
            "sslrootcert=/nowhere.pem".to_owned(),
            "sslrootcert /nowhere.pem",
        ),
    ] {
        let said = refused(&url(host, &parameters), Options::default()).await;
        assert!(said.contains(words), "{parameters}: {said}");
    }
}
