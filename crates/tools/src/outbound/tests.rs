//! What the guard lets through: a table on addresses and names, and real exchanges with a server on this machine.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::address::{Reach, reach};
use super::resolve::Allowed;
use super::*;
use flate2::{Compression, write::GzEncoder};
use futures::future::BoxFuture;
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::sync::Mutex;

use crate::stand_in::{Answer, Manner, StandIn};

/// Answers of a name server: the first to the first question, and so on; the last one stays.
struct Names(Mutex<(VecDeque<Vec<&'static str>>, usize)>);

impl Names {
    fn new(answers: &[&[&'static str]]) -> Arc<Names> {
        let answers = answers.iter().map(|answer| answer.to_vec()).collect();
        Arc::new(Names(Mutex::new((answers, 0))))
    }

    fn asked(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

impl Lookup for Names {
    fn lookup(&self, _: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let mut state = self.0.lock().unwrap();
        state.1 += 1;
        let answer = match state.0.len() {
            0 => return Box::pin(async { Err(io::Error::other("no such name")) }),
            1 => state.0[0].clone(),
            _ => state.0.pop_front().unwrap(),
        };
        let addresses = answer.iter().map(|text| text.parse().unwrap()).collect();
        Box::pin(async move { Ok(addresses) })
    }
}

fn outbound(settings: OutboundSettings) -> Outbound {
    Outbound::new(&settings).unwrap()
}

fn with_names(names: &Arc<Names>) -> Outbound {
    outbound(OutboundSettings {
        lookup: Some(names.clone()),
        ..OutboundSettings::default()
    })
}

/// What the guard says of an address before anything is looked up.
fn judged(address: &str) -> Result<String, String> {
    let mut url = parse(address).map_err(|error| error.to_string())?;
    check_public(&mut url).map_err(|error| error.to_string())?;
    Ok(url.to_string())
}

const NOT_HTTPS: &str = "this address cannot be fetched: only https can be used";
const PLAIN: &str =
    "this address cannot be fetched: plain http is not used; try the same address with https";
const CREDENTIALS: &str = "this address cannot be fetched: it contains credentials";
const PORT: &str = "this address cannot be fetched: only the usual port of https can be used";
const MACHINE: &str = "an address of this machine";
const PRIVATE: &str = "an address of a private network";
const CARRIER: &str = "an address behind a carrier's NAT";
const LINK_LOCAL: &str = "a link-local address, where clouds keep credentials";
const METADATA: &str = "a cloud's metadata service";
const NOBODY: &str = "an address that no server has";
const EXAMPLE: &str = "an address for examples";
const NAME: &str = "a name of a private network";

/// Hosts as a model may write them, the host as it is understood, and what it is.
const REFUSED_HOSTS: &[(&str, &str, &str)] = &[
    ("127.0.0.1", "127.0.0.1", MACHINE),
    ("127.1", "127.0.0.1", MACHINE),
    ("127.255.255.254", "127.255.255.254", MACHINE),
    ("2130706433", "127.0.0.1", MACHINE),
    ("0x7f000001", "127.0.0.1", MACHINE),
    ("0x7f.0.0.1", "127.0.0.1", MACHINE),
    ("0177.0.0.1", "127.0.0.1", MACHINE),
    ("017700000001", "127.0.0.1", MACHINE),
    ("127.0.0.1.", "127.0.0.1", MACHINE),
    ("%31%32%37.0.0.1", "127.0.0.1", MACHINE),
    ("①②⑦.⓪.⓪.①", "127.0.0.1", MACHINE),
    ("127。0。0。1", "127.0.0.1", MACHINE),
    ("[::1]", "[::1]", MACHINE),
    ("[0:0:0:0:0:0:0:1]", "[::1]", MACHINE),
    ("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", MACHINE),
    ("[::ffff:7f00:1]", "[::ffff:7f00:1]", MACHINE),
    ("[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", MACHINE),
    ("10.0.0.1", "10.0.0.1", PRIVATE),
    ("10.255.255.255", "10.255.255.255", PRIVATE),
    ("0xa.1", "10.0.0.1", PRIVATE),
    ("172.16.0.1", "172.16.0.1", PRIVATE),
    ("172.31.255.255", "172.31.255.255", PRIVATE),
    ("192.168.1.1", "192.168.1.1", PRIVATE),
    ("3232235777", "192.168.1.1", PRIVATE),
    ("[::ffff:192.168.1.1]", "[::ffff:c0a8:101]", PRIVATE),
    ("[64:ff9b::10.0.0.1]", "[64:ff9b::a00:1]", PRIVATE),
    ("[fc00::1]", "[fc00::1]", PRIVATE),
    ("[fd12:3456:789a::1]", "[fd12:3456:789a::1]", PRIVATE),
    ("100.64.0.1", "100.64.0.1", CARRIER),
    ("100.127.255.255", "100.127.255.255", CARRIER),
    (
        "198.18.0.1",
        "198.18.0.1",
        "an address for tests of networks",
    ),
    ("169.254.169.254", "169.254.169.254", LINK_LOCAL),
    ("2852039166", "169.254.169.254", LINK_LOCAL),
    ("0xa9fea9fe", "169.254.169.254", LINK_LOCAL),
    ("0251.0376.0251.0376", "169.254.169.254", LINK_LOCAL),
    ("169.254.170.2", "169.254.170.2", LINK_LOCAL),
    ("[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", LINK_LOCAL),
    ("[64:ff9b::a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", LINK_LOCAL),
    ("[fe80::1]", "[fe80::1]", LINK_LOCAL),
    ("[febf::1]", "[febf::1]", LINK_LOCAL),
    ("[fd00:ec2::254]", "[fd00:ec2::254]", METADATA),
    ("168.63.129.16", "168.63.129.16", METADATA),
    ("100.100.100.200", "100.100.100.200", METADATA),
    ("192.0.0.192", "192.0.0.192", METADATA),
    ("0.0.0.0", "0.0.0.0", NOBODY),
    ("0", "0.0.0.0", NOBODY),
    ("0x0", "0.0.0.0", NOBODY),
    ("0.1.2.3", "0.1.2.3", NOBODY),
    ("192.0.0.8", "192.0.0.8", NOBODY),
    ("224.0.0.1", "224.0.0.1", NOBODY),
    ("240.0.0.1", "240.0.0.1", NOBODY),
    ("255.255.255.255", "255.255.255.255", NOBODY),
    ("[::]", "[::]", NOBODY),
    ("[::127.0.0.1]", "[::7f00:1]", NOBODY),
    ("[ff02::1]", "[ff02::1]", NOBODY),
    ("[fec0::1]", "[fec0::1]", NOBODY),
    ("[64:ff9b:1::1]", "[64:ff9b:1::1]", NOBODY),
    ("[2001:10::1]", "[2001:10::1]", NOBODY),
    ("192.0.2.1", "192.0.2.1", EXAMPLE),
    ("198.51.100.1", "198.51.100.1", EXAMPLE),
    ("203.0.113.1", "203.0.113.1", EXAMPLE),
    ("[2001:db8::1]", "[2001:db8::1]", EXAMPLE),
    ("[3fff::1]", "[3fff::1]", EXAMPLE),
    ("192.88.99.1", "192.88.99.1", "a relay of 6to4"),
    ("[2002:7f00:1::]", "[2002:7f00:1::]", "a tunnel of 6to4"),
    (
        "[2001:0:4136:e378::1]",
        "[2001:0:4136:e378::1]",
        "a tunnel of Teredo",
    ),
    ("localhost", "localhost", NAME),
    ("LOCALHOST", "localhost", NAME),
    ("localhost.", "localhost", NAME),
    ("ⓛocalhost", "localhost", NAME),
    ("a.localhost", "a.localhost", NAME),
    ("metadata.google.internal", "metadata.google.internal", NAME),
    ("printer.local", "printer.local", NAME),
    ("wiki.corp", "wiki.corp", NAME),
    ("nas.home.arpa", "nas.home.arpa", NAME),
    ("x.onion", "x.onion", NAME),
    ("intranet", "intranet", NAME),
];

#[test]
fn no_way_of_writing_a_host_that_is_not_public_gets_past_the_guard() {
    assert!(REFUSED_HOSTS.len() >= 60);
    for (host, understood, why) in REFUSED_HOSTS {
        assert_eq!(
            judged(&format!("https://{host}/latest/meta-data/?a=b")),
            Err(format!(
                "https://{understood} may not be reached: it is {why}"
            )),
            "{host}"
        );
    }
}

#[test]
fn only_https_at_its_usual_port_without_credentials_is_fetched() {
    for (address, problem) in [
        ("http://example.com/", PLAIN),
        ("http://169.254.169.254/", PLAIN),
        ("ftp://example.com/", NOT_HTTPS),
        ("file:///etc/passwd", NOT_HTTPS),
        ("gopher://example.com/_x", NOT_HTTPS),
        ("dict://example.com:11211/", NOT_HTTPS),
        ("data:text/html,hi", NOT_HTTPS),
        ("javascript:alert(1)", NOT_HTTPS),
        ("ws://example.com/", NOT_HTTPS),
        ("unix:/run/docker.sock", NOT_HTTPS),
        ("https://user:secret@example.com/", CREDENTIALS),
        ("https://example.com@127.0.0.1/", CREDENTIALS),
        ("https://:secret@example.com/", CREDENTIALS),
        ("https://example.com:22/", PORT),
        ("https://example.com:8443/", PORT),
        ("https://example.com:80/", PORT),
        ("https://1.1.1.1:6379/", PORT),
        (
            "https://example.com../",
            "this address cannot be fetched: its host name is none",
        ),
    ] {
        assert_eq!(judged(address), Err(problem.to_owned()), "{address}");
    }
    for address in [
        "",
        "example.com/page",
        "/etc/passwd",
        "https://",
        "https://[::1",
        "https://a b/",
    ] {
        let error = judged(address).unwrap_err();
        assert!(
            error.ends_with("write a whole address such as https://example.org/page"),
            "{address}: {error}"
        );
    }
    let long = format!("https://example.com/{}", "a".repeat(5_000));
    assert_eq!(
        judged(&long),
        Err("this address cannot be fetched: it is longer than 4096 bytes".to_owned())
    );
}

#[test]
fn what_is_public_is_fetched_as_it_was_written() {
    for (address, fetched) in [
        ("https://example.com", "https://example.com/"),
        (" https://example.com/a?b=c#d ", "https://example.com/a?b=c"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com./x", "https://example.com/x"),
        ("https://münchen.de/", "https://xn--mnchen-3ya.de/"),
        ("https://1.1.1.1/", "https://1.1.1.1/"),
        ("https://172.15.0.1/", "https://172.15.0.1/"),
        ("https://172.32.0.1/", "https://172.32.0.1/"),
        ("https://100.63.0.1/", "https://100.63.0.1/"),
        ("https://100.128.0.1/", "https://100.128.0.1/"),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
        ("https://[::ffff:1.1.1.1]/", "https://[::ffff:101:101]/"),
        ("https://[64:ff9b::1.1.1.1]/", "https://[64:ff9b::101:101]/"),
        (
            "https://localhost.example.com/",
            "https://localhost.example.com/",
        ),
        ("https://mylocal/../x", ""),
    ] {
        match fetched {
            "" => assert!(judged(address).is_err(), "{address}"),
            fetched => assert_eq!(judged(address), Ok(fetched.to_owned())),
        }
    }
}

proptest::proptest! {
    #[test]
    fn an_ipv4_address_is_judged_alike_however_it_is_dressed(bits: u32) {
        let v4 = std::net::Ipv4Addr::from_bits(bits);
        let plain = reach(v4.into());
        proptest::prop_assert_eq!(reach(v4.to_ipv6_mapped().into()), plain);
        let url = |host: String| judged(&format!("https://{host}/"));
        let public = plain == Reach::Public;
        for host in [
            v4.to_string(),
            bits.to_string(),
            format!("{bits:#x}"),
            format!("0{bits:o}"),
            format!("[::ffff:{v4}]"),
            format!("[64:ff9b::{v4}]"),
        ] {
            proptest::prop_assert_eq!(url(host).is_ok(), public);
        }
    }
}

#[tokio::test]
async fn a_name_is_refused_for_any_address_that_is_not_public() {
    for (answers, why) in [
        (&["127.0.0.1"][..], MACHINE),
        (&["::1"], MACHINE),
        (&["::ffff:10.0.0.1"], PRIVATE),
        (&["1.1.1.1", "10.0.0.1"], PRIVATE),
        (&["2606:4700::1111", "169.254.169.254"], LINK_LOCAL),
        (&["fd00:ec2::254"], METADATA),
        (&["0.0.0.0"], NOBODY),
    ] {
        let names = Names::new(&[answers]);
        let error = with_names(&names)
            .fetch("https://rebind.example.com/")
            .await;
        assert_eq!(
            error,
            Err(Error::Forbidden {
                host: "rebind.example.com".to_owned(),
                why
            }),
            "{answers:?}"
        );
    }
    let nothing = with_names(&Names::new(&[&[]]));
    let error = nothing
        .fetch("https://empty.example.com/")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "empty.example.com was not found: the name has no address"
    );
    let unknown = with_names(&Names::new(&[]));
    let error = unknown
        .fetch("https://none.example.com/")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "none.example.com was not found: no such name"
    );
}

#[tokio::test]
async fn the_address_that_was_judged_is_the_one_connected_to_though_the_name_turns() {
    let good = StandIn::start(|_| Answer::new(200, "text/plain", "good"));
    let names = Names::new(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let outbound = with_names(&names);
    let base = Base::plain_http(&format!("http://turns.example.com:{}", good.port())).unwrap();
    let request = || Request::new(Method::GET, base.join("x"));
    // One look-up for the connection; the turned answer would have been the second.
    let fetched = outbound.send(request()).await.unwrap();
    assert_eq!((fetched.body.as_slice(), names.asked()), (&b"good"[..], 1));
    // The next connection looks up again, and what the name says now is judged again.
    let error = outbound.send(request()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("turns.example.com may not be reached: it is {LINK_LOCAL}")
    );
    assert_eq!((good.seen().len(), names.asked()), (1, 2));
}

#[tokio::test]
async fn configured_servers_may_be_private_but_never_hand_out_credentials() {
    let judging = |answers: &[&'static str]| Judging {
        lookup: Names::new(&[answers]),
        allowed: Allowed::Own,
        proxies: Arc::new([]),
    };
    for own in ["127.0.0.1", "10.1.2.3", "fd12::1", "100.64.0.1"] {
        let found = judging(&[own]).judged("tools.example.com").await;
        assert_eq!(found, Ok(vec![own.parse().unwrap()]));
    }
    for never in ["169.254.169.254", "0.0.0.0", "fe80::1", "168.63.129.16"] {
        let found = judging(&["10.1.2.3", never])
            .judged("tools.example.com")
            .await;
        assert!(matches!(found, Err(Error::Forbidden { .. })), "{never}");
    }
    for (text, problem) in [
        (
            "http://tools.example.com",
            "http://tools.example.com: plain http is for this machine only, unless it is allowed for this address",
        ),
        (
            "ftp://tools.example.com",
            "ftp://tools.example.com: only https can be used",
        ),
        (
            "https://user:pass@tools.example.com",
            "https://tools.example.com: credentials do not belong into an address",
        ),
        (
            "https://169.254.169.254/",
            "https://169.254.169.254: a link-local address, where clouds keep credentials",
        ),
        (
            "tvly-123456",
            "base URL: not an address: relative URL without a base",
        ),
    ] {
        assert_eq!(Base::new(text).unwrap_err().to_string(), problem);
    }
    for text in [
        "https://10.0.0.1:8443/api/",
        "http://localhost:1",
        "http://[::1]:1",
        "http://127.0.0.1:1/v1",
    ] {
        assert!(Base::new(text).is_ok(), "{text}");
    }
}

#[tokio::test]
async fn every_hop_of_a_redirect_is_judged_and_leaves_our_headers_behind() {
    for (location, problem) in [
        (
            "https://169.254.169.254/latest",
            format!("https://169.254.169.254 may not be reached: it is {LINK_LOCAL}"),
        ),
        ("http://example.com/", PLAIN.to_owned()),
        ("https://127.0.0.1:8443/", PORT.to_owned()),
        (
            "https://127.0.0.1/",
            format!("https://127.0.0.1 may not be reached: it is {MACHINE}"),
        ),
        ("file:///etc/passwd", NOT_HTTPS.to_owned()),
        ("//localhost/", PLAIN.to_owned()),
    ] {
        let server = StandIn::start(move |_| Answer::redirect(location));
        let request = Request::new(Method::GET, Base::new(&server.url()).unwrap().join("a"));
        let error = outbound(OutboundSettings::default()).send(request).await;
        let error = error.unwrap_err();
        let whose = format!("{} redirects to where it is not followed: ", server.url());
        assert_eq!(error.to_string(), whose + &problem, "{location}");
        assert!(matches!(error, Error::Redirect { .. }), "{error:?}");
    }

    let other = StandIn::start(|_| Answer::new(200, "text/plain", "there"));
    let elsewhere = format!("{}/b", other.url());
    let server = StandIn::start(move |seen| match seen.path() {
        "/a" => Answer::redirect("/again"),
        _ => Answer::redirect(&elsewhere),
    });
    let allowing = outbound(OutboundSettings {
        allowed: vec![Base::new(&other.url()).unwrap()],
        ..OutboundSettings::default()
    });
    let mut request = Request::new(Method::GET, Base::new(&server.url()).unwrap().join("a"));
    let secret = reqwest::header::HeaderValue::from_static("Bearer s3cret");
    request.headers.insert("authorization", secret);
    let fetched = allowing.send(request).await.unwrap();
    assert_eq!(fetched.url, format!("{}/b", other.url()));
    let sent: Vec<_> = server
        .seen()
        .iter()
        .map(|seen| seen.header("authorization").map(str::to_owned))
        .collect();
    assert_eq!(sent, vec![Some("Bearer s3cret".to_owned()); 2]);
    assert_eq!(other.seen()[0].header("authorization"), None);
    assert_eq!(other.seen()[0].header("cookie"), None);
}

#[tokio::test]
async fn redirects_are_counted_and_never_repeat_what_sends_a_body() {
    let server = StandIn::start(|_| Answer::redirect("/again").with("Set-Cookie", "a=b"));
    let base = Base::new(&server.url()).unwrap();
    let outbound = outbound(OutboundSettings::default());
    let error = outbound
        .send(Request::new(Method::GET, base.join("a")))
        .await;
    assert_eq!(
        error.unwrap_err().to_string(),
        format!("{} redirects more than 5 times", server.url())
    );
    assert_eq!(server.seen().len(), 6);
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| seen.header("cookie").is_none() && seen.header("referer").is_none())
    );
    let error = outbound
        .send(Request::new(Method::POST, base.join("a")))
        .await;
    assert_eq!(
        error.unwrap_err().to_string(),
        format!(
            "{} redirects a request that is sent once only; configure the address it redirects to",
            server.url()
        )
    );
    assert_eq!(server.seen().len(), 7);
}

#[tokio::test]
async fn what_configuration_allows_a_model_to_name_is_fetched_and_nothing_beside_it() {
    let server = StandIn::start(|seen| match seen.path() {
        "/wiki/out" => Answer::redirect("/admin"),
        _ => Answer::new(200, "text/plain", "a page"),
    });
    let base = format!("{}/wiki/", server.url());
    let outbound = outbound(OutboundSettings {
        allowed: vec![Base::new(&base).unwrap()],
        ..OutboundSettings::default()
    });
    for path in ["/wiki", "/wiki/", "/wiki/a?b=c", "/x/../wiki/a"] {
        let fetched = outbound.fetch(&format!("{}{path}", server.url())).await;
        assert_eq!(fetched.unwrap().body, b"a page", "{path}");
    }
    for path in [
        "/",
        "/admin",
        "/wikipedia",
        "/wiki/../admin",
        "/wiki/%2e%2e/admin",
    ] {
        let error = outbound.fetch(&format!("{}{path}", server.url())).await;
        assert_eq!(error.unwrap_err().to_string(), PLAIN, "{path}");
    }
    let led = outbound.fetch(&format!("{base}out")).await.unwrap_err();
    let whose = format!("{} redirects to where it is not followed", server.url());
    assert_eq!(led.to_string(), format!("{whose}: {PLAIN}"));
    let asked: Vec<String> = server.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(
        asked,
        ["/wiki", "/wiki/", "/wiki/a?b=c", "/wiki/a", "/wiki/out"]
    );
}

#[tokio::test]
async fn answers_are_read_up_to_a_size_and_a_time() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&vec![b'0'; 20_000_000]).unwrap();
    let bomb = packed.finish().unwrap();
    let server = StandIn::start(move |seen| match seen.path() {
        "/bomb" => Answer::new(200, "text/plain", bomb.clone()).with("Content-Encoding", "gzip"),
        "/endless" => Answer::new(200, "text/plain", "x").sent(Manner::Endless),
        "/silent" => Answer::new(200, "text/plain", "x").sent(Manner::Silent),
        "/cut" => Answer::new(200, "text/plain", "half of this").sent(Manner::CutOff),
        "/brotli" => Answer::new(200, "text/plain", "x").with("Content-Encoding", "br"),
        _ => Answer::new(200, "text/plain", "hello"),
    });
    let base = Base::new(&server.url()).unwrap();
    let outbound = outbound(OutboundSettings::default());
    let ask = async |path: &str| {
        let mut request = Request::new(Method::GET, base.join(path));
        request.bytes = 100_000;
        request.total = match path {
            "silent" => Duration::from_millis(200),
            _ => Duration::from_secs(20),
        };
        let fetched = outbound.send(request).await;
        fetched.map_err(|error| error.to_string().replace(&server.url(), "S"))
    };
    let too_large = "the answer of S is larger than the 100000 bytes that are read".to_owned();
    assert_eq!(ask("bomb").await, Err(too_large.clone()));
    assert_eq!(ask("endless").await, Err(too_large));
    assert_eq!(
        ask("silent").await,
        Err("S did not answer in 0.2 seconds".to_owned())
    );
    let cut = ask("cut").await.unwrap_err();
    assert!(cut.starts_with("the answer of S cannot be read: "), "{cut}");
    let brotli = "the answer of S cannot be read: it is packed in a way that was not asked for";
    assert_eq!(ask("brotli").await, Err(brotli.to_owned()));
    assert_eq!(
        ask("fine").await,
        Ok(Fetched {
            status: 200,
            url: format!("{}/fine", server.url()),
            content_type: "text/plain".to_owned(),
            retry_after: None,
            body: b"hello".to_vec(),
        })
    );
    let seen = server.seen();
    let header = |name| seen.last().unwrap().header(name).map(str::to_owned);
    assert_eq!(header("accept-encoding"), Some("gzip, deflate".to_owned()));
    assert_eq!(
        header("user-agent"),
        Some(concat!("paraph/", env!("CARGO_PKG_VERSION")).to_owned())
    );
}

#[tokio::test]
async fn a_slow_answer_is_given_up_though_bytes_keep_coming() {
    let server = StandIn::start(|_| Answer::new(200, "text/plain", "x").sent(Manner::Endless));
    let mut request = Request::new(Method::GET, Base::new(&server.url()).unwrap().join("a"));
    (request.bytes, request.total) = (usize::MAX, Duration::from_millis(300));
    let error = outbound(OutboundSettings::default()).send(request).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        format!("{} did not answer in 0.3 seconds", server.url())
    );
}

#[tokio::test]
async fn a_proxy_sees_no_name_that_is_found_to_be_private_and_is_no_server_itself() {
    let proxy = StandIn::start(|_| Answer::new(502, "text/plain", "the proxy was asked"));
    let settings = |names: &Arc<Names>| OutboundSettings {
        proxies: Proxies {
            http: None,
            https: Some(format!("http://proxy.example.com:{}", proxy.port())),
            no_proxy: None,
        },
        lookup: Some(names.clone()),
        ..OutboundSettings::default()
    };
    let private = Names::new(&[&["10.0.0.1"]]);
    let error = outbound(settings(&private))
        .fetch("https://inside.example.com/")
        .await;
    assert_eq!(
        error.unwrap_err().to_string(),
        format!("inside.example.com may not be reached: it is {PRIVATE}")
    );
    let error = outbound(settings(&private))
        .fetch("https://proxy.example.com/")
        .await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "https://proxy.example.com may not be reached: it is the proxy"
    );
    assert_eq!(proxy.seen(), []);
    // The name is public, the proxy is on this machine: it is asked to connect.
    let public = Names::new(&[&["1.1.1.1"], &["127.0.0.1"]]);
    let error = outbound(settings(&public))
        .fetch("https://outside.example.com/a?key=s3cret")
        .await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("https://outside.example.com could not be reached"),
        "{error}"
    );
    assert!(!error.contains("s3cret"));
    let asked: Vec<_> = proxy
        .seen()
        .into_iter()
        .map(|seen| (seen.method, seen.target))
        .collect();
    assert_eq!(
        asked,
        [("CONNECT".to_owned(), "outside.example.com:443".to_owned())]
    );
}

#[test]
fn settings_that_cannot_be_used_are_named_without_their_secrets() {
    let refused = |settings: OutboundSettings| Outbound::new(&settings).unwrap_err().to_string();
    let proxy = |address: &str| OutboundSettings {
        proxies: Proxies {
            https: Some(address.to_owned()),
            ..Proxies::default()
        },
        ..OutboundSettings::default()
    };
    assert_eq!(
        refused(proxy("socks5://u:s3cret@h:1")),
        "HTTPS_PROXY: only http and https proxies can be used"
    );
    assert_eq!(
        refused(proxy("http://u:s3cret@")),
        "HTTPS_PROXY: not the address of a proxy"
    );
    assert!(!format!("{:?}", proxy("http://u:s3cret@h")).contains("s3cret"));
    let settings = OutboundSettings {
        ca_certificates: Some("no certificate".to_owned()),
        ..OutboundSettings::default()
    };
    assert_eq!(
        refused(settings),
        "CA certificates: there is none in the file"
    );
}
