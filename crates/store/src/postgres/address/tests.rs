//! URLs, good and bad.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use super::*;

#[test]
fn a_url_says_where_the_server_is_and_whom_to_trust() {
    for (url, place, ssl, trust) in [
        (
            "postgres://u:p@h/d",
            "postgres://u@h:5432/d",
            SslMode::Prefer,
            Trust::Any,
        ),
        (
            "postgresql://u@h:77",
            "postgres://u@h:77/u",
            SslMode::Prefer,
            Trust::Any,
        ),
        (
            "postgres://u@h,i:78/d?sslmode=disable",
            "postgres://u@h:5432,i:78/d",
            SslMode::Disable,
            Trust::Any,
        ),
        (
            "postgres://u@h/d?sslmode=require&application_name=x",
            "postgres://u@h:5432/d",
            SslMode::Require,
            Trust::Any,
        ),
        (
            "postgres://u@h/d?sslmode=verify-full",
            "postgres://u@h:5432/d",
            SslMode::Require,
            Trust::Platform,
        ),
        (
            "postgres://u@h/d?sslrootcert=%2Fa%20b.pem",
            "postgres://u@h:5432/d",
            SslMode::Require,
            Trust::File("/a b.pem".into()),
        ),
        (
            "postgres://u@%2Frun%2Fpg/d",
            "postgres://u@/run/pg:5432/d",
            SslMode::Prefer,
            Trust::Any,
        ),
    ] {
        let address = Address::read(url).unwrap();
        assert_eq!(address.place(), place);
        assert_eq!(address.config.get_ssl_mode(), ssl, "{url}");
        assert_eq!(address.trust, trust, "{url}");
    }
}

#[test]
fn an_address_that_cannot_be_read_says_why_and_keeps_the_password() {
    for (url, said) in [
        (
            "postgres://u:secret@h:port/d",
            "`postgres://u:…@h:port/d` is no store: invalid value for option `port`",
        ),
        (
            "postgres://u:secret@h/d?sslmode=sure",
            "`sslmode` is `sure`",
        ),
        (
            "postgres://u:secret@h/d?colour=red",
            "unknown option `colour`",
        ),
        (
            "postgres://u:se@cret@h/d?x",
            "`postgres://u:…@h/d?x` is no store",
        ),
        (
            "postgres://h/d?password=secret&a=%",
            "`postgres://h/d?password=…` is no store",
        ),
        (
            "postgres://h/d?sslrootcert=%4",
            "a `%` that is followed by no two digits",
        ),
        ("postgres://", "it names no host"),
    ] {
        let error = Address::read(url).err().unwrap().to_string();
        assert!(error.contains(said), "{url}: {error}");
        assert!(
            !error.contains("secret") && !error.contains("cret@"),
            "{error}"
        );
    }
}

#[test]
fn a_lost_peer_is_noticed_unless_the_url_says_when() {
    let by_default = Address::read("postgres://u@h/d").unwrap().config;
    assert_eq!(by_default.get_keepalives_idle(), Duration::from_secs(15));
    assert_eq!(
        by_default.get_connect_timeout(),
        Some(&Duration::from_secs(5))
    );
    let wished = Address::read("postgres://u@h/d?keepalives_idle=60&connect_timeout=2")
        .unwrap()
        .config;
    assert_eq!(wished.get_keepalives_idle(), Duration::from_secs(60));
    assert_eq!(wished.get_connect_timeout(), Some(&Duration::from_secs(2)));
}
