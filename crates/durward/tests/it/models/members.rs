//! Every member that OpenAI's and Anthropic's own libraries know of requests and replies is carried across to another dialect, or refused
//! or reported by its name.

use std::collections::BTreeSet;
use std::process::Command;

use dialects::StreamEvent;
use dialects::translate::{
    CallerForm, Inexpressible, ProviderForm, ReasoningField, ReplyStamp, RequestOptions,
    Translator, UnsupportedMembers, reply, request,
};
use serde_json::{Value, json};

use crate::support::components;

/// Members that may be absent from what is sent, which value of them, and why.
const SAYS_NOTHING: &[(&str, &str, &str)] = &[
    ("* service_tier", "\"auto\"", USUAL),
    ("* service_tier", "\"default\"", USUAL),
    (
        "messages service_tier",
        "\"standard_only\"",
        "it keeps from capacity that no other provider has",
    ),
    ("* store", "false", USUAL),
    ("* background", "false", USUAL),
    ("* truncation", "\"disabled\"", USUAL),
    ("* speed", "\"standard\"", USUAL),
    ("* verbosity", "\"medium\"", USUAL),
    ("* text.verbosity", "\"medium\"", USUAL),
    ("* text.format.type", "\"text\"", USUAL),
    ("* response_format.type", "\"text\"", USUAL),
    ("* logprobs", "false", USUAL),
    ("* modalities[]", "\"text\"", USUAL),
    ("chat function_call", "\"auto\"", USUAL),
    ("chat function_call", "\"none\"", USUAL),
    ("* messages[].content[].citations.enabled", "false", USUAL),
    (
        "* messages[].content[].content[].citations.enabled",
        "false",
        USUAL,
    ),
    ("* parallel_tool_calls", "true", USUAL),
    ("* tool_choice.disable_parallel_tool_use", "false", USUAL),
    ("* tools[].defer_loading", "false", USUAL),
    ("* tools[].allowed_callers[]", "\"direct\"", USUAL),
    ("* tools[].type", "\"custom\"", USUAL),
    ("* tools[].strict", "false", USUAL),
    ("* tools[].function.strict", "false", USUAL),
    ("* messages[].content[].caller.type", "\"direct\"", USUAL),
    ("* messages[].content[].is_error", "false", USUAL),
    ("* input[].caller.type", "\"direct\"", USUAL),
    ("* input[].type", "\"message\"", USUAL),
    ("* stream_options", "*", "streams are written anew"),
    ("* response_format.json_schema.strict", "*", ALWAYS_STRICT),
    ("* text.format.strict", "*", ALWAYS_STRICT),
    (
        "messages thinking.budget_tokens",
        "*",
        "it becomes an effort",
    ),
    (
        "responses include[]",
        "\"reasoning.encrypted_content\"",
        "it is always there",
    ),
    ("responses metadata", "*", "the response repeats it"),
    ("responses input[].id", "*", OF_ITEMS),
    ("responses input[].status", "*", OF_ITEMS),
];

const USUAL: &str = "it is so where nothing is said";
const ALWAYS_STRICT: &str = "the provider holds replies to every schema";
const OF_ITEMS: &str = "items come back with what they came with";

/// Members of replies that stay behind, and why.
const STAYS: &[(&str, &str, &str)] = &[
    ("* service_tier", "*", HOUSE),
    ("* system_fingerprint", "*", HOUSE),
    ("* metadata", "*", HOUSE),
    ("* diagnostics", "*", HOUSE),
    ("* message.diagnostics", "*", HOUSE),
    ("messages reply content[].caller.type", "\"direct\"", USUAL),
    (
        "messages event content_block.caller.type",
        "\"direct\"",
        USUAL,
    ),
    ("* obfuscation", "*", HOUSE),
    ("* created", "*", ANEW),
    ("* choices[].index", "*", ANEW),
    ("* index", "*", ANEW),
    ("* usage.total_tokens", "*", ANEW),
    ("* usage.prompt_tokens_details", "*", FINER),
    ("* usage.completion_tokens_details", "*", FINER),
    ("* usage.cache_creation", "*", FINER),
    ("* usage.server_tool_use", "*", FINER),
    ("* usage.inference_geo", "*", HOUSE),
    ("* usage.service_tier", "*", HOUSE),
    ("* usage.speed", "*", HOUSE),
    ("* message.usage", "*", "as in a whole reply"),
    ("* stop_reason", "*", REASON),
    ("* stop_sequence", "*", REASON),
    ("* delta.stop_reason", "*", REASON),
    ("* delta.stop_sequence", "*", REASON),
    ("messages event message.stop_reason", "*", BEGUN),
    ("messages event message.stop_sequence", "*", BEGUN),
    ("messages event message.content[]", "*", BEGUN),
];

const HOUSE: &str = "it is about the provider's own affairs";
const ANEW: &str = "it is counted or stamped anew";
const FINER: &str = "it is a part of a count that is told, in a finer grain than anybody else's";
const REASON: &str = "the reason is among those that the transcripts show, and what is beside it belongs to another reason";
const BEGUN: &str = "a message that begins has none";

/// A member as the driver makes it.
struct Probe {
    of: String,
    member: String,
    value: Value,
    with: String,
    without: Option<String>,
}

impl Probe {
    fn read(line: &str) -> Self {
        let own: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| own[name].as_str().unwrap().to_owned();
        Self {
            of: text("of"),
            member: text("member"),
            value: own["value"].clone(),
            with: own["with"].to_string(),
            without: (!own["without"].is_null()).then(|| own["without"].to_string()),
        }
    }

    /// Whether a table lets this member, or this value of it, be absent.
    fn is_in(&self, table: &[(&str, &str, &str)]) -> bool {
        let names = |pattern: &str| {
            let (of, member) = pattern.rsplit_once(' ').unwrap();
            let rest = self.member.strip_prefix(member);
            (of == "*" || of == self.of)
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let value = self.value.to_string();
        table
            .iter()
            .any(|(member, own, _)| names(member) && (*own == "*" || *own == value))
    }

    /// What was drawn for this member, where anything was.
    fn drawn(&self) -> Option<String> {
        let is_drawn = match &self.value {
            // Other words are the dialect's own.
            Value::String(own) => {
                own.len() == 12 && own.bytes().all(|byte| byte.is_ascii_lowercase())
                    || own.starts_with("data:")
                    || own.starts_with('{')
            }
            Value::Bool(_) => false,
            _ => true,
        };
        is_drawn.then(|| letters(&self.value.to_string()))
    }

    /// Whether it is in a text.
    fn is_carried(&self, body: &str) -> bool {
        let body = letters(body);
        self.drawn().is_none_or(|drawn| body.contains(&drawn))
    }
}

/// The letters and digits of a text, whatever they are quoted by.
fn letters(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// The probes that a seed gives; `None` where the libraries are not installed.
fn probes(seed: u64) -> Option<Vec<Probe>> {
    let mut command = Command::new(components::models_python()?);
    command
        .arg(components::models_driver("members.py"))
        .arg(seed.to_string());
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(Probe::read).collect())
}

/// Names without the numbers of elements.
fn plain(place: &str) -> Vec<String> {
    let names = place
        .split('.')
        .map(|name| name.split('[').next().unwrap_or_default().to_owned());
    names.collect()
}

/// Whether one path is inside the other.
fn nested(one: &[String], other: &[String]) -> bool {
    let common = one.len().min(other.len());
    one.get(..common) == other.get(..common)
}

/// Whether a refusal names the member, or what it is in, by its type too, or something in it, or what is missing beside it.
fn names(fault: &Inexpressible, member: &str) -> bool {
    let (mut place, member) = (plain(&fault.at), plain(member));
    let is_beside = place.last().is_some_and(|last| last == "type") || fault.why == "is missing";
    if is_beside && place.len() > 1 {
        place.pop();
    }
    nested(&place, &member)
}

/// Whether what was left out is this member, or has it. What a dialect does not know is named by its place and its type, such as
/// `content.server_tool_use`.
fn reports(left_out: &[impl AsRef<str>], member: &str) -> bool {
    // An event has one of what a reply has a list of.
    let member = plain(
        &member
            .replace("citation", "citations")
            .replace("citationss", "citations")
            .replace("content_block", "content"),
    );
    let has = |names: &[String]| {
        !names.is_empty() && member.windows(names.len()).any(|part| part == names)
    };
    left_out.iter().any(|name| {
        let names = plain(name.as_ref());
        let (_, place) = names.split_last().unwrap();
        has(&names) || has(place)
    })
}

const OPTIONS: RequestOptions<'_> = RequestOptions {
    model: "big",
    max_tokens: 99,
    names_completion: false,
    thoughts: ReasoningField::ReasoningContent,
    is_strict: false,
    unsupported: UnsupportedMembers::Refuse,
    signatures: None,
};

/// What is wrong with how one member is told to another dialect.
fn fault(
    probe: &Probe,
    (from, to): (CallerForm, ProviderForm),
    unsupported: UnsupportedMembers,
) -> Option<String> {
    let options = RequestOptions {
        unsupported,
        ..OPTIONS
    };
    let ask = |body: &str| request(from, to, body, &options);
    let with = match ask(&probe.with) {
        Ok(said) => said,
        Err(fault) => {
            let without = probe.without.as_deref().map(ask);
            // What stands beside it may be refused already.
            let alone = !matches!(without, Some(Err(_)) | None);
            let named = names(&fault, &probe.member);
            return (alone && !named).then(|| format!("is refused as {fault}"));
        }
    };
    let body = String::from_utf8(with.body).unwrap();
    if probe.is_in(SAYS_NOTHING) || reports(&with.left_out, &probe.member) {
        return None;
    }
    let same = match probe.without.as_deref().map(ask) {
        // A word that has to be there chooses the form of what is beside it.
        None => false,
        Some(Err(_)) => return None,
        Some(Ok(without)) => body.as_bytes() == without.body,
    };
    (same || !probe.is_carried(&body)).then(|| format!("is dropped in {body}"))
}

#[test]
fn every_member_of_a_request_is_carried_across_or_named() {
    let Some(probes) = probes(18) else { return };
    let (mut faults, mut seen) = (BTreeSet::new(), 0);
    for probe in &probes {
        let (from, formats): (_, &[ProviderForm]) = match probe.of.as_str() {
            "chat" => (
                CallerForm::Chat,
                &[ProviderForm::Messages, ProviderForm::Gemini],
            ),
            "messages" => (
                CallerForm::Messages,
                &[ProviderForm::Chat, ProviderForm::Gemini],
            ),
            "responses" => (
                CallerForm::Responses,
                &[
                    ProviderForm::Chat,
                    ProviderForm::Messages,
                    ProviderForm::Gemini,
                ],
            ),
            _ => continue,
        };
        for to in formats {
            seen += 1;
            for unsupported in [UnsupportedMembers::Refuse, UnsupportedMembers::Drop] {
                let found = fault(probe, (from, *to), unsupported);
                faults.extend(found.map(|why| {
                    format!(
                        "{from:?} before {to:?}, {unsupported:?}: {} {} {why}",
                        probe.member, probe.value
                    )
                }));
            }
        }
    }
    let all: Vec<String> = faults.into_iter().collect();
    assert!(
        all.is_empty(),
        "{} of {seen}:\n{}",
        all.len(),
        all.join("\n")
    );
    assert!(seen > 5_000, "{seen}");
}

const STAMP: ReplyStamp<'_> = ReplyStamp {
    created: 7,
    id: "own",
    asked: "",
};

/// What a caller is told of a reply or of an event, and what was left out of it; `None` where it is unreadable.
fn told(
    probe: &Probe,
    body: &str,
    from: ProviderForm,
    to: CallerForm,
) -> Option<(String, Vec<String>)> {
    if probe.of.ends_with("reply") {
        let said = reply(from, to, body, STAMP)?;
        let left_out = said.left_out.into_iter().map(Into::into).collect();
        return Some((String::from_utf8(said.body).unwrap(), left_out));
    }
    let (begins, ends) = match from {
        ProviderForm::Messages => (
            vec![json!({ "type": "message_start", "message": { "id": "i", "model": "m" } })],
            vec![
                json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
                json!({ "type": "message_stop" }),
            ],
        ),
        _ => (
            Vec::new(),
            vec![
                json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }),
                json!("[DONE]"),
            ],
        ),
    };
    let mut out = Vec::new();
    let mut translator = Translator::new(from, to, STAMP);
    let own: Value = serde_json::from_str(body).unwrap();
    for event in begins.into_iter().chain([own]).chain(ends) {
        let data = event
            .as_str()
            .map_or_else(|| event.to_string(), str::to_owned);
        match translator.see(data.as_bytes(), true, &mut out) {
            StreamEvent::Malformed | StreamEvent::Failed => return None,
            StreamEvent::Part | StreamEvent::UsageOnly | StreamEvent::End => {}
        }
    }
    let text = String::from_utf8(out).unwrap();
    let left_out = text
        .lines()
        .filter_map(|line| line.strip_prefix(": left out: "));
    let left_out = left_out.map(str::to_owned).collect();
    Some((text, left_out))
}

#[test]
fn every_member_of_a_reply_is_carried_across_or_named_or_makes_it_unreadable() {
    let Some(probes) = probes(18) else { return };
    let (mut faults, mut seen) = (BTreeSet::new(), 0);
    for probe in &probes {
        let (from, fronts) = match probe.of.split_once(' ') {
            Some(("chat", "reply" | "event")) => (
                ProviderForm::Chat,
                [CallerForm::Messages, CallerForm::Responses],
            ),
            Some(("messages", "reply" | "event")) => (
                ProviderForm::Messages,
                [CallerForm::Chat, CallerForm::Responses],
            ),
            _ => continue,
        };
        for to in fronts {
            let Some((with, left_out)) = told(probe, &probe.with, from, to) else {
                continue;
            };
            seen += 1;
            let left_out: Vec<&str> = left_out.iter().map(String::as_str).collect();
            let without = probe.without.as_deref();
            let without = without.and_then(|body| told(probe, body, from, to));
            let same = without.is_some_and(|(without, _)| without == with);
            let held = !same && probe.is_carried(&with);
            if !held && !reports(&left_out, &probe.member) && !probe.is_in(STAYS) {
                faults.insert(format!(
                    "{} to {to:?}: {} {} is dropped in {with}",
                    probe.of, probe.member, probe.value
                ));
            }
        }
    }
    let all: Vec<String> = faults.into_iter().collect();
    assert!(
        all.is_empty(),
        "{} of {seen}:\n{}",
        all.len(),
        all.join("\n")
    );
    assert!(seen > 300, "{seen}");
}
