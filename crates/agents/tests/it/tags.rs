//! Corpus of tagged replies: every split gives what the whole text gives, and only calls outside of other elements.

use std::io::Write;
use std::path::Path;

use agents::observation::encode_observation;
use agents::repair::{ParsedCall, parse_call};
use agents::tags::{ActionBody, TAG_BYTES_MAX, TagReader, TagReply};
use serde_json::{Value, json};

/// Texts up to this size are split at every byte; longer ones at [`SEEDED_SPLITS`] seeded places.
const EVERY_SPLIT_BYTES_MAX: usize = 4_096;
const SEEDED_SPLITS: u64 = 1_000;

fn corpus() -> Vec<Value> {
    lines(include_str!("react_tags.jsonl"))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// SplitMix64.
pub fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn read_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> TagReply {
    let mut reader = TagReader::new();
    let mut reply = TagReply::default();
    let mut events = Vec::new();
    for piece in pieces {
        reader.push(piece, &mut events);
        events.drain(..).for_each(|event| reply.add(event));
    }
    reader.finish(&mut events);
    events.drain(..).for_each(|event| reply.add(event));
    reply
}

fn check_splits(name: &str, text: &[u8]) -> TagReply {
    let whole = TagReply::parse(text);
    let single = read_pieces(text.chunks(1));
    assert_eq!(single, whole, "{name}, byte by byte");
    if text.len() <= EVERY_SPLIT_BYTES_MAX {
        for at in 0..=text.len() {
            assert_eq!(
                read_pieces([&text[..at], &text[at..]]),
                whole,
                "{name}, at {at}"
            );
        }
        for size in 2..=text.len().max(2) {
            assert_eq!(read_pieces(text.chunks(size)), whole, "{name}, by {size}");
        }
    } else {
        let mut seed = text.len() as u64;
        for _ in 0..SEEDED_SPLITS {
            let at = usize::try_from(random(&mut seed) % (text.len() as u64 + 1)).unwrap();
            assert_eq!(
                read_pieces([&text[..at], &text[at..]]),
                whole,
                "{name}, at {at}"
            );
        }
    }
    whole
}

/// Returns the call of a reply, as the loop reads it, and whether there is a malformed one.
fn call_of(reply: &TagReply) -> (Option<ParsedCall>, bool) {
    match &reply.action {
        None => (None, false),
        Some(ActionBody::TooLong) => (None, true),
        Some(ActionBody::Closed(body) | ActionBody::Unclosed(body)) => match parse_call(body) {
            Ok(call) => (Some(call), false),
            Err(_) => (None, true),
        },
    }
}

fn check_expectations(name: &str, reply: &TagReply, expect: &Value) {
    let (call, is_malformed) = call_of(reply);
    for (member, wanted) in expect.as_object().unwrap() {
        let found = match member.as_str() {
            "action" => call.as_ref().map_or(Value::Null, |call| {
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                json!({"tool_name": call.tool, "arguments": arguments})
            }),
            "repaired" => json!(call.as_ref().is_some_and(|call| call.is_repaired)),
            "malformed" | "told_to_model" => json!(is_malformed),
            "reason" => json!(if is_malformed { "malformed" } else { "none" }),
            "final" => json!(reply.answer),
            "unclosed" => json!(!reply.is_answer_closed),
            "thought" => json!(reply.thought),
            "title" => json!(reply.title),
            "draft" => json!(reply.draft),
            "dropped" => json!(reply.has_dropped),
            "observation_from_model" => json!(if reply.has_dropped { "dropped" } else { "kept" }),
            // Checked for all texts by `no_reader_holds_more_than_a_tag`.
            "bounded" => json!(true),
            other => panic!("{name}: no check for {other}"),
        };
        assert_eq!(&found, wanted, "{name}: {member}");
    }
}

#[test]
fn each_reply_is_read_alike_at_every_split() {
    let corpus = corpus();
    assert!(corpus.len() >= 100, "{}", corpus.len());
    for line in corpus {
        let name = line["name"].as_str().unwrap();
        let reply = check_splits(name, line["reply"].as_str().unwrap().as_bytes());
        check_expectations(name, &reply, &line["expect"]);
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the environment decides whether a test may skip"
)]
fn reference_replies_are_read_as_stated() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = manifest.join("../../../shared/cases/agents/react-tags.jsonl");
    let fallback = manifest.join("../../../../shared/cases/agents/react-tags.jsonl");
    let Some(text) = [file, fallback]
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok())
    else {
        let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
        assert!(!is_ci, "the reference replies in ../shared are missing");
        // Past the capture of libtest, which hides what passing tests print.
        let mut err = std::io::stderr();
        let test = "reference_replies_are_read_as_stated";
        writeln!(err, "skipped: {test} needs ../shared/cases/agents").unwrap();
        return;
    };
    for line in lines(&text) {
        let name = line["name"].as_str().unwrap();
        let chunks = line["chunks"].as_array().unwrap();
        let whole: String = chunks.iter().filter_map(Value::as_str).collect();
        if line["expect"].get("as_observation").is_some() {
            let observation = encode_observation(&whole);
            assert!(!observation.contains("<FINAL_ANSWER"), "{name}");
            let reply = check_splits(name, observation.as_bytes());
            assert_eq!((reply.answer, reply.action), (None, None), "{name}");
            continue;
        }
        let reply = check_splits(name, whole.as_bytes());
        check_expectations(name, &reply, &line["expect"]);
        let pieces = chunks.iter().filter_map(Value::as_str).map(str::as_bytes);
        assert_eq!(read_pieces(pieces), reply, "{name}");
    }
}

#[test]
fn nothing_in_a_thought_an_answer_or_an_observation_runs() {
    for line in corpus() {
        let inner = line["reply"].as_str().unwrap();
        let reply = TagReply::parse(encode_observation(inner).as_bytes());
        assert_eq!(
            (reply.action, reply.answer),
            (None, None),
            "{}",
            line["name"]
        );
        for (open, close) in [
            ("<THOUGHT>", "</THOUGHT>"),
            ("<think>", "</think>"),
            ("<FINAL_ANSWER>", "</FINAL_ANSWER>"),
            ("<OBSERVATION>", "</OBSERVATION>"),
            ("<DRAFT>", "</DRAFT>"),
        ] {
            // A text that closes the outer element is not inside of it any more.
            if inner
                .to_ascii_lowercase()
                .contains(close.trim_end_matches('>').to_ascii_lowercase().as_str())
            {
                continue;
            }
            let reply = TagReply::parse(format!("{open}{inner}{close}").as_bytes());
            assert_eq!(reply.action, None, "{} in {open}", line["name"]);
        }
    }
}

#[test]
fn no_reader_holds_more_than_a_tag() {
    let long = "<THOUGHT a='".repeat(2_000) + &"<".repeat(2_000) + &"</FINAL_ANSWER ".repeat(2_000);
    for head in ["", "<FINAL_ANSWER>", "<THOUGHT>", "<OBSERVATION>"] {
        let mut reader = TagReader::new();
        let mut events = Vec::new();
        for byte in format!("{head}{long}{}", "x".repeat(2_000)).bytes() {
            reader.push(&[byte], &mut events);
            assert!(
                reader.held_bytes() <= TAG_BYTES_MAX,
                "{}",
                reader.held_bytes()
            );
        }
    }
    let mut reader = TagReader::new();
    let mut events = Vec::new();
    reader.push(b"<ACTION>{\"x\":\"", &mut events);
    for _ in 0..600 {
        reader.push(&[b'y'; 1024], &mut events);
        assert!(reader.held_bytes() <= agents::tags::ACTION_BYTES_MAX);
    }
    reader.finish(&mut events);
    assert_eq!(
        events,
        [agents::tags::TagEvent::Action(ActionBody::TooLong)]
    );
}

#[test]
fn random_markup_is_read_alike_at_random_splits() {
    const WORDS: [&str; 20] = [
        "<THOUGHT>",
        "</THOUGHT>",
        "<think>",
        "</think>",
        "<ACTION>",
        "</ACTION>",
        "<FINAL_ANSWER>",
        "</FINAL_ANSWER>",
        "<OBSERVATION>",
        "</OBSERVATION>",
        "<THOUGHT title=\"a > b\">",
        "{\"tool_name\":\"a\"}",
        "\"",
        "\\",
        "{",
        "}",
        "<",
        ">",
        " ü🦀",
        "<draft/>",
    ];
    let mut seed = 40;
    for round in 0..20_000 {
        let count = random(&mut seed) % 24;
        let text: String = (0..count)
            .map(|_| WORDS[usize::try_from(random(&mut seed) % 20).unwrap()])
            .collect();
        let whole = TagReply::parse(text.as_bytes());
        let size = usize::try_from(random(&mut seed) % 7 + 1).unwrap();
        assert_eq!(
            read_pieces(text.as_bytes().chunks(size)),
            whole,
            "round {round}: {text:?}"
        );
    }
}

#[test]
fn text_is_passed_on_as_soon_as_it_is_no_tag() {
    let mut reader = TagReader::new();
    let mut events = Vec::new();
    let mut answer = TagReply::default();
    for (piece, so_far) in [
        ("<FINAL_ANSWER>a", "a"),
        ("<", "a"),
        ("b", "a<b"),
        ("</FINAL", "a<b"),
        ("x", "a<b</FINALx"),
    ] {
        reader.push(piece.as_bytes(), &mut events);
        events.drain(..).for_each(|event| answer.add(event));
        assert_eq!(answer.answer.as_deref(), Some(so_far), "{piece}");
    }
    assert!(!reader.is_done());
    reader.push(b"</FINAL_ANSWER>", &mut events);
    assert!(reader.is_done());
}
