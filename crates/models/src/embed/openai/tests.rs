//! What is sent at once, and how answers are read.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use super::*;

fn vectors(body: &str, texts: usize) -> Result<(Vec<Vec<f32>>, Option<u64>), String> {
    let batch = read(body.as_bytes(), texts).map_err(|error| error.to_string())?;
    Ok((batch.vectors, batch.tokens))
}

#[test]
fn vectors_are_put_into_the_order_of_their_indices() {
    let body = r#"{"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2.5]}],
        "usage":{"prompt_tokens":7,"total_tokens":7}}"#;
    let sorted = vec![vec![1.0, 2.5], vec![3.0, 4.0]];
    assert_eq!(vectors(body, 2), Ok((sorted, Some(7))));
    let plain = r#"{"data":[{"embedding":[1]},{"embedding":[2]}]}"#;
    assert_eq!(vectors(plain, 2), Ok((vec![vec![1.0], vec![2.0]], None)));
}

#[test]
fn an_answer_that_does_not_fit_is_an_error_that_says_how() {
    let table = [
        (r#"{"data":[]}"#, "0 vectors for 2 texts"),
        (
            r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
            "two vectors for text 0, counted from 0",
        ),
        (
            r#"{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}"#,
            "a vector for text 2 of 2, counted from 0",
        ),
        (
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[]}]}"#,
            "text 1, counted from 0, has no vector",
        ),
        (
            r#"{"data":[{"index":0,"embedding":[1e39]},{"index":1,"embedding":[1]}]}"#,
            "number out of range at line 1 column 37",
        ),
        (
            r#"{"data":[{"index":0,"embedding":[null]}]}"#,
            "invalid type: null, expected f32 at line 1 column 37",
        ),
        ("<html>", "expected value at line 1 column 1"),
    ];
    for (body, problem) in table {
        assert_eq!(
            vectors(body, 2),
            Err(format!("the model's answer cannot be read: {problem}")),
            "{body}"
        );
    }
    let refused = r#"{"error":{"message":"too many tokens","code":400}}"#;
    assert_eq!(
        read(refused.as_bytes(), 2).err().unwrap().reason(),
        "llm_error:context_overflow"
    );
}

#[test]
fn a_request_carries_what_it_can() {
    let sizes = |texts: &[String]| batches(texts).iter().map(|b| b.len()).collect::<Vec<_>>();
    assert_eq!(sizes(&[]), Vec::<usize>::new());
    assert_eq!(sizes(&vec!["a".to_owned(); 300]), [128, 128, 44]);
    // Four characters a token.
    let third = "abcd".repeat(MAX_BATCH_TOKENS / 3);
    assert_eq!(sizes(&vec![third; 7]), [3, 3, 1]);
    let huge = "abcd".repeat(MAX_BATCH_TOKENS + 1);
    assert_eq!(sizes(&[huge.clone(), "a".to_owned(), huge]), [1, 1, 1]);
}

#[test]
fn the_address_stands_under_the_base_url() {
    let table = [
        ("http://h:1", "http://h:1/v1/embeddings"),
        ("https://h/openai/v1/", "https://h/openai/v1/embeddings"),
        ("https://h/v1/chat/completions", "https://h/v1/embeddings"),
        ("https://h/embeddings", "https://h/embeddings"),
    ];
    for (base, url) in table {
        assert_eq!(endpoint(base).unwrap().as_str(), url);
    }
    assert!(endpoint("ftp://h").is_err());
}
