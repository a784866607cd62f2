//! `web_search`, `get_weather`, `fetch_page` and `think`, through a gateway, against stand-ins.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stand_in;

use paraph_gateway::{DynTool, Gateway, Limits, MemoryStore, Policy, Reply, Scope, ToolCall};
use paraph_tools::{
    Base, Outbound, OutboundSettings, Weather, WebSearch, fetch_page, get_weather, think,
    web_search,
};
use serde_json::{Value, json};
use stand_in::{Answer, Manner, StandIn, open_meteo, tavily};

fn outbound() -> Outbound {
    Outbound::new(&OutboundSettings::default()).unwrap()
}

/// What a model reads when it calls the tool.
async fn call(tool: DynTool, args: Value) -> Value {
    let name = tool.name.clone();
    let gateway = Gateway::builder(MemoryStore::shared())
        .dynamic(tool)
        .policy(Policy::new().allow([name.as_str()]))
        .build()
        .unwrap();
    let scope = Scope::new("tester", "one");
    let session = gateway.session(scope, Limits::default()).await.unwrap();
    let call = ToolCall::native(&name, &args.to_string());
    let Reply::Observed(seen) = session.call("1", &call).await.unwrap() else {
        panic!("the call was not answered");
    };
    serde_json::from_str(&seen.content).unwrap()
}

fn search_at(server: &StandIn) -> DynTool {
    let settings = WebSearch {
        base: Base::new(&server.url()).unwrap(),
        key: Some("tvly-s3cret".into()),
        max_results: 3,
    };
    web_search(&outbound(), settings).unwrap()
}

fn weather_at(server: &StandIn) -> DynTool {
    let base = Base::new(&server.url()).unwrap();
    let settings = Weather {
        forecast: base.clone(),
        geocoding: base,
    };
    get_weather(&outbound(), settings)
}

fn failed(tool: &str, message: &str) -> Value {
    json!({"error": format!("tool_error:{tool}"), "message": format!("`{tool}` failed: {message}")})
}

#[tokio::test]
async fn a_search_gives_three_results_and_sends_the_key_in_a_header() {
    let hits = (1..=5).map(|n| {
        let url = format!("https://hotels.example/{n}");
        tavily::hit(
            &format!("Hotel {n} in Boston"),
            &url,
            "rooms by the harbour",
        )
    });
    let server = tavily::start(hits.collect());
    let found = call(search_at(&server), json!({"query": "hotel boston"})).await;
    let hit = |n: u8| {
        json!({
            "title": format!("Hotel {n} in Boston"), "url": format!("https://hotels.example/{n}"),
            "content": "rooms by the harbour", "score": 0.87,
        })
    };
    assert_eq!(found, json!({"results": [hit(1), hit(2), hit(3)]}));
    let seen = server.seen();
    assert_eq!(seen[0].header("authorization"), Some("Bearer tvly-s3cret"));
    assert_eq!(
        seen[0].json(),
        Some(json!({"query": "hotel boston", "max_results": 3}))
    );
    let found = call(
        search_at(&server),
        json!({"query": "hotel boston", "max_results": 1}),
    )
    .await;
    assert_eq!(found, json!({"results": [hit(1)]}));
}

#[tokio::test]
async fn a_search_that_brings_nothing_says_why_and_is_never_an_empty_list() {
    let nothing = tavily::start(vec![tavily::hit("Hotel", "https://h.example", "in Boston")]);
    assert_eq!(
        call(search_at(&nothing), json!({"query": "camel racing"})).await,
        failed(
            "web_search",
            "the search found nothing; try fewer or other words"
        )
    );
    for (status, reason, said) in [
        (
            429,
            "slow down",
            "answered 429: too many searches at a time; no search was made (slow down); it asks to wait 17 seconds",
        ),
        (
            432,
            "plan limit",
            "answered 432: the search plan is used up; no search was made (plan limit); it asks to wait 17 seconds",
        ),
        (
            433,
            "",
            "answered 433: the search plan is used up; no search was made; it asks to wait 17 seconds",
        ),
        (
            401,
            "your key tvly-s3cret is bad",
            "answered 401: the key of the search service is not accepted (your key [secret] is bad); it asks to wait 17 seconds",
        ),
        (
            500,
            "oops",
            "answered 500: oops; it asks to wait 17 seconds",
        ),
    ] {
        let server = tavily::refusing(status, reason);
        let read = call(search_at(&server), json!({"query": "x"})).await;
        assert_eq!(
            read,
            failed("web_search", &format!("{} {said}", server.url()))
        );
    }
    for (answer, problem) in [
        (Answer::new(200, "application/json", ""), "it is empty"),
        (
            Answer::new(200, "text/html", "<html>busy"),
            "it is text/html and no JSON",
        ),
        (
            Answer::json(200, &json!({"answer": null})),
            "it is no list of search results: missing field `results`",
        ),
    ] {
        let server = StandIn::start(move |_| answer.clone());
        let read = call(search_at(&server), json!({"query": "x"})).await;
        let message = format!("the answer of {} cannot be read: {problem}", server.url());
        assert_eq!(read, failed("web_search", &message));
    }
}

#[tokio::test]
async fn a_search_without_a_key_asks_nobody() {
    let tool = web_search(&outbound(), WebSearch::tavily(None).unwrap()).unwrap();
    assert_eq!(
        call(tool, json!({"query": "x"})).await,
        failed(
            "web_search",
            "web_search: there is no key for the search service (TAVILY_API_KEY)"
        )
    );
    let settings = WebSearch::tavily(Some("two\nlines".into())).unwrap();
    assert!(!format!("{settings:?}").contains("lines"));
    assert_eq!(
        web_search(&outbound(), settings).unwrap_err().to_string(),
        "the key of web_search: it has characters that no header can carry"
    );
}

#[tokio::test]
async fn weather_says_value_unit_place_and_time() {
    let server = open_meteo::start([open_meteo::BOSTON]);
    let boston = |temperature: f64, unit: &str| {
        json!({
            "place": "Boston, Massachusetts, United States", "temperature": temperature, "unit": unit,
            "time": "2026-11-30T06:15", "timezone": "America/New_York",
        })
    };
    let read = call(weather_at(&server), json!({"place": "boston"})).await;
    assert_eq!(read, boston(21.4, "°C"));
    let args = json!({"place": " Boston, Massachusetts,US ", "unit": "fahrenheit"});
    assert_eq!(call(weather_at(&server), args).await, boston(70.5, "°F"));
    let asked: Vec<String> = server
        .seen()
        .iter()
        .filter_map(|seen| seen.parameter("name"))
        .collect();
    assert_eq!(asked, ["boston", "Boston, Massachusetts,US", "Boston"]);
}

#[tokio::test]
async fn the_rest_of_a_name_chooses_among_places_and_a_place_that_is_not_found_is_an_error_that_helps()
 {
    let paris = |region, country, country_code, latitude, celsius| open_meteo::Place {
        name: "Paris",
        region,
        country,
        country_code,
        latitude,
        longitude: 2.0,
        celsius,
    };
    let server = open_meteo::start([
        paris("Île-de-France", "France", "FR", 48.0, 12.0),
        paris("Texas", "United States", "US", 33.0, 30.0),
    ]);
    for (name, temperature) in [
        ("Paris", 12.0),
        ("Paris, Texas", 30.0),
        ("Paris, texas, USA", 30.0),
        ("Paris, FR", 12.0),
    ] {
        let read = call(weather_at(&server), json!({"place": name})).await;
        assert_eq!(read["temperature"], temperature, "{name}");
    }
    for (name, problem) in [
        (
            "Atlantis",
            "no place is called \"Atlantis\"; try the name of the nearest town, in English, without more around it",
        ),
        (
            "Paris, Ontario",
            "no place fits \"Paris, Ontario\"; there is Paris, Île-de-France, France; Paris, Texas, United States",
        ),
        (
            "Atlantis, Sea",
            "no place is called \"Atlantis, Sea\"; try the name of the nearest town, in English, without more around it",
        ),
    ] {
        let read = call(weather_at(&server), json!({"place": name})).await;
        assert_eq!(read, failed("get_weather", problem));
    }
}

#[tokio::test]
async fn weather_that_cannot_be_had_is_an_error() {
    let refusing =
        StandIn::start(|_| Answer::json(400, &json!({"error": true, "reason": "Daily limit"})));
    let read = call(weather_at(&refusing), json!({"place": "Boston"})).await;
    assert_eq!(
        read,
        failed(
            "get_weather",
            &format!("{} answered 400: Daily limit", refusing.url())
        )
    );
    let empty = StandIn::start(|seen| match seen.path() {
        "/v1/search" => Answer::json(
            200,
            &json!({"results": [{"name": "A", "latitude": 1.0, "longitude": 2.0}]}),
        ),
        _ => Answer::json(
            200,
            &json!({"current": {"time": "t", "temperature_2m": null}, "current_units": {"temperature_2m": "°C"}}),
        ),
    });
    let read = call(weather_at(&empty), json!({"place": "A, B"})).await;
    let message = read["message"].as_str().unwrap();
    assert!(
        message.contains("it is not what Open-Meteo documents"),
        "{message}"
    );
    let cut = StandIn::start(|_| Answer::json(200, &json!({"results": []})).sent(Manner::CutOff));
    let read = call(weather_at(&cut), json!({"place": "Boston"})).await;
    assert_eq!(read["error"], "tool_error:get_weather");
}

#[tokio::test]
async fn a_page_is_read_where_it_may_be_and_refused_elsewhere() {
    let server = StandIn::start(|seen| match seen.path() {
        "/moved" => Answer::redirect("/page"),
        "/page" => Answer::new(
            200,
            "text/html",
            "<title>Rooms</title><p>From 99 a night.</p>",
        ),
        "/busy" => Answer::new(429, "text/html", "<h1>Busy</h1>").with("Retry-After", "30"),
        _ => Answer::new(404, "text/html", "<h1>Gone</h1>"),
    });
    let settings = OutboundSettings {
        allowed: vec![Base::new(&server.url()).unwrap()],
        ..OutboundSettings::default()
    };
    let outbound = Outbound::new(&settings).unwrap();
    let at = |path: &str| json!({"url": format!("{}{path}", server.url())});
    let page = call(fetch_page(&outbound), at("/moved")).await;
    let url = format!("{}/page", server.url());
    assert_eq!(
        page,
        json!({"title": "Rooms", "url": url, "text": "From 99 a night."})
    );
    let gone = call(fetch_page(&outbound), at("/other")).await;
    assert_eq!(
        gone,
        failed("fetch_page", &format!("{} answered 404", server.url()))
    );
    let busy = call(fetch_page(&outbound), at("/busy")).await;
    assert_eq!(
        busy,
        failed(
            "fetch_page",
            &format!("{} answered 429; it asks to wait 30 seconds", server.url())
        )
    );
    let refused = call(
        fetch_page(&outbound),
        json!({"url": "https://169.254.169.254/"}),
    )
    .await;
    assert_eq!(refused["error"], "tool_bad_args:fetch_page");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("https://169.254.169.254 may not be reached"),
        "{message}"
    );
}

#[tokio::test]
async fn a_thought_is_read_back() {
    let thought = "Found a hotel; its temperature is missing, so ask for the weather next.";
    let read = call(think(), json!({"reflection": thought})).await;
    assert!(read.as_str().unwrap().ends_with(thought));
    let invented = call(think(), json!({"reflection": "x", "mood": "fine"})).await;
    assert_eq!(invented["error"], "tool_bad_args:think");
}

#[test]
fn each_tool_describes_itself_and_its_arguments_and_takes_no_others() {
    let server = Base::new("http://127.0.0.1:1").unwrap();
    let weather = Weather {
        forecast: server.clone(),
        geocoding: server,
    };
    let search = web_search(&outbound(), WebSearch::tavily(None).unwrap()).unwrap();
    for tool in [
        search,
        fetch_page(&outbound()),
        get_weather(&outbound(), weather),
        think(),
    ] {
        assert!(tool.about.len() > 40, "{}", tool.name);
        assert_eq!(tool.schema["additionalProperties"], false, "{}", tool.name);
        for (name, property) in tool.schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{}: {name}", tool.name);
        }
    }
}
