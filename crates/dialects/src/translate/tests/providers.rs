//! In what providers of one dialect differ.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{OPTIONS, STAMP, translate_events, value};
use crate::stream_state::StreamEvent;
use crate::translate::{
    CallerForm, ProviderForm, ReasoningField, RequestOptions, Translator, reply, request,
};

/// A conversation with thoughts in it, as a caller of messages gives it back.
fn thought_through() -> Value {
    json!({
        "model": "m", "max_tokens": 9, "stream": true, "metadata": { "user_id": "ann" },
        "messages": [
            { "role": "user", "content": "hello" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "" },
                { "type": "tool_use", "id": "a", "name": "f", "input": {} },
            ] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "a", "content": "x" }] },
        ],
    })
}

#[test]
fn thoughts_stand_where_the_provider_takes_them() {
    let asked = |thoughts, is_strict| {
        let options = RequestOptions {
            thoughts,
            is_strict,
            ..OPTIONS
        };
        let body = thought_through().to_string();
        let said = request(CallerForm::Messages, ProviderForm::Chat, &body, &options).unwrap();
        (value(&said.body), said.left_out)
    };
    let of = |body: &Value| {
        let mut said = body["messages"][1].as_object().unwrap().clone();
        said.remove("tool_calls").unwrap();
        Value::from(said)
    };
    let (body, left_out) = asked(ReasoningField::ReasoningContent, false);
    assert_eq!(
        of(&body),
        json!({ "role": "assistant", "content": null, "reasoning_content": "hm" })
    );
    assert_eq!(
        (&body["user"], &body["stream_options"]["include_usage"]),
        (&json!("ann"), &json!(true))
    );
    assert!(left_out.is_empty());
    let (body, _) = asked(ReasoningField::Reasoning, false);
    assert_eq!(
        of(&body),
        json!({ "role": "assistant", "content": null, "reasoning": "hm" })
    );
    let (body, left_out) = asked(ReasoningField::Parts, true);
    let parts = json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] }]);
    assert_eq!(of(&body), json!({ "role": "assistant", "content": parts }));
    assert!(body.get("user").is_none() && body.get("stream_options").is_none());
    assert_eq!(left_out, ["user_id"]);
}

#[test]
fn a_content_in_parts_is_read_part_by_part() {
    let thinking = json!({ "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] });
    let text = json!({ "type": "text", "text": "yes" });
    let whole = |content: Value| {
        let body =
            json!({ "choices": [{ "message": { "content": content }, "finish_reason": "stop" }] });
        let told = reply(
            ProviderForm::Chat,
            CallerForm::Messages,
            &body.to_string(),
            STAMP,
        )?;
        Some(value(&told.body)["content"].clone())
    };
    assert_eq!(
        whole(json!([thinking, text])).unwrap(),
        json!([{ "type": "thinking", "thinking": "hm", "signature": "" }, { "type": "text", "text": "yes" }])
    );
    assert_eq!(whole(json!([{ "type": "reference" }])), Some(json!([])));
    let event =
        |content: &Value| json!({ "choices": [{ "index": 0, "delta": { "content": content } }] });
    let (told, said) = translate_events(
        ProviderForm::Chat,
        CallerForm::Messages,
        &[
            event(&json!([thinking])),
            event(&json!([text])),
            event(&json!("!")),
            event(&json!([{ "type": "reference" }])),
        ],
    );
    let deltas: Vec<&Value> = told.iter().filter_map(|event| event.get("delta")).collect();
    assert_eq!(
        json!(deltas),
        json!([
            { "type": "thinking_delta", "thinking": "hm" },
            { "type": "text_delta", "text": "yes" },
            { "type": "text_delta", "text": "!" },
        ])
    );
    assert_eq!(said.last(), Some(&StreamEvent::Part));
    let image = json!({ "choices": [{ "index": 0, "delta": { "images": [{}] } }] });
    let mut out = Vec::new();
    let mut translator = Translator::new(ProviderForm::Chat, CallerForm::Messages, STAMP);
    let said = translator.see(image.to_string().as_bytes(), true, &mut out);
    let out = String::from_utf8(out).unwrap();
    assert!(
        said == StreamEvent::Part && out.contains(": left out: message.images\n"),
        "{out}"
    );
}

#[test]
fn a_block_ends_before_the_next_begins_where_its_arguments_are_whole() {
    let call = |index: u64, name: Option<&str>, arguments: &str| {
        let mut call = json!({ "index": index, "function": { "arguments": arguments } });
        if let Some(name) = name {
            call["id"] = json!(name);
            call["function"]["name"] = json!(name);
        }
        json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] })
    };
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] });
    let kinds = |events: &[Value]| {
        let (told, _) = translate_events(ProviderForm::Chat, CallerForm::Messages, events);
        let marked = told.iter().filter_map(|event| {
            let kind = event["type"].as_str()?.strip_prefix("content_block_")?;
            Some(format!("{kind} {}", event["index"]))
        });
        marked.collect::<Vec<_>>()
    };
    let by_order = [
        call(0, Some("f"), ""),
        call(0, None, r##"{"a":"}\"""##),
        call(0, None, ",\"b\":[{}]} "),
        call(1, Some("g"), "{}"),
        call(0, None, " \n"),
        end.clone(),
        json!("[DONE]"),
    ];
    assert_eq!(
        kinds(&by_order),
        [
            "start 0", "delta 0", "delta 0", "stop 0", "start 1", "delta 1", "stop 1"
        ]
    );
    let by_turns = [
        call(0, Some("f"), "{"),
        call(1, Some("g"), "{"),
        call(0, None, "}"),
        call(1, None, "}"),
        end,
        json!("[DONE]"),
    ];
    assert_eq!(
        kinds(&by_turns),
        [
            "start 0", "delta 0", "start 1", "delta 1", "delta 0", "delta 1", "stop 0", "stop 1"
        ]
    );
}

#[test]
fn what_gemini_says_beside_its_words_is_named() {
    let body = json!({ "candidates": [{
        "content": { "parts": [{ "text": "yes" }] }, "finishReason": "STOP",
        "citationMetadata": { "citationSources": [{ "uri": "https://x.example" }] }, "groundingMetadata": {},
    }] });
    let told = reply(
        ProviderForm::Gemini,
        CallerForm::Chat,
        &body.to_string(),
        STAMP,
    )
    .unwrap();
    assert_eq!(told.left_out, ["citationMetadata"]);
    let mut out = Vec::new();
    let mut translator = Translator::new(ProviderForm::Gemini, CallerForm::Messages, STAMP);
    translator.see(body.to_string().as_bytes(), true, &mut out);
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains(": left out: citationMetadata\n"), "{out}");
}

#[test]
fn what_is_for_the_providers_own_books_is_left_out_and_named() {
    let asked = |members: Value| {
        let mut body =
            json!({ "model": "m", "messages": [{ "role": "user", "content": "hello" }] });
        for (name, value) in members.as_object().unwrap() {
            body[name] = value.clone();
        }
        let said = request(
            CallerForm::Chat,
            ProviderForm::Messages,
            &body.to_string(),
            &OPTIONS,
        );
        said.unwrap().left_out
    };
    let own = json!({ "store": true, "metadata": { "a": "b" }, "prediction": { "type": "content", "content": "x" } });
    assert_eq!(asked(own), ["metadata", "prediction", "store"]);
    assert!(asked(json!({ "store": false, "metadata": {} })).is_empty());
}

/// What one request leaves out, and how it is written.
fn written(
    from: CallerForm,
    to: ProviderForm,
    members: Value,
) -> Result<(Value, Vec<Cow<'static, str>>), String> {
    let mut body = json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "hello" }] });
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    let said = request(from, to, &body.to_string(), &OPTIONS).map_err(|fault| fault.at)?;
    Ok((value(&said.body), said.left_out))
}

#[test]
fn a_user_whose_name_is_too_long_for_the_provider_is_left_out_and_named() {
    let named = |from, to, length: usize| {
        let name = "\u{e9}".repeat(length);
        let members = match from {
            CallerForm::Messages => json!({ "metadata": { "user_id": name } }),
            _ => json!({ "user": name }),
        };
        let (body, left_out) = written(from, to, members).unwrap();
        let has = body.get("user").or(body.get("metadata")).is_some();
        assert_eq!(has, left_out.is_empty());
        left_out
    };
    assert!(named(CallerForm::Messages, ProviderForm::Chat, 64).is_empty());
    assert_eq!(
        named(CallerForm::Messages, ProviderForm::Chat, 65),
        ["user_id"]
    );
    assert!(named(CallerForm::Chat, ProviderForm::Messages, 256).is_empty());
    assert_eq!(
        named(CallerForm::Chat, ProviderForm::Messages, 257),
        ["user"]
    );
}

#[test]
fn what_need_not_be_read_again_is_a_hint_and_a_summary_is_none() {
    let edits = |kind: &str| json!({ "context_management": { "edits": [{ "type": kind, "keep": "all" }] } });
    let asked = |members| written(CallerForm::Messages, ProviderForm::Chat, members);
    let (_, left_out) = asked(edits("clear_thinking_20251015")).unwrap();
    assert_eq!(left_out, ["context_management"]);
    let fault = asked(edits("compact_20260112")).unwrap_err();
    assert_eq!(fault, "context_management");
    let none = asked(json!({ "context_management": { "edits": [] } })).unwrap();
    assert!(none.1.is_empty());
}

#[test]
fn system_text_before_the_first_answer_is_geminis_instruction() {
    let turn = |role: &str, text: &str| json!({ "role": role, "content": text });
    let early = json!({ "system": "s", "messages": [turn("user", "a"), turn("system", "t"), turn("user", "b")] });
    let (body, _) = written(CallerForm::Messages, ProviderForm::Gemini, early).unwrap();
    assert_eq!(
        body["systemInstruction"],
        json!({ "parts": [{ "text": "s" }, { "text": "t" }] })
    );
    let texts = body["contents"].as_array().unwrap().iter();
    let texts: Vec<&Value> = texts.map(|content| &content["parts"][0]["text"]).collect();
    assert_eq!(texts, ["a", "b"]);
    let late = json!({ "messages": [
        turn("user", "a"), turn("assistant", "b"), turn("system", "t"), turn("user", "c"),
    ] });
    let fault = written(CallerForm::Messages, ProviderForm::Gemini, late).unwrap_err();
    assert_eq!(fault, "messages[2].role");
}
