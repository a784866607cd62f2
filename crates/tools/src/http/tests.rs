//! HTTP tools as a person configures them and a model calls them, against a server on this machine.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::outbound::OutboundSettings;
use paraph_gateway::{Gateway, Level, Limits, MemoryStore, Policy, Reply, Scope, ToolCall};
use serde_json::json;

use crate::stand_in::{Answer, Manner, StandIn};

fn secrets(name: &str) -> Option<SecretString> {
    match name {
        "SHOP_TOKEN" => Some("t0ken/s3cret".into()),
        "EMPTY" => Some("".into()),
        "ODD" => Some("two\nlines".into()),
        _ => None,
    }
}

fn made(settings: Value) -> Result<DynTool, String> {
    let settings: HttpTool = serde_json::from_value(settings).map_err(|error| error.to_string())?;
    let outbound = Outbound::new(&OutboundSettings::default()).unwrap();
    http_tool(&outbound, &settings, &secrets).map_err(|error| error.to_string())
}

/// What a model reads when it calls the tool: content as JSON.
async fn call(settings: Value, args: Value) -> Value {
    let tool = made(settings).unwrap();
    let name = tool.name.clone();
    let policy = match tool.level.is_effect() {
        true => Policy::new().ask(name.as_str(), paraph_gateway::Ask::default()),
        false => Policy::new().allow([name.as_str()]),
    };
    let gateway = Gateway::builder(MemoryStore::shared())
        .dynamic(tool)
        .policy(policy)
        .build();
    let gateway = gateway.unwrap();
    let session = gateway.session(Scope::new("tester", "one"), Limits::default());
    let call = ToolCall::native(&name, &args.to_string());
    match session.await.unwrap().call("1", &call).await.unwrap() {
        Reply::Observed(seen) => serde_json::from_str(&seen.content).unwrap(),
        Reply::Waiting(waiting) => json!({ "waits": waiting.says }),
        other => panic!("the call was not answered: {other:?}"),
    }
}

fn orders(server: &StandIn) -> Value {
    json!({
        "name": "order_status", "description": "Where an order is.",
        "url": format!("{}/api/orders/{{number}}?full={{full}}", server.url()),
        "headers": {"Authorization": {"env": "SHOP_TOKEN", "prefix": "Bearer "}, "X-Shop": "north"},
        "query": {"lang": "en-{full}", "token": {"env": "SHOP_TOKEN"}, "page": "{page}"},
        "arguments": {
            "number": {"type": "integer", "description": "The order's number"},
            "full": {"type": "boolean", "optional": true},
            "page": {"type": "integer", "optional": true},
        },
        "result": "$.order.status",
    })
}

#[tokio::test]
async fn a_call_sends_what_is_configured_and_gives_the_part_that_is_named() {
    let server = StandIn::start(|_| Answer::json(200, &json!({"order": {"status": "on its way"}})));
    let read = call(
        orders(&server),
        json!({"number": 2_512_292_042_121_000_001_u64, "full": true}),
    )
    .await;
    assert_eq!(read, "on its way");
    let seen = server.seen();
    assert_eq!(
        seen[0].target,
        "/api/orders/2512292042121000001?full=true&lang=en-true&token=t0ken%2Fs3cret"
    );
    assert_eq!(seen[0].header("authorization"), Some("Bearer t0ken/s3cret"));
    assert_eq!(seen[0].header("x-shop"), Some("north"));
    assert_eq!(seen[0].header("accept"), Some("application/json"));
    let read = call(orders(&server), json!({"number": 7, "page": 2})).await;
    assert_eq!(read, "on its way");
    assert_eq!(
        server.seen()[1].target,
        "/api/orders/7?lang=en-&page=2&token=t0ken%2Fs3cret"
    );
    // Many models write null for what they leave out.
    let read = call(
        orders(&server),
        json!({"number": 7, "page": null, "full": null}),
    )
    .await;
    assert_eq!(read, "on its way");
    assert_eq!(
        server.seen()[2].target,
        "/api/orders/7?lang=en-&token=t0ken%2Fs3cret"
    );
    let read = call(orders(&server), json!({"number": null})).await;
    assert_eq!(read["error"], "tool_bad_args:order_status");
}

#[test]
fn only_optional_arguments_may_be_null() {
    let settings: HttpTool = serde_json::from_value(json!({
        "name": "x", "description": "y", "url": "https://a.example.com/",
        "query": {"a": "{a}", "b": "{b}", "c": "{c}", "d": "{d}", "e": "{e}"},
        "arguments": {
            "a": {"type": "integer", "minimum": 1, "optional": true},
            "b": {"type": ["string", "integer"], "optional": true},
            "c": {"enum": ["x", "y"], "description": "Which", "optional": true},
            "d": {"description": "Anything", "optional": true},
            "e": {"type": "string", "optional": false},
        },
    }))
    .unwrap();
    assert_eq!(
        settings.schema(),
        json!({
            "type": "object",
            "properties": {
                "a": {"type": ["integer", "null"], "minimum": 1},
                "b": {"type": ["string", "integer", "null"]},
                "c": {"anyOf": [{"enum": ["x", "y"]}, {"type": "null"}], "description": "Which"},
                "d": {"description": "Anything"},
                "e": {"type": "string"},
            },
            "required": ["e"],
            "additionalProperties": false,
        })
    );
}

#[tokio::test]
async fn whatever_goes_wrong_the_model_reads_why_and_no_secret() {
    for (answer, problem) in [
        (
            Answer::json(429, &json!({"message": "slow down, t0ken/s3cret"}))
                .with("Retry-After", "12"),
            "S answered 429: slow down, [secret]; it asks to wait 12 seconds",
        ),
        (
            Answer::new(503, "text/html", "<h1>Down</h1>")
                .with("Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"),
            "S answered 503; it asks to wait until Wed, 21 Oct 2026 07:28:00 GMT",
        ),
        (
            Answer::new(500, "text/plain", "no\nway"),
            "S answered 500: no way",
        ),
        (
            Answer::json(404, &json!({"error": "no such order"})),
            "S answered 404: no such order",
        ),
        (
            Answer::new(204, "application/json", ""),
            "the answer of S cannot be read: it is empty",
        ),
        (
            Answer::new(200, "text/html", "<h1>Log in</h1>"),
            "the answer of S cannot be read: it is text/html and no JSON",
        ),
        (
            Answer::json(200, &json!({"order": {}})),
            "the answer of S has nothing at $.order.status; it is an object with order",
        ),
        (
            Answer::json(200, &json!({"order": {"status": []}})),
            "S found nothing: its answer is empty at $.order.status",
        ),
        (
            Answer::redirect("https://169.254.169.254/"),
            "S redirects to where it is not followed: https://169.254.169.254 may not be reached: it is a link-local address, where clouds keep credentials",
        ),
    ] {
        let server = StandIn::start(move |_| answer.clone());
        let read = call(orders(&server), json!({"number": 7})).await;
        let message = read["message"].as_str().unwrap();
        let message = message.replace(&server.url(), "S");
        assert_eq!(message, format!("`order_status` failed: {problem}"));
        assert!(!message.contains("t0ken"), "{message}");
    }
    let server = StandIn::start(|_| Answer::new(200, "application/json", "{").sent(Manner::Silent));
    let mut settings = orders(&server);
    settings["timeout_seconds"] = json!(0.2);
    let read = call(settings, json!({"number": 7})).await;
    let message = format!(
        "`order_status` failed: {} did not answer in 0.2 seconds",
        server.url()
    );
    assert_eq!(
        read,
        json!({"error": "tool_error:order_status", "message": message})
    );
}

#[tokio::test]
async fn a_server_that_repeats_a_secret_does_not_tell_it_to_the_model() {
    let echo = StandIn::start(|seen| {
        let header = seen.header("authorization").unwrap_or_default();
        Answer::json(
            200,
            &json!({"order": {"status": {"target": seen.target, "header": header}}}),
        )
    });
    let read = call(orders(&echo), json!({"number": 7})).await;
    assert_eq!(
        read,
        json!({"target": "/api/orders/7?lang=en-&token=[secret]", "header": "Bearer [secret]"})
    );
}

#[tokio::test]
async fn a_search_by_post_says_that_it_reads_and_text_is_read_as_text() {
    let server = StandIn::start(|seen| {
        Answer::new(
            200,
            "text/csv; charset=latin1",
            match seen.method.as_str() {
                "POST" => &b"caf\xe9,1\n"[..],
                _ => b"",
            },
        )
    });
    let mut settings = json!({
        "name": "search", "description": "Finds.", "method": "POST", "level": "read", "format": "text",
        "url": format!("{}/q", server.url()), "body": {"q": "{q}", "n": "{n}"},
        "arguments": {"q": {"type": "string"}, "n": {"type": "integer", "optional": true}},
    });
    assert_eq!(call(settings.clone(), json!({"q": "a\"b"})).await, "café,1");
    assert_eq!(server.seen()[0].json(), Some(json!({"q": "a\"b"})));
    assert_eq!(
        server.seen()[0].header("content-type"),
        Some("application/json")
    );
    // Without a word on it a POST may change something: a person decides.
    settings.as_object_mut().unwrap().remove("level");
    let read = call(settings, json!({"q": "a"})).await;
    assert_eq!(read["waits"], "Call `search` with {\"q\":\"a\"}");
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn every_mistake_is_told_at_once() {
    let error = made(json!({
        "name": "a b", "description": " ", "method": "GET", "url": "https://{host}.example.com/",
        "headers": {"Host": "x", "X-A": "{a}", "X B": "c", "X-C": "two\nlines", "Authorization": {"env": "NONE"}},
        "query": {"q": "{q"}, "body": {"a": 1}, "result": "items", "timeout_seconds": 0,
        "arguments": {"unused": {"type": "string"}, "odd": true},
    }));
    assert_eq!(
        made(json!({"name": "x", "description": "y", "url": "https://a.example.com/{b}", "arguments": {"b": {"optional": true}}})).unwrap_err(),
        "the tool `x`: `arguments`, `b`: it stands in the path and cannot be optional"
    );
    let error = error.unwrap_err();
    for problem in [
        "`name` is 1 to 128 letters, digits, `_`, `-` or `.`",
        "`description` is empty: a model would not know when to use it",
        "`url`: an argument cannot choose the server",
        "`headers`: `Host` belongs to the connection",
        "`headers`, `X-A`: arguments cannot stand in headers; a secret is written { env = \"NAME\" }",
        "`headers`: \"X B\" is no name of a header",
        "`headers`, `X-C`: it has characters that no header can carry",
        "`query`, `q`: a brace in \"{q\" has no partner; a brace itself is written twice",
        "`body`: GET has none",
        "`result`: no JSONPath such as $.data.items[*].title",
        "`timeout_seconds` is more than 0 and at most 600",
        "`arguments`, `unused`: it is used nowhere",
        "`arguments`, `odd`: write a JSON Schema",
        "the secret NONE is not set",
    ] {
        assert!(error.contains(problem), "{problem}\n{error}");
    }
    assert_eq!(
        error.matches("; `").count() + error.matches("; the").count(),
        13,
        "{error}"
    );
}

#[test]
fn what_does_not_fit_a_configuration_is_refused_by_name() {
    let with = |key: &str, value: Value| {
        let mut settings =
            json!({"name": "n", "description": "d", "url": "https://a.example.com/"});
        settings[key] = value;
        made(settings).map(|tool| tool.name)
    };
    for (key, value, problem) in [
        ("colour", json!("red"), "unknown field `colour`"),
        ("method", json!("TRACE"), "unknown variant `TRACE`"),
        (
            "headers",
            json!({"A": 1}),
            "write a text, or a secret as { env = \"NAME\", prefix = \"Bearer \" }",
        ),
        (
            "headers",
            json!({"A": {"env": "X", "value": "s3cret"}}),
            "write a text, or a secret as",
        ),
        (
            "headers",
            json!({"A": {"env": "EMPTY"}}),
            "the tool `n`: the secret EMPTY is not set",
        ),
        (
            "headers",
            json!({"A": {"env": "ODD"}}),
            "the tool `n`: the header `a` has a value that no header can carry",
        ),
        ("level", json!("destroy"), "unknown variant `destroy`"),
        (
            "url",
            json!("http://intranet/"),
            "plain http is for this machine only",
        ),
    ] {
        let error = with(key, value).unwrap_err();
        assert!(error.contains(problem), "{error}");
        assert!(
            !error.contains("s3cret") && !error.contains("lines"),
            "{error}"
        );
    }
    let mut put =
        json!({"name": "n", "description": "d", "url": "https://a.example.com/", "method": "PUT"});
    assert_eq!(made(put.clone()).unwrap().level, Level::Write);
    put["level"] = json!("read");
    assert_eq!(
        made(put.clone()).unwrap_err(),
        "the tool `n`: `level` is read, and only GET and POST can be"
    );
    put["level"] = json!("delete");
    assert_eq!(made(put).unwrap().level, Level::Delete);
    let schema = schemars::schema_for!(HttpTool).to_value();
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], json!(["name", "description", "url"]));
}
