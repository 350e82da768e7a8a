//! Any text as a request, a reply and the events of a stream, said in the words of another dialect: no panic, and what is written is
//! JSON, or events of it. Bytes from 0x80 on stand for words of the dialects, so that texts come to say something.
#![no_main]

use dialects::translate::{
    CallerForm, ProviderForm, ReasoningField, ReplyStamp, RequestOptions, Translator,
    UnsupportedMembers, reply, request,
};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use wire::SseParser;

const FRONTS: [CallerForm; 3] = [
    CallerForm::Chat,
    CallerForm::Messages,
    CallerForm::Responses,
];
const FORMATS: [ProviderForm; 3] = [
    ProviderForm::Chat,
    ProviderForm::Messages,
    ProviderForm::Gemini,
];

const WORDS: [&str; 64] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "{\"",
    "\":",
    "\":\"",
    "\",\"",
    "\"}",
    "null",
    "true",
    "0",
    "1",
    "{\"type\":\"",
    "\"index\":",
    "\"id\":\"a\"",
    "\"name\":\"f\"",
    "\"model\":\"m\",",
    "\"messages\":[",
    "\"input\":[",
    "{\"role\":\"user\",",
    "{\"role\":\"assistant\",",
    "\"content\":\"x\"}",
    "\"content\":[",
    "\"text\":\"x\"",
    "\"tools\":[",
    "\"arguments\":\"{}\"",
    "\"function\":{",
    "\"tool_calls\":[",
    "{\"choices\":[{\"delta\":{",
    "\"finish_reason\":\"stop\"",
    "\"length\"",
    "\"usage\":{\"prompt_tokens\":1",
    "[DONE]",
    "\n",
    "\"reasoning_content\":\"x\"",
    "\"refusal\":\"x\"",
    "{\"type\":\"message_start\",\"message\":{",
    "{\"type\":\"content_block_start\",\"index\":",
    "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}",
    "\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\"}}",
    "{\"type\":\"content_block_delta\",\"index\":",
    "\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}",
    "\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}",
    "{\"type\":\"content_block_stop\",\"index\":",
    "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"",
    "end_turn\"}}",
    "{\"type\":\"message_stop\"}",
    "{\"type\":\"error\",\"error\":{\"message\":\"x\"}}",
    "\"thinking\"",
    "\"signature\":\"s\"",
    "\"redacted_thinking\",\"data\":\"d\"",
    "\"thinking_delta\",\"thinking\":\"x\"}}",
    "{\"candidates\":[{\"content\":{\"parts\":[",
    "\"functionCall\":{",
    "\"thought\":true",
    "\"thoughtSignature\":\"s\"",
    "\"finishReason\":\"STOP\"}]}",
    "\"usageMetadata\":{\"promptTokenCount\":1",
    "\"promptFeedback\":{\"blockReason\":\"X\"}",
    "\\ud800",
];

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(text).is_ok()
}

fuzz_target!(|input: (u8, &[u8])| {
    let (which, bytes) = input;
    let from = FRONTS[usize::from(which) % 3];
    let to = FORMATS[usize::from(which / 3) % 3];
    let mut text = String::new();
    for byte in bytes {
        match byte.checked_sub(0x80) {
            Some(word) => text.push_str(WORDS[usize::from(word) % WORDS.len()]),
            None => text.push(char::from(*byte)),
        }
    }
    let options = RequestOptions {
        model: "m",
        max_tokens: 9,
        names_completion: which & 1 == 0,
        thoughts: [
            ReasoningField::ReasoningContent,
            ReasoningField::Reasoning,
            ReasoningField::Parts,
        ][usize::from(which / 9) % 3],
        is_strict: which & 2 == 0,
        unsupported: if which & 4 == 0 {
            UnsupportedMembers::Refuse
        } else {
            UnsupportedMembers::Drop
        },
        signatures: None,
    };
    if let Ok(said) = request(from, to, &text, &options) {
        assert!(is_json(&said.body));
    }
    let stamp = ReplyStamp {
        created: 7,
        id: "own",
        asked: &text,
    };
    if let Some(told) = reply(to, from, &text, stamp) {
        assert!(is_json(&told.body));
    }
    let mut translator = Translator::new(to, from, ReplyStamp { asked: "", ..stamp });
    let mut out = Vec::new();
    for data in text.split('\n') {
        translator.see(data.as_bytes(), which & 2 == 0, &mut out);
        let _ = (translator.used_tokens(), translator.failure());
    }
    if translator.has_finished() {
        translator.end(&mut out);
    }
    let mut parser = SseParser::default();
    parser.push(&out);
    while let Some(event) = parser
        .next()
        .expect("what is written is a stream of events")
    {
        assert!(
            event.data == b"[DONE]" || is_json(event.data),
            "{:?}",
            String::from_utf8_lossy(event.data)
        );
    }
});
