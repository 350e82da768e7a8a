//! `durward models explain`, and the list of models.

use serde_json::{Value, json};

use super::support::{place, serve};

const YAML: &str = "models:\n  providers:\n    far: { kind: google, models: [big] }\n    near: { kind: mock }\n  aliases: { smart: { tiers: [[far/big, near/a], near/b], rotate: weighted, weights: { far/big: 3 }, deadline: 9s } }\n  prices: { far/big: { input: 1.25, output: 10 } }\n";

fn explain(model: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let place = place(YAML, &[]);
    let first = ["--config", "durward.yaml", "--state-dir", "state"];
    let args = [&first, &["models", "explain", model][..], more].concat();
    let output = place.durward(&args);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn explain_says_where_a_name_leads() {
    let (code, out, err) = explain("smart", &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let expect = "\
smart: rotate weighted, all attempts within 9s
  tier 1
    far/big  google  weight 3
      translates chat/completions, responses, messages
      $1.25 read, $10.00 written, for a million tokens
    near/a  mock  weight 1
      serves chat/completions, responses, embeddings, messages, messages/count_tokens, rerank, images/generations, images/edits, images/variations, audio/speech, audio/transcriptions, audio/translations
  tier 2
    near/b  mock  weight 1
      serves chat/completions, responses, embeddings, messages, messages/count_tokens, rerank, images/generations, images/edits, images/variations, audio/speech, audio/transcriptions, audio/translations
";
    assert_eq!(out, expect);
    let (code, out, _) = explain("near/anything", &["--json"]);
    assert_eq!(code, Some(0));
    let said: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(said["tiers"][0][0]["target"], "near/anything");
    assert_eq!(said["rotate"], "none");
}

#[test]
fn explain_refuses_a_name_that_leads_nowhere() {
    let (code, out, err) = explain("nope", &[]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("\"nope\" is not a known model"), "{err}");
    assert!(err.contains("smart") && err.contains("far/big"), "{err}");
    let empty = place("# nothing", &[]);
    let args = ["--config", "durward.yaml", "models", "explain", "x"];
    let output = empty.durward(&args);
    assert_eq!(output.status.code(), Some(1));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("no model provider is configured"), "{err}");
}

#[test]
fn a_scripted_provider_lists_what_it_can_play() {
    let served = serve("models: { providers: { m: { kind: mock } } }", &[]);
    let list = served.send_get("/v1/models");
    let data = list["data"].as_array().unwrap();
    let names: Vec<&Value> = data.iter().map(|model| &model["id"]).collect();
    assert!(names.contains(&&json!("m/plain")), "{list}");
    assert!(names.contains(&&json!("m/parallel-tools")), "{list}");
    let one = served.send_get("/v1/models/m/fault-cut");
    assert_eq!(one["id"], "m/fault-cut");
}
