//! Golden transcripts of each pair of dialects, what is refused, and what comes from strange providers.

mod providers;

use std::borrow::Cow;

use serde_json::{Value, json};

use super::super::stream_state::StreamEvent;
use super::{
    CallerForm, ProviderForm, ReasoningField, ReplyStamp, RequestOptions, SignatureLookup,
    SignedThought, Translator, UnsupportedMembers, reply, request,
};
use wire::sse::SseParser;

const PAIRS: &[(CallerForm, ProviderForm, &str)] = &[
    (
        CallerForm::Chat,
        ProviderForm::Messages,
        include_str!("golden/chat_before_messages.json"),
    ),
    (
        CallerForm::Messages,
        ProviderForm::Chat,
        include_str!("golden/messages_before_chat.json"),
    ),
    (
        CallerForm::Chat,
        ProviderForm::Gemini,
        include_str!("golden/chat_before_gemini.json"),
    ),
    (
        CallerForm::Messages,
        ProviderForm::Gemini,
        include_str!("golden/messages_before_gemini.json"),
    ),
    (
        CallerForm::Responses,
        ProviderForm::Messages,
        include_str!("golden/responses_before_messages.json"),
    ),
    (
        CallerForm::Responses,
        ProviderForm::Chat,
        include_str!("golden/responses_before_chat.json"),
    ),
    (
        CallerForm::Responses,
        ProviderForm::Gemini,
        include_str!("golden/responses_before_gemini.json"),
    ),
];

const OPTIONS: RequestOptions<'_> = RequestOptions {
    model: "big",
    max_tokens: 99,
    names_completion: false,
    thoughts: ReasoningField::ReasoningContent,
    is_strict: false,
    unsupported: UnsupportedMembers::Refuse,
    signatures: None,
};

const STAMP: ReplyStamp<'_> = ReplyStamp {
    created: 7,
    id: "own",
    asked: "",
};

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(bytes)))
}

/// Returns the events that a caller gets, in short if they are chunks.
fn translate_events(
    from: ProviderForm,
    to: CallerForm,
    events: &[Value],
) -> (Vec<Value>, Vec<StreamEvent>) {
    let mut translator = Translator::new(from, to, STAMP);
    let (mut out, mut said) = (Vec::new(), Vec::new());
    for event in events {
        let data = event
            .as_str()
            .map_or_else(|| event.to_string(), str::to_owned);
        said.push(translator.see(data.as_bytes(), true, &mut out));
    }
    let mut parser = SseParser::default();
    parser.push(&out);
    let mut told = Vec::new();
    while let Some(event) = parser.next().unwrap() {
        let data = value(event.data);
        if to != CallerForm::Chat {
            assert_eq!(data["type"], value(event.name), "the name repeats the type");
        }
        if to == CallerForm::Responses {
            assert_eq!(data["sequence_number"], told.len(), "no number is left out");
        }
        told.push(short(data));
    }
    // Gemini has no end mark.
    if said.last() == Some(&StreamEvent::Part) && translator.has_finished() {
        let mut out = Vec::new();
        translator.end(&mut out);
        parser.push(&out);
        while let Some(event) = parser.next().unwrap() {
            told.push(short(value(event.data)));
        }
        said.push(StreamEvent::End);
    }
    (told, said)
}

/// Returns a chunk of chat completions without what all of them have; an event of responses without its number, and
/// without what a response repeats.
fn short(mut data: Value) -> Value {
    if let Some(event) = data.as_object_mut() {
        event.remove("sequence_number");
    }
    let response = data.get_mut("response");
    if let Some(response) = response.and_then(Value::as_object_mut) {
        let kept = ["status", "output", "usage", "incomplete_details"];
        response.retain(|name, _| kept.contains(&name.as_str()));
        return data;
    }
    if data["object"] != "chat.completion.chunk" {
        return data;
    }
    assert_eq!(data["created"], 7);
    let Some(choice) = data["choices"].get(0) else {
        return json!({ "usage": data["usage"] });
    };
    let mut choice = choice.as_object().unwrap().clone();
    assert_eq!(choice.remove("index"), Some(json!(0)));
    choice.retain(|_, value| !value.is_null());
    choice.into()
}

#[test]
fn golden_transcripts() {
    for (from, to, text) in PAIRS {
        let cases: Vec<Value> = serde_json::from_str(text).unwrap();
        for case in cases {
            let name = format!("{from:?} before {to:?}: {}", case["name"]);
            let asked = request(*from, *to, &case["request"].to_string(), &OPTIONS);
            let asked = asked.unwrap_or_else(|fault| panic!("{name}: {fault}"));
            assert_eq!(value(&asked.body), case["asked"], "{name}");
            let left_out = case.get("left_out").cloned().unwrap_or(json!([]));
            assert_eq!(json!(asked.left_out), left_out, "{name}");
            let body = case["request"].to_string();
            let stamp = ReplyStamp {
                asked: &body,
                ..STAMP
            };
            let answered = reply(*to, *from, &case["reply"].to_string(), stamp);
            let answered = answered.unwrap_or_else(|| panic!("{name}: no reply"));
            assert_eq!(value(&answered.body), case["answered"], "{name}");
            assert!(answered.left_out.is_empty(), "{name}");
            if let Some(events) = case["events"].as_array() {
                let (told, said) = translate_events(*to, *from, events);
                assert_eq!(json!(told), case["told"], "{name}");
                assert_eq!(said.last(), Some(&StreamEvent::End), "{name}");
            }
        }
    }
}

#[test]
fn every_pair_has_a_transcript_of_each_kind_of_reply() {
    let kinds = |to: ProviderForm| match to {
        ProviderForm::Messages => [
            ("tools", "\"type\":\"tool_use\""),
            ("thoughts", "\"type\":\"thinking\""),
            ("a refusal", "\"stop_reason\":\"refusal\""),
            ("a cut", "\"stop_reason\":\"max_tokens\""),
        ],
        ProviderForm::Chat => [
            ("tools", "\"tool_calls\":["),
            ("thoughts", "\"reasoning"),
            (
                "a refusal",
                "\"finish_reason\":\"content_filter\"|\"refusal\":\"",
            ),
            ("a cut", "\"finish_reason\":\"length\""),
        ],
        ProviderForm::Gemini => [
            ("tools", "\"functionCall\":"),
            ("thoughts", "\"thought\":true"),
            ("a refusal", "\"blockReason\":|\"finishReason\":\"SAFETY\""),
            ("a cut", "\"finishReason\":\"MAX_TOKENS\""),
        ],
    };
    for (from, to, text) in PAIRS {
        let cases: Vec<Value> = serde_json::from_str(text).unwrap();
        let has = |member: &str, mark: &str| {
            let mut texts = cases.iter().map(|case| case[member].to_string());
            texts.any(|text| mark.split('|').any(|mark| text.contains(mark)))
        };
        for (kind, mark) in kinds(*to) {
            assert!(has("reply", mark), "{from:?} before {to:?}: {kind}, whole");
            assert!(
                has("events", mark),
                "{from:?} before {to:?}: {kind}, streamed"
            );
        }
        assert!(
            has("request", "AAAA") && has("asked", "AAAA"),
            "{from:?} before {to:?}: images"
        );
    }
}

/// Returns the place that is refused in a request with these members beside the usual ones.
fn refused_member(from: CallerForm, to: ProviderForm, members: &Value) -> String {
    let mut body = json!({
        "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "hello" }],
    });
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    match request(from, to, &body.to_string(), &OPTIONS) {
        Ok(said) => format!("nothing: {}", String::from_utf8_lossy(&said.body)),
        Err(fault) => fault.at,
    }
}

#[test]
fn what_cannot_be_said_to_messages_is_refused_by_name() {
    let turn = |turn: Value| json!({ "messages": [turn] });
    let cases = [
        (json!({ "n": 2 }), "n"),
        (json!({ "logprobs": true }), "logprobs"),
        (json!({ "seed": 1 }), "seed"),
        (json!({ "presence_penalty": 0.5 }), "presence_penalty"),
        (json!({ "frequency_penalty": -1 }), "frequency_penalty"),
        (json!({ "logit_bias": { "1": 2 } }), "logit_bias"),
        (json!({ "audio": {} }), "audio"),
        (json!({ "invented_tomorrow": 0 }), "invented_tomorrow"),
        (json!({ "functions": [{ "name": "f" }] }), "functions"),
        (
            json!({ "response_format": { "type": "json_object" } }),
            "response_format.type",
        ),
        (
            json!({ "tools": [{ "type": "custom", "custom": {} }] }),
            "tools[0].type",
        ),
        (
            json!({ "tool_choice": { "type": "allowed_tools" } }),
            "tool_choice.type",
        ),
        (json!({ "reasoning_effort": "wild" }), "reasoning_effort"),
        (json!({ "stop": [1] }), "stop"),
        (json!({ "temperature": "hot" }), "temperature"),
        (json!({ "messages": "hello" }), "messages"),
        (json!({ "messages": [] }), "messages"),
        (json!({ "messages": [7] }), "messages[0]"),
        (turn(json!({ "content": "x" })), "messages[0].role"),
        (
            turn(json!({ "role": "user", "name": "ann", "content": "x" })),
            "messages[0].name",
        ),
        (
            turn(json!({ "role": "user", "content": 7 })),
            "messages[0].content",
        ),
        (
            turn(json!({ "role": "user", "content": [{ "type": "input_audio" }] })),
            "messages[0].content[0].type",
        ),
        (
            turn(json!({ "role": "function", "name": "f", "content": "x" })),
            "messages[0].role",
        ),
        (
            turn(json!({ "role": "tool", "content": "x" })),
            "messages[0].tool_call_id",
        ),
        (
            turn(json!({ "role": "assistant", "content": "so be" })),
            "messages[0]",
        ),
    ];
    for (members, at) in cases {
        assert_eq!(
            refused_member(CallerForm::Chat, ProviderForm::Messages, &members),
            at,
            "{members}"
        );
    }
    let call = |arguments: &str| {
        json!({ "messages": [{ "role": "assistant", "tool_calls": [{ "id": "a", "type": "function", "function": { "name": "f", "arguments": arguments } }] },
            { "role": "tool", "tool_call_id": "a", "content": "x" }] })
    };
    // A model's output stays in the conversation: its arguments reach the provider in an object.
    for (arguments, input) in [
        ("[]", json!({ "arguments": "[]" })),
        ("{\"a\": 1", json!({ "a": 1 })),
        ("{\"x\": tru", json!({ "arguments": "{\"x\": tru" })),
    ] {
        let mut body = call(arguments);
        body["model"] = json!("m");
        let said = request(
            CallerForm::Chat,
            ProviderForm::Messages,
            &body.to_string(),
            &OPTIONS,
        )
        .unwrap();
        assert_eq!(
            value(&said.body)["messages"][0]["content"][0]["input"],
            input,
            "{arguments}"
        );
    }
}

/// Returns a request that drops what the provider has no word for: how it is written, and what was left out.
fn drop_members(
    from: CallerForm,
    to: ProviderForm,
    members: &Value,
) -> (Value, Vec<Cow<'static, str>>) {
    let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hello" }] });
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    let options = RequestOptions {
        unsupported: UnsupportedMembers::Drop,
        ..OPTIONS
    };
    let said = request(from, to, &body.to_string(), &options)
        .unwrap_or_else(|fault| panic!("{members}: {fault}"));
    (value(&said.body), said.left_out)
}

#[test]
fn wishes_that_a_provider_cannot_be_told_are_left_out_and_named() {
    use CallerForm::{Chat, Responses};
    use ProviderForm::{Gemini, Messages};
    let tool = json!([{ "type": "function", "function": { "name": "f" } }]);
    let cases = [
        (Chat, Messages, json!({ "seed": 1 }), "seed"),
        (
            Chat,
            Messages,
            json!({ "presence_penalty": 0.5 }),
            "presence_penalty",
        ),
        (
            Chat,
            Messages,
            json!({ "frequency_penalty": 1 }),
            "frequency_penalty",
        ),
        (
            Chat,
            Messages,
            json!({ "logit_bias": { "1": 2 } }),
            "logit_bias",
        ),
        (
            Chat,
            Messages,
            json!({ "response_format": { "type": "json_object" } }),
            "response_format.type",
        ),
        (
            Chat,
            Messages,
            json!({ "reasoning_effort": "wild" }),
            "reasoning_effort",
        ),
        (
            Chat,
            Messages,
            json!({ "invented_tomorrow": 0 }),
            "invented_tomorrow",
        ),
        (
            Chat,
            Messages,
            json!({ "messages": [{ "role": "user", "name": "user", "content": "x" }] }),
            "messages.name",
        ),
        (
            Chat,
            Gemini,
            json!({ "parallel_tool_calls": false, "tools": tool }),
            "parallel_tool_calls",
        ),
        (
            Chat,
            Gemini,
            json!({ "messages": [{ "role": "user", "content": "a" }, { "role": "assistant", "content": "b" }, { "role": "system", "content": "c" }] }),
            "messages.role",
        ),
        (
            CallerForm::Messages,
            ProviderForm::Chat,
            json!({ "top_k": 5 }),
            "top_k",
        ),
        (
            Responses,
            Messages,
            json!({ "input": "hello", "truncation": "auto", "messages": null }),
            "truncation",
        ),
    ];
    for (from, to, members, name) in cases {
        assert_eq!(drop_members(from, to, &members).1, [name], "{members}");
    }
    // What changes who answers, how often or with what is never left out in silence.
    let options = RequestOptions {
        unsupported: UnsupportedMembers::Drop,
        ..OPTIONS
    };
    for (from, body) in [
        (Chat, json!({ "n": 2 })),
        (Chat, json!({ "functions": [{ "name": "f" }] })),
        (Chat, json!({ "web_search_options": {} })),
        (
            CallerForm::Messages,
            json!({ "mcp_servers": [{ "url": "x" }] }),
        ),
        (CallerForm::Messages, json!({ "container": "c" })),
        (Responses, json!({ "previous_response_id": "r" })),
        (Responses, json!({ "conversation": "c" })),
    ] {
        let mut body = body;
        body["messages"] = json!([{ "role": "user", "content": "x" }]);
        body["input"] = json!("x");
        let to = if from == CallerForm::Messages {
            ProviderForm::Chat
        } else {
            Messages
        };
        assert!(
            request(from, to, &body.to_string(), &options).is_err(),
            "{body}"
        );
    }
}

/// The signatures of one thought, which was written in two blocks.
#[derive(Debug)]
struct TwoBlocks;

impl SignatureLookup for TwoBlocks {
    fn find(&self, thought: &str) -> Option<Vec<SignedThought>> {
        let block = |text: &str, signature: &str| SignedThought {
            text: text.to_owned(),
            signature: signature.to_owned(),
        };
        (thought == "hm, yes").then(|| vec![block("hm, ", "s1"), block("yes", "s2")])
    }
}

#[test]
fn the_signatures_of_a_thought_that_comes_back_are_restored() {
    let body = json!({ "model": "m", "messages": [
        { "role": "user", "content": "x" },
        { "role": "assistant", "content": null, "reasoning_content": "hm, yes", "tool_calls": [{ "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } }] },
        { "role": "tool", "tool_call_id": "a", "content": "3" },
    ] });
    let options = RequestOptions {
        signatures: Some(&TwoBlocks),
        ..OPTIONS
    };
    let said = request(
        CallerForm::Chat,
        ProviderForm::Messages,
        &body.to_string(),
        &options,
    )
    .unwrap();
    assert!(said.left_out.is_empty(), "{:?}", said.left_out);
    let blocks = &value(&said.body)["messages"][1]["content"];
    assert_eq!(
        blocks[0],
        json!({ "type": "thinking", "thinking": "hm, ", "signature": "s1" })
    );
    assert_eq!(
        blocks[1],
        json!({ "type": "thinking", "thinking": "yes", "signature": "s2" })
    );
    assert_eq!(blocks[2]["type"], "tool_use");
    // The sent reply has the signature that has to be found again.
    let reply = json!({ "content": [{ "type": "thinking", "thinking": "hm", "signature": "s" }, { "type": "text", "text": "y" }], "stop_reason": "end_turn" });
    let told = super::reply(
        ProviderForm::Messages,
        CallerForm::Chat,
        &reply.to_string(),
        STAMP,
    )
    .unwrap();
    assert_eq!(
        told.signed,
        [SignedThought {
            text: "hm".into(),
            signature: "s".into()
        }]
    );
    let events = [
        json!({ "type": "message_start", "message": { "id": "m" } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": "", "signature": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": "h" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": "m" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": "s" } }),
    ];
    let mut translator = Translator::new(ProviderForm::Messages, CallerForm::Chat, STAMP);
    for event in events {
        translator.see(event.to_string().as_bytes(), true, &mut Vec::new());
    }
    assert_eq!(translator.take_signed(), told.signed);
}

#[test]
fn thoughts_without_a_signature_are_left_out_and_named() {
    let unsigned = json!({ "messages": [
        { "role": "user", "content": "x" },
        { "role": "assistant", "content": "y", "reasoning_content": "z" },
        { "role": "user", "content": "x" },
        { "role": "assistant", "reasoning_content": "alone" },
        { "role": "user", "content": "x" },
    ] });
    let (body, left_out) = drop_members(CallerForm::Chat, ProviderForm::Messages, &unsigned);
    assert_eq!(left_out, ["reasoning_content"]);
    assert_eq!(
        body["messages"][1]["content"],
        json!([{ "type": "text", "text": "y" }])
    );
    // A turn of which nothing is left is no turn.
    assert_eq!(body["messages"].as_array().unwrap().len(), 4);
    let redacted = json!({ "max_tokens": 9, "messages": [
        { "role": "user", "content": "x" },
        { "role": "assistant", "content": [{ "type": "redacted_thinking", "data": "d" }, { "type": "text", "text": "y" }] },
        { "role": "user", "content": "x" },
    ] });
    for to in [ProviderForm::Chat, ProviderForm::Gemini] {
        assert_eq!(
            drop_members(CallerForm::Messages, to, &redacted).1,
            ["content.redacted_thinking"]
        );
    }
}

#[test]
fn caches_are_asked_for_where_the_provider_has_them() {
    let mark = json!({ "type": "ephemeral" });
    let asked = json!({
        "messages": [
            { "role": "system", "content": [{ "type": "text", "text": "s", "cache_control": mark }, { "type": "text", "text": "t" }] },
            { "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b", "cache_control": mark }] },
            { "role": "assistant", "content": "y", "tool_calls": [{ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } }] },
            { "role": "tool", "tool_call_id": "c", "content": "r", "cache_control": mark },
        ],
        "tools": [{ "type": "function", "function": { "name": "f" }, "cache_control": mark }],
    });
    let (body, left_out) = drop_members(CallerForm::Chat, ProviderForm::Messages, &asked);
    assert!(left_out.is_empty(), "{left_out:?}");
    assert_eq!(body["system"][0]["cache_control"], mark);
    assert_eq!(body["system"][1].get("cache_control"), None);
    assert_eq!(body["messages"][0]["content"][0].get("cache_control"), None);
    assert_eq!(body["messages"][0]["content"][1]["cache_control"], mark);
    assert_eq!(body["messages"][2]["content"][0]["cache_control"], mark);
    assert_eq!(body["tools"][0]["cache_control"], mark);
    assert_eq!(
        drop_members(CallerForm::Chat, ProviderForm::Gemini, &asked).1,
        ["cache_control"]
    );
}

#[test]
fn files_that_a_tool_returned_follow_its_result() {
    let image = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" } });
    let asked = json!({ "max_tokens": 9, "messages": [
        { "role": "user", "content": "x" },
        { "role": "assistant", "content": [
            { "type": "tool_use", "id": "t1", "name": "read", "input": {} },
            { "type": "tool_use", "id": "t2", "name": "read", "input": {} },
        ] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "t1", "content": [image, { "type": "text", "text": "seen" }] },
            { "type": "tool_result", "tool_use_id": "t2", "content": "b" },
            { "type": "text", "text": "go on" },
        ] },
    ] });
    let (body, left_out) = drop_members(CallerForm::Messages, ProviderForm::Chat, &asked);
    assert!(left_out.is_empty(), "{left_out:?}");
    let turns = body["messages"].as_array().unwrap();
    let roles: Vec<&str> = turns
        .iter()
        .map(|turn| turn["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "user"]);
    assert_eq!(
        (&turns[2]["content"], &turns[3]["content"]),
        (&json!("seen"), &json!("b"))
    );
    assert_eq!(
        turns[4]["content"][1]["image_url"]["url"],
        "data:image/png;base64,iVBORw0KGgo="
    );
    assert_eq!(
        turns[4]["content"][2],
        json!({ "type": "text", "text": "go on" })
    );
    let (body, _) = drop_members(CallerForm::Messages, ProviderForm::Gemini, &asked);
    let parts = &body["contents"][2]["parts"];
    assert_eq!(parts[0]["functionResponse"]["response"]["output"], "seen");
    assert_eq!(parts[1]["inlineData"]["mimeType"], "image/png");
}

#[test]
fn what_cannot_be_said_to_chat_completions_is_refused_by_name() {
    let block = |block: Value| json!({ "messages": [{ "role": "user", "content": [block] }] });
    let cases = [
        (json!({ "top_k": 5 }), "top_k"),
        (json!({ "container": "c" }), "container"),
        (json!({ "mcp_servers": [{}] }), "mcp_servers"),
        (
            json!({ "thinking": { "type": "between_tools" } }),
            "thinking.type",
        ),
        (
            json!({ "tools": [{ "type": "web_search_20250305", "name": "web_search" }] }),
            "tools[0].type",
        ),
        (
            json!({ "tools": [{ "name": "f", "defer_loading": true }] }),
            "tools[0].defer_loading",
        ),
        (
            block(json!({ "type": "search_result" })),
            "messages[0].content[0].type",
        ),
        (
            block(json!({ "type": "image", "source": { "type": "file", "file_id": "f" } })),
            "messages[0].content[0].source.type",
        ),
        (
            block(
                json!({ "type": "document", "source": { "type": "url", "url": "https://x.example" } }),
            ),
            "messages[0].content[0].source",
        ),
        (
            block(
                json!({ "type": "tool_result", "tool_use_id": "a", "content": [{ "type": "tool_result" }] }),
            ),
            "messages[0].content[0].content[0].type",
        ),
        (
            block(json!({ "type": "text", "text": "x", "odd": 1 })),
            "messages[0].content[0].odd",
        ),
        (json!({ "stop_sequences": [7] }), "stop_sequences[0]"),
        (json!({ "system": 7 }), "system"),
        (
            json!({ "messages": [{ "role": "user", "content": "x" }, { "role": "assistant", "content": "{" }] }),
            "messages[1]",
        ),
    ];
    for (members, at) in cases {
        assert_eq!(
            refused_member(CallerForm::Messages, ProviderForm::Chat, &members),
            at,
            "{members}"
        );
    }
}

#[test]
fn what_cannot_be_said_to_gemini_is_refused_by_name() {
    let tool = json!({ "type": "function", "function": { "name": "f" } });
    let turns = |turns: Value| json!({ "messages": turns });
    let url = json!({ "type": "image_url", "image_url": { "url": "https://x.example/a.png" } });
    let cases = [
        (
            json!({ "tools": [tool], "parallel_tool_calls": false }),
            "parallel_tool_calls",
        ),
        (
            turns(json!([{ "role": "user", "content": [url] }])),
            "messages[0]",
        ),
        (
            turns(json!([{ "role": "tool", "tool_call_id": "gone", "content": "x" }])),
            "messages[0]",
        ),
        (
            turns(
                json!([{ "role": "assistant", "content": "x" }, { "role": "system", "content": "y" }, { "role": "user", "content": "x" }]),
            ),
            "messages[1].role",
        ),
    ];
    for (members, at) in cases {
        assert_eq!(
            refused_member(CallerForm::Chat, ProviderForm::Gemini, &members),
            at,
            "{members}"
        );
    }
}

#[test]
fn what_responses_cannot_say_to_others_is_refused_by_name() {
    let item = |item: Value| json!({ "input": [item] });
    let user = |part: Value| json!({ "input": [{ "role": "user", "content": [part] }] });
    let cases = [
        (
            json!({ "previous_response_id": "resp_1" }),
            "previous_response_id",
        ),
        (json!({ "conversation": "conv_1" }), "conversation"),
        (json!({ "background": true }), "background"),
        (json!({ "prompt": { "id": "p" } }), "prompt"),
        (json!({ "truncation": "auto" }), "truncation"),
        (json!({ "max_tool_calls": 2 }), "max_tool_calls"),
        (json!({ "top_logprobs": 2 }), "top_logprobs"),
        (
            json!({ "include": ["message.output_text.logprobs"] }),
            "include",
        ),
        (json!({ "text": { "verbosity": "low" } }), "text.verbosity"),
        (
            json!({ "text": { "format": { "type": "grammar" } } }),
            "text.format.type",
        ),
        (
            json!({ "reasoning": { "effort": "wild" } }),
            "reasoning.effort",
        ),
        (json!({ "reasoning": { "mode": "pro" } }), "reasoning.mode"),
        (
            json!({ "tools": [{ "type": "web_search" }] }),
            "tools[0].type",
        ),
        (
            json!({ "tools": [{ "type": "custom", "name": "x" }] }),
            "tools[0].type",
        ),
        (
            json!({ "tool_choice": { "type": "allowed_tools" } }),
            "tool_choice.type",
        ),
        (json!({ "invented_tomorrow": 0 }), "invented_tomorrow"),
        (json!({ "input": 7 }), "input"),
        (json!({ "input": [] }), "input"),
        (json!({ "input": null }), "input"),
        (
            item(json!({ "type": "item_reference", "id": "x" })),
            "input[0].type",
        ),
        (item(json!({ "type": "computer_call" })), "input[0].type"),
        (
            item(json!({ "role": "critic", "content": "x" })),
            "input[0].role",
        ),
        (
            item(json!({ "type": "function_call_output", "output": "x" })),
            "input[0].call_id",
        ),
        (
            item(json!({ "role": "assistant", "content": "so be" })),
            "input[0]",
        ),
        (
            user(json!({ "type": "input_image", "file_id": "f" })),
            "input[0].content[0].file_id",
        ),
        (
            user(json!({ "type": "input_file", "file_url": "u" })),
            "input[0].content[0].file_url",
        ),
        (
            user(json!({ "type": "input_audio" })),
            "input[0].content[0].type",
        ),
    ];
    for (members, at) in cases {
        let mut body = json!({ "model": "m", "input": "hello" });
        for (name, value) in members.as_object().unwrap() {
            body[name] = value.clone();
        }
        let said = request(
            CallerForm::Responses,
            ProviderForm::Messages,
            &body.to_string(),
            &OPTIONS,
        );
        assert_eq!(said.unwrap_err().at, at, "{members}");
    }
    let stored = json!({ "model": "m", "input": "hello", "store": true }).to_string();
    let said = request(CallerForm::Responses, ProviderForm::Chat, &stored, &OPTIONS).unwrap();
    assert_eq!(said.left_out, ["store"]);
}

/// Returns the reply to a caller, and the names of what was left out.
fn replied(
    from: ProviderForm,
    to: CallerForm,
    body: &Value,
) -> Option<(Value, Vec<Cow<'static, str>>)> {
    let told = reply(from, to, &body.to_string(), STAMP)?;
    Some((value(&told.body), told.left_out))
}

#[test]
fn reasons_and_parts_of_gemini_that_nobody_knows_are_named_and_the_reply_goes_on() {
    let none = [
        json!({ "candidates": [{ "content": { "parts": [{ "text": "cut" }] } }] }),
        json!({}),
    ];
    for body in none {
        assert!(
            replied(ProviderForm::Gemini, CallerForm::Chat, &body).is_none(),
            "{body}"
        );
    }
    let usage = json!({ "promptTokenCount": 400, "candidatesTokenCount": 100 });
    for reason in [
        "MALFORMED_FUNCTION_CALL",
        "OTHER",
        "UNEXPECTED_TOOL_CALL",
        "INVENTED_TOMORROW",
    ] {
        let body = json!({ "candidates": [{ "content": { "parts": [] }, "finishReason": reason }], "usageMetadata": usage });
        let (said, left_out) = replied(ProviderForm::Gemini, CallerForm::Chat, &body).unwrap();
        assert_eq!(said["choices"][0]["finish_reason"], "stop", "{reason}");
        assert_eq!(said["usage"]["total_tokens"], 500, "{reason}");
        assert_eq!(left_out, [format!("finishReason.{reason}")]);
        let (_, said) = translate_events(ProviderForm::Gemini, CallerForm::Messages, &[body]);
        assert_eq!(said.last(), Some(&StreamEvent::End), "{reason}");
    }
    let body = json!({ "candidates": [{ "content": { "parts": [
        { "executableCode": { "code": "1" } }, { "text": "one" }, { "inlineData": {} },
    ] }, "finishReason": "STOP" }, {}] });
    let (said, left_out) = replied(ProviderForm::Gemini, CallerForm::Messages, &body).unwrap();
    assert_eq!(said["content"], json!([{ "type": "text", "text": "one" }]));
    assert_eq!(
        left_out,
        ["candidates", "parts.executableCode", "parts.inlineData"]
    );
    let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
    let (said, _) = replied(ProviderForm::Gemini, CallerForm::Chat, &blocked).unwrap();
    assert_eq!(said["choices"][0]["finish_reason"], "content_filter");
}

#[test]
fn reasons_and_blocks_of_messages_that_nobody_knows_are_named_and_the_reply_goes_on() {
    for body in [
        json!({ "error": { "message": "x" } }),
        json!({ "type": "message" }),
    ] {
        assert!(
            replied(ProviderForm::Messages, CallerForm::Chat, &body).is_none(),
            "{body}"
        );
    }
    let paused =
        json!({ "content": [{ "type": "text", "text": "x" }], "stop_reason": "pause_turn" });
    let (said, left_out) = replied(ProviderForm::Messages, CallerForm::Chat, &paused).unwrap();
    assert_eq!(said["choices"][0]["finish_reason"], "stop");
    assert_eq!(left_out, ["stop_reason.pause_turn"]);
    let body = json!({ "content": [
        { "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} },
        { "type": "web_search_tool_result", "tool_use_id": "s", "content": [] },
        { "type": "text", "text": "found" },
    ], "stop_reason": "end_turn" });
    let (said, left_out) = replied(ProviderForm::Messages, CallerForm::Responses, &body).unwrap();
    assert_eq!(said["output"][0]["content"][0]["text"], "found");
    assert_eq!(
        left_out,
        ["content.server_tool_use", "content.web_search_tool_result"]
    );
    let events = [
        json!({ "type": "message_start", "message": { "id": "m" } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "compaction" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "compaction_delta", "content": "x" } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "text_delta", "text": "a" } }),
        json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "invented_delta" } }),
        json!({ "type": "invented_tomorrow" }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "compaction" } }),
        json!({ "type": "message_stop" }),
    ];
    let mut out = Vec::new();
    let mut translator = Translator::new(ProviderForm::Messages, CallerForm::Chat, STAMP);
    let said = events.map(|event| translator.see(event.to_string().as_bytes(), true, &mut out));
    assert_eq!(said.last(), Some(&StreamEvent::End));
    assert!(!said.contains(&StreamEvent::Malformed));
    let out = String::from_utf8(out).unwrap();
    for name in [
        "content.compaction",
        "delta.invented_delta",
        "stop_reason.compaction",
    ] {
        assert!(
            out.contains(&format!(": left out: {name}\n")),
            "{name} {out}"
        );
    }
    assert!(
        out.contains("\"content\":\"a\"") && out.ends_with("data: [DONE]\n\n"),
        "{out}"
    );
}

#[test]
fn tool_calls_are_read_in_every_form_that_servers_send() {
    let chat = |calls: Value, reason: &str| {
        let body = json!({ "id": "r", "choices": [{ "message": { "tool_calls": calls }, "finish_reason": reason }] });
        replied(ProviderForm::Chat, CallerForm::Messages, &body)
            .unwrap()
            .0
    };
    let call = |arguments: Value| json!([{ "id": "c", "type": "function", "function": { "name": "f", "arguments": arguments } }]);
    let said = chat(call(json!({ "path": "/etc", "n": 1 })), "tool_calls");
    assert_eq!(
        said["content"][0]["input"],
        json!({ "path": "/etc", "n": 1 })
    );
    let said = chat(call(json!("{\"a\": [1,2")), "length");
    assert_eq!(said["content"][0]["input"], json!({ "a": [1, 2] }));
    assert_eq!(said["stop_reason"], "max_tokens");
    let said = chat(call(json!("not json")), "tool_calls");
    assert_eq!(
        said["content"][0]["input"],
        json!({ "arguments": "not json" })
    );
    let said = chat(
        json!([{ "function": { "name": "f", "arguments": "{}" } }, { "function": {} }]),
        "stop",
    );
    assert_eq!(said["stop_reason"], "tool_use");
    assert_eq!(said["content"].as_array().unwrap().len(), 1);
    let legacy = json!({ "id": "r", "choices": [{ "message": { "function_call": { "name": "f", "arguments": "{\"a\":1}" } }, "finish_reason": "function_call" }] });
    let said = replied(ProviderForm::Chat, CallerForm::Messages, &legacy)
        .unwrap()
        .0;
    assert_eq!(
        (&said["content"][0]["name"], &said["content"][0]["input"]),
        (&json!("f"), &json!({ "a": 1 }))
    );
    // A caller with a dialect that has a text for it reads the model's own.
    let body = json!({ "choices": [{ "message": { "tool_calls": call(json!("{\"a\"")) }, "finish_reason": "length" }] });
    let said = replied(ProviderForm::Chat, CallerForm::Responses, &body)
        .unwrap()
        .0;
    assert_eq!(said["output"][0]["arguments"], "{\"a\"");
}

#[test]
fn calls_without_ids_have_other_ids_in_each_reply() {
    let id = |reply: &str| {
        let body = json!({ "id": reply, "choices": [{ "message": { "tool_calls": [{ "function": { "name": "f" } }] }, "finish_reason": "tool_calls" }] });
        let said = replied(ProviderForm::Chat, CallerForm::Messages, &body)
            .unwrap()
            .0;
        said["content"][0]["id"].as_str().unwrap().to_owned()
    };
    assert_ne!(id("r1"), id("r2"));
    assert_eq!(id("r1"), id("r1"));
}

/// Returns the calls that a caller of messages reads of these deltas of calls: id, name, arguments.
fn streamed_calls(deltas: &[Value]) -> Vec<(String, String, String)> {
    let delta = |call: &Value| json!({ "id": "r", "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] });
    let mut events: Vec<Value> = deltas.iter().map(delta).collect();
    events.push(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }));
    events.push(json!("[DONE]"));
    let (told, said) = translate_events(ProviderForm::Chat, CallerForm::Messages, &events);
    assert_eq!(said.last(), Some(&StreamEvent::End), "{deltas:?}");
    let mut calls = std::collections::BTreeMap::new();
    for event in told {
        let index = event["index"].as_u64();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                let block = &event["content_block"];
                calls.insert(
                    index,
                    (text(&block["id"]), text(&block["name"]), String::new()),
                );
            }
            "content_block_delta" => {
                calls
                    .get_mut(&index)
                    .unwrap()
                    .2
                    .push_str(event["delta"]["partial_json"].as_str().unwrap());
            }
            _ => {}
        }
    }
    calls.into_values().collect()
}

#[test]
fn streamed_calls_are_told_apart_however_a_server_numbers_them() {
    let call = |index: Value, id: Value, name: Value, arguments: Value| json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    let none = Value::Null;
    let two = |calls: Vec<(String, String, String)>| {
        let calls: Vec<_> = calls
            .into_iter()
            .map(|(id, name, text)| (id, format!("{name}{text}")))
            .collect();
        let [first, second] = calls.as_slice() else {
            panic!("{calls:?}")
        };
        assert_ne!(first.0, second.0);
        assert_eq!(
            (first.1.as_str(), second.1.as_str()),
            ("f0{\"a\":1}", "f1{\"b\":2}")
        );
    };
    // The same number, and ids that differ.
    two(streamed_calls(&[
        call(json!(0), json!("c0"), json!("f0"), json!("{\"a\":1}")),
        call(json!(0), json!("c1"), json!("f1"), json!("{\"b\":2}")),
    ]));
    // The same number, no ids, whole arguments.
    two(streamed_calls(&[
        call(json!(0), none.clone(), json!("f0"), json!({ "a": 1 })),
        call(json!(0), none.clone(), json!("f1"), json!({ "b": 2 })),
    ]));
    // No numbers.
    two(streamed_calls(&[
        call(none.clone(), json!("c0"), json!("f0"), json!("{\"a\"")),
        call(none.clone(), none.clone(), none.clone(), json!(":1}")),
        call(none.clone(), json!("c1"), json!("f1"), json!("{\"b\":2}")),
    ]));
    // A name that comes late, and names and ids that are repeated.
    two(streamed_calls(&[
        call(json!(0), json!("c0"), none.clone(), json!("{\"a\"")),
        call(json!(0), none.clone(), json!("f0"), json!(":1}")),
        call(json!(1), json!("c1"), json!("f1"), json!("{\"b\"")),
        call(json!(1), json!("c1"), json!("f1"), json!(":2}")),
    ]));
}

#[test]
fn a_stream_that_is_cut_or_odd_never_looks_whole() {
    let start = json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "delta": { "content": "a" } }] });
    let done = json!("[DONE]");
    for (events, last) in [
        (vec![done.clone()], StreamEvent::Malformed),
        (vec![start.clone(), done], StreamEvent::Malformed),
        (vec![start.clone(), json!("{oops")], StreamEvent::Malformed),
        (
            vec![start.clone(), json!({ "error": { "message": "no more" } })],
            StreamEvent::Failed,
        ),
        (
            vec![json!({ "choices": [{ "index": 1, "delta": {} }] })],
            StreamEvent::Part,
        ),
    ] {
        let (told, said) = translate_events(ProviderForm::Chat, CallerForm::Messages, &events);
        assert_eq!(said.last(), Some(&last), "{events:?}");
        assert!(told.iter().all(|event| event["type"] != "message_stop"));
    }
    let mut translator = Translator::new(ProviderForm::Messages, CallerForm::Chat, STAMP);
    let mut out = Vec::new();
    let error =
        json!({ "type": "error", "error": { "type": "overloaded_error", "message": "busy" } });
    let said = translator.see(error.to_string().as_bytes(), false, &mut out);
    assert_eq!(
        (said, translator.failure()),
        (StreamEvent::Failed, Some("busy"))
    );
    assert!(out.is_empty());
    assert_eq!(
        translator.see(b"\xff", false, &mut out),
        StreamEvent::Malformed
    );
}

#[test]
fn what_was_cut_counts_by_what_was_seen_and_usage_goes_to_whoever_wants_it() {
    let events = [
        json!({ "type": "message_start", "message": { "id": "m", "usage": { "input_tokens": 3, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "a" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "b" } }),
    ];
    let mut translator = Translator::new(ProviderForm::Messages, CallerForm::Chat, STAMP);
    let mut out = Vec::new();
    for event in &events {
        translator.see(event.to_string().as_bytes(), false, &mut out);
    }
    assert!(!translator.has_finished());
    let used = translator.used_tokens();
    assert_eq!((used.input, used.output), (Some(3), Some(2)));
    let last = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 9 } });
    translator.see(last.to_string().as_bytes(), false, &mut out);
    assert!(translator.has_finished());
    translator.end(&mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.ends_with("data: [DONE]\n\n") && !text.contains("usage"));
    assert_eq!(translator.used_tokens().output, Some(9));
}

#[test]
fn no_bytes_make_a_translator_panic() {
    use proptest::prelude::*;
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let words = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "null",
        "0",
        "\"type\":",
        "\"choices\":[{",
        "\"delta\":{",
        "\"tool_calls\":[{",
        "\"index\":3,",
        "\"content_block\":{",
        "\"message_delta\"",
        "\"id\":\"\\ud800\"",
    ]);
    let strategy = prop::collection::vec(words, 0..24).prop_map(|words| words.concat());
    let run = runner.run(&strategy, |text| {
        for (from, to, _) in PAIRS {
            let _ = request(*from, *to, &text, &OPTIONS);
            let _ = reply(*to, *from, &text, STAMP);
            let mut out = Vec::new();
            let mut translator = Translator::new(*to, *from, STAMP);
            translator.see(text.as_bytes(), true, &mut out);
            translator.end(&mut out);
        }
        Ok(())
    });
    run.unwrap();
}
