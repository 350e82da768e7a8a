use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolkit::mcp::Arrival;
use toolkit::trial::Trial;

use super::*;

fn trial() -> Trial {
    Trial::new(Arc::new(EchoServer::new().unwrap()), None).unwrap()
}

#[tokio::test]
async fn it_says_back_what_it_is_told() {
    let trial = trial();
    let session = trial.session("ada");
    let told = "a \"quoted\" text\nwith \u{1F600} and \0";
    let said = trial
        .call(&session, "ada", "echo", json!({"text": told}))
        .await
        .unwrap();
    assert_eq!(said["content"], json!([{"type": "text", "text": told}]));
    assert_eq!(said["structuredContent"], json!({"text": told}));
}

#[tokio::test]
async fn it_adds_and_says_what_is_wrong_with_a_call() {
    let trial = trial();
    let session = trial.session("ada");
    let cases = [
        (json!({"a": 2, "b": 0.5}), Ok(json!({"sum": 2.5}))),
        (json!({"a": -1e308, "b": 1e308}), Ok(json!({"sum": 0.0}))),
        (
            json!({"a": 1e308, "b": 1e308}),
            Err("the sum is larger than a number can be; add smaller numbers"),
        ),
        (
            json!({"a": 1}),
            Err("arguments do not fit: \"b\" is required"),
        ),
        (
            json!({"a": 1, "b": "2"}),
            Err("arguments do not fit: \"b\" must be a number"),
        ),
    ];
    for (arguments, expect) in cases {
        let said = trial
            .call(&session, "ada", "add", arguments.clone())
            .await
            .unwrap();
        match expect {
            Ok(sum) => assert_eq!(said["structuredContent"], sum, "{arguments}"),
            Err(wrong) => {
                assert_eq!(said["isError"], true, "{arguments}");
                assert_eq!(said["content"][0]["text"], wrong);
            }
        }
    }
}

const WAIT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{"ms":2500},"_meta":{"progressToken":5,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

#[tokio::test(start_paused = true)]
async fn waiting_tells_how_far_it_is_each_second() {
    let trial = trial();
    let session = trial.session("ada");
    let mut exchange = trial.send(&session, WAIT).unwrap();
    let mut told = Vec::new();
    while let Some(arrival) = exchange.next().await {
        told.push(serde_json::from_slice::<Value>(arrival.frame()).unwrap());
    }
    let progress: Vec<_> = told[..3]
        .iter()
        .map(|news| news["params"]["progress"].as_f64().unwrap())
        .collect();
    assert!(progress.is_sorted() && progress[2] == 2.5, "{progress:?}");
    assert!(told[3]["result"]["structuredContent"]["waited_ms"].as_u64() >= Some(2500));
    assert_eq!(told.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_when_it_is_cancelled() {
    let trial = trial();
    let session = trial.session("ada");
    let mut exchange = trial.send(&session, WAIT).unwrap();
    let began = Instant::now();
    let first = exchange.next().await;
    assert!(matches!(first, Some(Arrival::News(_))), "{first:?}");
    session.cancel(&wire::id::IdKey::Number(1));
    assert_eq!(exchange.next().await, None);
    assert!(began.elapsed() < Duration::from_millis(1500));
}
