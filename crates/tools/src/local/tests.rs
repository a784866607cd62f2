//! What the tools over a folder find, read and refuse.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;

use paraph_gateway::{Gateway, Limits, MemoryStore, Policy, Reply, Scope, ToolCall};
use serde_json::{Value, json};

use super::passage::MAX_CHARS;
use super::*;
use paraph_retrieval::{wanted, words};

const TEA: [(&str, &str); 4] = [
    (
        "green.md",
        "# Green tea\n\nSteep green tea for two minutes at 75 degrees.\n\nIt turns bitter in boiling water.",
    ),
    (
        "black/assam.md",
        "Assam\n=====\n\nA strong black tea. Steep it for four minutes in boiling water.",
    ),
    (
        "日本.txt",
        "抹茶は石臼で挽いた緑茶です。\n\nWhisk the powder; never boil it.",
    ),
    (
        "page.html",
        "<title>Tea &amp; water</title><nav>Menu</nav><h1>Water</h1><p>Soft water is best for steeping.<script>x()</script>",
    ),
];

fn tea() -> LocalSources {
    LocalSources::from_documents(&TEA)
}

/// What a model reads of a search: titles and addresses.
fn found(sources: &LocalSources, query: &str, max_results: Option<u8>) -> Vec<(String, String)> {
    let query = Query {
        query: query.to_owned(),
        max_results,
    };
    let Ok(found) = search(&sources.index, &query) else {
        return Vec::new();
    };
    let found = serde_json::to_value(found).unwrap();
    let text = |hit: &Value, name: &str| hit[name].as_str().unwrap().to_owned();
    let hits = found["results"].as_array().unwrap().iter();
    hits.map(|hit| (text(hit, "title"), text(hit, "url")))
        .collect()
}

fn read(sources: &LocalSources, url: &str, start: Option<usize>) -> Result<Page, Error> {
    let url = url.to_owned();
    page(&sources.index, &Address { url, start })
}

#[test]
fn the_best_passage_of_each_document_is_found_in_a_stable_order() {
    let green = ("Green tea", "local:green.md");
    let assam = ("Assam", "local:black/assam.md");
    let matcha = ("日本.txt", "local:%E6%97%A5%E6%9C%AC.txt");
    let water = ("Tea & water", "local:page.html");
    for (query, expected) in [
        ("steep green tea", vec![green, water, assam]),
        ("BITTER", vec![green]),
        ("the boiled waters", vec![assam, green, water]),
        ("抹茶", vec![matcha]),
        ("whisking powders", vec![matcha]),
        ("assam", vec![assam]),
        ("75", vec![green]),
        ("menu", vec![]),
        ("x()", vec![]),
        ("what is the height of it", vec![]),
        ("?!", vec![]),
    ] {
        let expected: Vec<_> = expected
            .iter()
            .map(|(title, url)| ((*title).to_owned(), (*url).to_owned()))
            .collect();
        let mut found = found(&tea(), query, None);
        if query == "the boiled waters" {
            // Further down stands what has one of the two words.
            found.truncate(3);
        }
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn a_document_is_shown_twice_only_if_too_few_others_fit() {
    let long = |word: &str| format!("# {word}\n\n{}\n\n{}", word.repeat(900), "tea ".repeat(250));
    let (one, two) = (long("x"), long("y"));
    let sources = LocalSources::from_documents(&[("one.md", &one), ("two.md", &two)]);
    let urls = |most| -> Vec<String> {
        let found = found(&sources, "tea x y", Some(most));
        found.into_iter().map(|(_, url)| url).collect()
    };
    assert_eq!(urls(1), ["local:one.md"]);
    assert_eq!(urls(2), ["local:one.md", "local:two.md"]);
    assert_eq!(urls(3), ["local:one.md", "local:two.md", "local:one.md"]);
    assert_eq!(urls(20).len(), 4);
}

#[test]
fn a_document_is_read_by_exactly_its_address() {
    let sources = tea();
    let page = read(&sources, "local:page.html", None).unwrap();
    let expected = json!({"title": "Tea & water", "url": "local:page.html", "text": "# Water\n\nSoft water is best for steeping."});
    assert_eq!(serde_json::to_value(page).unwrap(), expected);
    let rest = read(&sources, "local:green.md", Some(13)).unwrap();
    assert_eq!(
        serde_json::to_value(rest).unwrap()["text"],
        TEA[0].1.get(13..).unwrap()
    );
    let takes = "only documents of the folder are read here, by the addresses that web_search gives, like \
        local:path/of/a/document.md";
    for (url, problem) in [
        (
            "https://example.org/",
            "`https://example.org/` is not of the folder",
        ),
        ("green.md", "`green.md` is not of the folder"),
        ("LOCAL:green.md", "`LOCAL:green.md` is not of the folder"),
        (
            "file:///etc/passwd",
            "`file:///etc/passwd` is not of the folder",
        ),
        ("local:../green.md", "`local:../green.md` leads upwards"),
        (
            "local:black/..\\green.md",
            "`local:black/..\\green.md` leads upwards",
        ),
        (
            "local:%2e%2e/green.md",
            "there is no document `local:%2e%2e/green.md`",
        ),
        ("local:/green.md", "there is no document `local:/green.md`"),
        ("local:black", "there is no document `local:black`"),
        (
            "local:green.md#tea",
            "there is no document `local:green.md#tea`",
        ),
        ("local:", "there is no document `local:`"),
    ] {
        let error = read(&sources, url, None).unwrap_err();
        let expected = format!("this address cannot be fetched: {problem}; {takes}");
        assert_eq!(error.to_string(), expected);
    }
    let beyond = read(&sources, "local:green.md", Some(usize::MAX)).unwrap_err();
    assert_eq!(
        beyond.to_string(),
        "the page ends before: it has 94 characters"
    );
}

#[test]
fn a_long_document_comes_in_parts_that_join_to_the_whole() {
    let whole = "wörd ".repeat(5_000);
    let sources = LocalSources::from_documents(&[("long.txt", &whole)]);
    let (mut joined, mut start, mut parts) = (String::new(), Some(0), 0);
    while let Some(at) = start {
        let page = read(&sources, "local:long.txt", Some(at)).unwrap();
        let page = serde_json::to_value(page).unwrap();
        joined.push_str(page["text"].as_str().unwrap());
        start = page["next"].as_u64().map(|next| next as usize);
        parts += 1;
    }
    assert_eq!((joined.as_str(), parts), (whole.trim(), 3));
}

#[test]
fn titles_are_the_first_heading_or_the_files_name() {
    for (path, text, title) in [
        (
            "a.md",
            "text\n\n## Second *level* ##\n\n# First",
            "Second *level*",
        ),
        ("a.md", "---\ntitle: settings\n---\n\n# Real", "Real"),
        ("a.md", "```\n# a comment\n```\n# Real", "Real"),
        ("a.md", "#tag is no heading", "a.md"),
        ("a.rst", "=====\nTitle\n=====\n\ntext", "Title"),
        ("b/a.rst", "Title\n~~~~~\ntext", "Title"),
        ("b/a.txt", "one\n\n-----\ntwo", "a.txt"),
        ("a.html", "<h2>Heading</h2>text", "Heading"),
        ("a.HTM", "<p>text", "a.HTM"),
    ] {
        let sources = LocalSources::from_documents(&[(path, text)]);
        let titles: Vec<_> = sources.index.documents().iter().map(|d| &d.title).collect();
        assert_eq!(titles, [title], "{text}");
    }
}

#[test]
fn words_are_compared_without_their_endings() {
    for (one, other) in [
        ("retrieval", "retrieving"),
        ("Reranker", "reranked"),
        ("queries", "query"),
        ("planned", "planning"),
        ("caches", "caching"),
        ("evaluation", "evaluate"),
        ("boxes", "box"),
        ("1,200", "1200"),
        ("cafe\u{301}", "cafe"),
        ("ÄRGER", "ärger"),
    ] {
        assert_eq!(words(one), words(other));
    }
    for (one, other) in [
        ("6.1", "61"),
        ("string", "stred"),
        ("glass", "glas"),
        ("feed", "fe"),
    ] {
        assert_ne!(words(one), words(other));
    }
    assert_eq!(
        wanted("How is the tea, and the TEA's price?"),
        ["pric", "s", "tea"]
    );
    assert_eq!(wanted("to be or not to be"), ["be", "not", "or", "to"]);
}

#[test]
fn passages_keep_headings_with_their_text_and_are_cut_where_sentences_end() {
    let sentence = format!("{}. ", "word ".repeat(60).trim());
    let text = format!(
        "# One\n\n## Two\n\nshort\n\nalso short\n\n# Three\n\n{}\n\nend",
        sentence.repeat(9)
    );
    let text = text.as_str();
    let all: Vec<_> = passage::passages(text)
        .into_iter()
        .map(|range| text.get(range).unwrap())
        .collect();
    assert_eq!(all.first(), Some(&"# One\n\n## Two\n\nshort\n\nalso short"));
    assert_eq!(all.get(1), Some(&"# Three"));
    let long = all.get(2..all.len() - 1).unwrap();
    assert!(
        long.iter()
            .all(|part| part.ends_with('.') && part.chars().count() <= MAX_CHARS)
    );
    assert_eq!(long.join(" "), sentence.repeat(9).trim());
    assert_eq!(all.last(), Some(&"end"));
}

#[test]
fn odd_documents_in_the_program_are_left_out_and_noted() {
    let documents = [
        ("a.md", "text"),
        ("a.md", "other"),
        ("/etc/passwd", "text"),
        ("a/../b.md", "text"),
        ("blank.md", " \u{200b}\n"),
    ];
    let sources = LocalSources::from_documents(&documents);
    assert_eq!(sources.len(), 1);
    assert_eq!(
        sources.notes(),
        [
            "not read, documents without a relative path: /etc/passwd, a/../b.md",
            "not read, second documents of one path: a.md",
            "not read, files without text: blank.md",
        ]
    );
    assert!(LocalSources::from_documents(&[]).is_empty());
}

#[cfg(unix)]
#[test]
fn a_folder_is_read_with_all_that_is_odd_in_it_told() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.md"), "canary").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let write = |path: &str, bytes: &[u8]| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    write("b #1.md", b"# Spaced\n\nharbour");
    write("a/deep/c.RST", b"harbour");
    write(".hidden/linked.md", b"harbour behind a link");
    write(".env.md", b"canary");
    write("picture.png", b"\x89PNG");
    write("latin.txt", b"caf\xe9");
    write("empty.md", b"");
    write("large.md", &vec![b'a'; 10_000_001]);
    for n in 0..7 {
        write(&format!("data/{n}.csv"), b"1,2");
    }
    write(&format!("{}/far.md", ["d"; 17].join("/")), b"canary");
    write(&format!("{}/near.md", ["d"; 16].join("/")), b"harbour");
    fs::write(root.join(OsStr::from_bytes(b"\xff.md")), "canary").unwrap();
    symlink(outside.path().join("secret.md"), root.join("leaves.md")).unwrap();
    symlink(outside.path(), root.join("leaves")).unwrap();
    symlink("nowhere", root.join("dangling.md")).unwrap();
    symlink("..", root.join("a/loop")).unwrap();
    symlink("b #1.md", root.join("again.md")).unwrap();
    symlink(".hidden/linked.md", root.join("linked.md")).unwrap();

    let sources = local_sources(root).unwrap();
    let urls: Vec<_> = sources
        .index
        .documents()
        .iter()
        .map(|d| d.url.clone())
        .collect();
    let near = format!("local:{}/near.md", ["d"; 16].join("/"));
    assert_eq!(
        urls,
        [
            "local:a/deep/c.RST",
            "local:b%20%231.md",
            &near,
            "local:linked.md"
        ]
    );
    assert_eq!(
        sources.notes(),
        [
            "not read, files of other kinds: picture.png, data/0.csv, data/1.csv, data/2.csv, data/3.csv and 3 more",
            "not read, hidden files and folders: .env.md, .hidden",
            "not read, links that leave the folder or lead nowhere: dangling.md, leaves, leaves.md",
            "not read, names that are not UTF-8: \u{fffd}.md",
            &format!(
                "not read, folders more than 16 deep: {}",
                ["d"; 17].join("/")
            ),
            "not read, files of more than 10 MB: large.md",
            "not read, files that are not UTF-8: latin.txt",
            "not read, files without text: empty.md",
        ]
    );
    assert_eq!(found(&sources, "canary", None), []);
    assert_eq!(found(&sources, "harbour", Some(20)).len(), 4);
    let page = serde_json::to_string(&read(&sources, "local:b%20%231.md", None).unwrap()).unwrap();
    assert!(!page.contains(root.to_str().unwrap()), "{page}");
}

#[test]
fn a_folder_that_cannot_be_used_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let inside = |name: &str| folder.path().join(name);
    let problem = |name: &str| {
        let dir = inside(name);
        let said = local_sources(&dir).unwrap_err().to_string();
        let named = format!("the folder of sources `{}`: ", dir.display());
        said.strip_prefix(&named).unwrap_or(&said).to_owned()
    };
    let nothing = "it holds no document that can be read (.md .markdown .txt .rst .html .htm)";
    assert_eq!(problem("missing"), "there is no such folder");
    fs::write(inside("file.md"), "text").unwrap();
    assert_eq!(problem("file.md"), "it is a file and no folder");
    fs::create_dir(inside("empty")).unwrap();
    assert_eq!(problem("empty"), nothing);
    fs::write(inside("empty/latin.md"), b"caf\xe9").unwrap();
    let with_note = format!("{nothing}; not read, files that are not UTF-8: latin.md");
    assert_eq!(problem("empty"), with_note);
}

#[tokio::test]
async fn the_tools_answer_behind_the_gateway_as_those_of_the_network_do() {
    for (name, args, expected) in [
        (
            "web_search",
            json!({"query": "bitter", "max_results": 1}),
            json!({"results": [{"title": "Green tea", "url": "local:green.md", "content": TEA[0].1}]}),
        ),
        (
            "web_search",
            json!({"query": "rockets"}),
            json!({
                "error": "tool_error:web_search",
                "message": "`web_search` failed: the search found nothing; try fewer or other words",
            }),
        ),
        (
            "fetch_page",
            json!({"url": "local:green.md"}),
            json!({"title": "Green tea", "url": "local:green.md", "text": TEA[0].1}),
        ),
    ] {
        assert_eq!(call(name, &args).await, expected, "{args}");
    }
    let refused = call("fetch_page", &json!({"url": "local:../green.md"})).await;
    assert_eq!(refused["error"], "tool_bad_args:fetch_page");
}

/// What a model reads when it calls one of the tools; the figure of the ranking apart.
async fn call(name: &str, args: &Value) -> Value {
    let gateway = Gateway::builder(MemoryStore::shared());
    let gateway = tea()
        .tools()
        .into_iter()
        .fold(gateway, |all, tool| all.dynamic(tool));
    let policy = Policy::new().allow(["web_search", "fetch_page"]);
    let gateway = gateway.policy(policy).build().unwrap();
    let session = gateway
        .session(Scope::new("tester", "one"), Limits::default())
        .await
        .unwrap();
    let call = ToolCall::native(name, &args.to_string());
    let Reply::Observed(seen) = session.call("1", &call).await.unwrap() else {
        panic!("the call was not answered");
    };
    let mut seen: Value = serde_json::from_str(&seen.content).unwrap();
    if let Some(hit) = seen
        .pointer_mut("/results/0")
        .and_then(Value::as_object_mut)
    {
        assert!(hit.remove("score").unwrap().as_f64().unwrap() > 0.0);
    }
    seen
}

proptest::proptest! {
    /// Whatever stands in a document and is asked, nothing breaks; what is shown stands in the document.
    #[test]
    fn no_text_and_no_query_is_too_odd(
        text in "([#=~`\\-]{1,4}|[a-zA-Z .,0-9]|\n|\\PC){0,200}",
        query in "([a-z .,0-9]|\\PC){0,40}",
        html in proptest::bool::ANY,
        most in 0_usize..5,
    ) {
        let path = if html { "a.html" } else { "a.md" };
        let sources = LocalSources::from_documents(&[(path, &text), ("b.md", &query)]);
        for fit in sources.index.search(&query, most) {
            proptest::prop_assert!(fit.document.text.contains(fit.content) && fit.score > 0.0);
            proptest::prop_assert!(fit.content.chars().count() <= MAX_CHARS);
        }
        // What a document consists of is found, if anything of it can be asked for.
        let asks = sources.index.by_url("local:b.md").is_some_and(|document| !words(&document.text).is_empty());
        proptest::prop_assert!(!asks || !sources.index.search(&query, 1).is_empty());
    }

    /// Passages hold every character but white space, in order.
    #[test]
    fn passages_lose_nothing(text in "([# ]|[a-z]{1,300}[.] ?|\n\n?|\\PC){0,40}") {
        let seen: String = passage::passages(&text).into_iter().map(|range| text.get(range).unwrap()).collect();
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        proptest::prop_assert_eq!(bare(&seen), bare(&text));
    }
}
