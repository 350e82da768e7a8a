//! Google Vertex, played by a server that knows what Google's and Anthropic's own libraries send, and checks assertions by
//! google-auth.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::thread;

use serde_json::{Map, Value, json};

use super::foreign::{streamed, whole};
use super::support::{ENDPOINTS, Played, ask, code, events, place, request};
use crate::support::components;
use crate::support::guarded::{Place, pause};
use crate::support::serving::Served;

/// What is in every secret, and may be nowhere else.
const CANARY: &str = "c4nary";
const EMBEDDINGS: &str = "/v1/embeddings";
const SAID: &str = "bonjour, été\n";
const GEMINI: &str = "gemini-2.5-pro";
const CLAUDE: &str = "claude-sonnet-4-5@20250929";

struct Vertex {
    played: Played,
    folder: PathBuf,
}

impl Vertex {
    /// `None` where the libraries are not installed. `name` is the test's.
    fn start(name: &str) -> Option<Self> {
        let folder =
            std::env::temp_dir().join(format!("durward-vertex-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let played = Played::start(components::google_python()?, "vertex.py", &[&folder]);
        Some(Self { played, folder })
    }

    /// A provider with this way to a token.
    fn provider(&self, name: &str, how: &str) -> String {
        let port = &self.played.port;
        format!(
            "{name}: {{ kind: vertex, location: europe-west4, base_url: \"http://127.0.0.1:{port}\", {how} }}"
        )
    }

    fn credentials(&self, file: &str) -> String {
        format!("credentials: {}", self.folder.join(file).display())
    }

    fn place(&self, providers: &[(&str, &str)]) -> Place {
        self.place_within("20s", providers)
    }

    fn place_within(&self, deadline: &str, providers: &[(&str, &str)]) -> Place {
        let all: Vec<String> = providers
            .iter()
            .map(|(name, how)| self.provider(name, how))
            .collect();
        let all = all.join(", ");
        place(
            &format!("models: {{ providers: {{ {all} }}, deadline: {deadline} }}"),
            &[],
        )
    }

    /// A gateway in front of it, with one provider `v` whose credentials are in this file.
    fn before(&self, file: &str) -> Served {
        Served::start_ruled(self.place(&[("v", &self.credentials(file))]))
    }

    /// What its own path says.
    fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.played.port)).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    /// How often a token was asked for at this path.
    fn asked(&self, path: &str) -> u64 {
        self.get("/seen")["asked"][path].as_u64().unwrap_or(0)
    }
}

impl Drop for Vertex {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Nothing of a secret is in what was recorded or said.
fn is_clean(served: Served) {
    let (output, place) = served.stop();
    let said = format!("{output:?}");
    assert!(!said.contains(CANARY), "{said}");
    for record in place.journal().operations() {
        assert!(!record.to_string().contains(CANARY), "{record}");
    }
}

/// The same with names in one spelling: the API takes `mime_type` for `mimeType`, and Google's library writes both.
fn one_spelling(own: &Value) -> Value {
    let camel = |name: &String| {
        let mut parts = name.split('_');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |out, part| {
            let (head, rest) = part.split_at(1);
            out + &head.to_ascii_uppercase() + rest
        })
    };
    match own {
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| (camel(name), one_spelling(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(one_spelling).collect(),
        other => other.clone(),
    }
}

#[test]
fn it_is_asked_as_googles_and_anthropics_own_libraries_ask_it() {
    let Some(vertex) = Vertex::start("asked") else {
        return;
    };
    let served = vertex.before("service.json");
    let (gemini, claude) = (format!("v/{GEMINI}"), format!("v/{CLAUDE}"));
    let version = ("anthropic-version", "2026-10-21");
    let send = |path: &str, more: &[(&str, &str)], body: Value| {
        let headers = [&[version], more].concat();
        let answer = served.send("POST", path, &headers, &body.to_string());
        assert_eq!(answer.status, 200, "{path} {body} {answer:?}");
        answer
    };
    let messages = ENDPOINTS[1];
    let answer = send(messages, &[], request(messages, &gemini, false));
    assert_eq!(whole(&answer.json()).text, SAID);
    let answer = send(messages, &[], request(messages, &gemini, true));
    assert_eq!(streamed(&answer).text, SAID);
    let call = json!({ "id": "a", "type": "function", "function": { "name": "weather", "arguments": "{\"city\":\"Rome\"}" } });
    let image =
        json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } });
    let rich = json!({
        "model": gemini, "max_tokens": 50, "temperature": 0.5, "top_p": 0.25, "stop": "x", "seed": 3, "reasoning_effort": "low",
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "weather?" }, image] },
            { "role": "assistant", "content": null, "tool_calls": [call] },
            { "role": "tool", "tool_call_id": "a", "content": "sunny" },
        ],
        "tools": [{ "type": "function", "function": { "name": "weather", "description": "tells it", "parameters": { "type": "object" } } }],
        "tool_choice": { "type": "function", "function": { "name": "weather" } },
        "response_format": { "type": "json_schema", "json_schema": { "name": "x", "schema": { "type": "object" } } },
    });
    send(ENDPOINTS[0], &[], rich);
    for model in ["v/text-embedding-005", "v/gemini-embedding-001"] {
        let one = json!({ "model": model, "input": "hello" });
        let answer = send(EMBEDDINGS, &[], one).json();
        assert_eq!(answer["data"][0]["embedding"], json!([5, -0.5, 0.25]));
        let two = json!({ "model": model, "input": ["hello", "you"], "dimensions": 3, "encoding_format": "base64", "user": "ann" });
        let answer = send(EMBEDDINGS, &[], two);
        assert_eq!(answer.header("x-durward-left-out"), Some("user"));
        let answer = answer.json();
        assert_eq!(
            answer["data"][1]["embedding"], "AABAQAAAAL8AAIA+",
            "{answer}"
        );
        assert_eq!(answer["usage"]["prompt_tokens"], 4, "{answer}");
    }
    for streams in [false, true] {
        send(messages, &[], request(messages, &claude, streams));
    }
    let betas = ("anthropic-beta", "one-1,two-2");
    send(messages, &[betas], request(messages, &claude, false));
    let mut count = request(messages, &claude, false);
    count.as_object_mut().unwrap().remove("max_tokens");
    let answer = send("/v1/messages/count_tokens", &[], count);
    assert_eq!(answer.json()["input_tokens"], 9);
    let seen = vertex.get("/seen");
    let (libraries, others) = (&seen["libraries"], &seen["others"]);
    assert_eq!(one_spelling(others), one_spelling(libraries));
    assert_eq!(libraries.as_array().unwrap().len(), 11);
    // Who names no version, or the one of Anthropic's own API, asks for the one that is Vertex's.
    ask(&served, messages, &claude, false);
    ask(&served, ENDPOINTS[0], &claude, false);
    let seen = vertex.get("/seen");
    for at in [11, 12] {
        let body = &seen["others"][at]["body"];
        assert_eq!(body["anthropic_version"], "vertex-2023-10-16", "{body}");
    }
    is_clean(served);
}

#[test]
fn models_of_both_publishers_answer_in_every_dialect() {
    let Some(vertex) = Vertex::start("answers") else {
        return;
    };
    let served = vertex.before("service.json");
    for path in ENDPOINTS {
        for model in [
            "v/gemini-2.5-pro",
            "v/google/gemini-2.5-pro",
            "v/claude-x@1",
            "v/anthropic/x",
        ] {
            let answer = ask(&served, path, model, false);
            assert_eq!(answer.status, 200, "{path} {model} {answer:?}");
            let streams = ask(&served, path, model, true);
            assert_eq!(streams.status, 200, "{path} {model} {streams:?}");
            if path == "/v1/responses" {
                assert_eq!(answer.json()["output"][0]["content"][0]["text"], SAID);
                assert!(streams.body.contains("response.completed"), "{streams:?}");
            } else {
                let (answer, streams) = (whole(&answer.json()), streamed(&streams));
                assert_eq!(answer.text, SAID, "{path} {model}");
                assert_eq!(streams, answer, "{path} {model}");
            }
        }
        for model in ["v/cut", "v/claude-cut"] {
            let answer = ask(&served, path, model, true);
            let last: Value = serde_json::from_str(events(&answer).last().unwrap()).unwrap();
            assert_eq!(code(&last), "provider_cut", "{path} {model} {last}");
        }
    }
    let body = request(ENDPOINTS[1], "v/gemini-2.5-pro", false).to_string();
    let count = served.send("POST", "/v1/messages/count_tokens", &[], &body);
    assert_eq!(count.status, 200, "{count:?}");
    assert_eq!(count.header("x-durward-estimated"), Some("input_tokens"));
    let (_, place) = served.stop();
    let journal = place.journal();
    let answered = journal.operations().into_iter();
    let answered = answered
        .filter(|one| one["status"] == "Success" && one["method"] != "messages/count_tokens");
    assert_eq!(
        answered
            .map(|one| assert_eq!(one["usage"]["output_tokens"], 5, "{one}"))
            .count(),
        24
    );
}

#[test]
fn one_token_serves_many_calls_and_is_replaced_before_it_ends() {
    let Some(vertex) = Vertex::start("once") else {
        return;
    };
    let served = vertex.before("service.json");
    thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| assert_eq!(ask(&served, ENDPOINTS[0], "v/m", false).status, 200));
        }
    });
    assert_eq!(vertex.asked("/token"), 1);
    // One that the provider has taken, and takes no longer, is replaced within the call.
    vertex.get("/revoke");
    assert_eq!(ask(&served, ENDPOINTS[0], "v/m", false).status, 200);
    assert_eq!(vertex.asked("/token"), 2);
    is_clean(served);
    let served = vertex.before("short.json");
    for expect in [1, 2] {
        assert_eq!(ask(&served, ENDPOINTS[0], "v/m", false).status, 200);
        assert_eq!(vertex.asked("/token/short"), expect);
        // It is good for two seconds, and kept for one.
        pause(1_100);
    }
    assert_eq!(vertex.get("/seen")["most_at_once"], 1);
    is_clean(served);
}

#[test]
fn every_way_leads_to_a_token() {
    let Some(vertex) = Vertex::start("ways") else {
        return;
    };
    let token = vertex.folder.join("token");
    let host = format!("127.0.0.1:{}", vertex.played.port);
    let own = vertex.credentials("user.json");
    let place = vertex.place(&[
        ("user", &own),
        (
            "file",
            &format!("project: p-1, token_file: {}", token.display()),
        ),
        ("metadata", "project: p-1, metadata: true"),
        ("key", "project: p-1, api_key: \"${OWN_TOKEN}\""),
        ("default", ""),
    ]);
    let service = vertex.folder.join("service.json");
    let own = fs::read_to_string(&token).unwrap();
    let variables = [
        ("GCE_METADATA_HOST", host.as_str()),
        ("OWN_TOKEN", own.trim()),
        ("GOOGLE_APPLICATION_CREDENTIALS", service.to_str().unwrap()),
    ];
    let served = Served::start_ruled_with(place, &variables);
    for provider in ["user", "file", "metadata", "key", "default"] {
        let answer = ask(&served, ENDPOINTS[0], &format!("{provider}/m"), false);
        assert_eq!(answer.status, 200, "{provider} {answer:?}");
    }
    let seen = vertex.get("/seen");
    assert_eq!(seen["others"][0]["headers"]["x-goog-user-project"], "p-1");
    assert_eq!(seen["asked"]["metadata"], 1);
    // A token that is written anew is found by the call that needs it.
    let another = vertex.get("/revoke")["another"].clone();
    let answer = ask(&served, ENDPOINTS[0], "file/m", false);
    assert_eq!(code(&answer.json()), "provider_credentials", "{answer:?}");
    fs::write(&token, another.as_str().unwrap()).unwrap();
    let answer = ask(&served, ENDPOINTS[0], "file/m", false);
    assert_eq!(answer.status, 200, "{answer:?}");
    is_clean(served);
}

#[test]
fn a_token_that_cannot_be_had_is_told_in_every_dialect() {
    let Some(vertex) = Vertex::start("refused") else {
        return;
    };
    for path in ENDPOINTS {
        for (file, name, label, again) in [
            ("refused.json", "/token/refused", "provider_credentials", 1),
            ("other-key.json", "/token", "provider_credentials", 1),
            ("user-gone.json", "/token", "provider_credentials", 1),
            ("down.json", "/token/down", "provider_error", 2),
            ("garbage.json", "/token/garbage", "provider_malformed", 1),
            ("empty.json", "/token/empty", "provider_malformed", 1),
            ("stall.json", "/token/stall", "provider_timeout", 1),
        ] {
            let place = vertex.place_within("2s", &[("v", &vertex.credentials(file))]);
            let served = Served::start_ruled(place);
            for at in 0..2 {
                let before = vertex.asked(name);
                let answer = ask(&served, path, "v/m", at == 1);
                assert_eq!(code(&answer.json()), label, "{path} {file} {answer:?}");
                assert!(!answer.body.contains(CANARY), "{answer:?}");
                if at == 1 {
                    // Who is refused is asked once by each of the first calls; who fails is asked twice.
                    assert_eq!(vertex.asked(name) - before, again, "{path} {file}");
                }
            }
            is_clean(served);
        }
    }
}

#[test]
fn embeddings_come_of_models_that_make_them_and_what_is_wrong_is_told() {
    let Some(vertex) = Vertex::start("embeddings") else {
        return;
    };
    let served = vertex.before("service.json");
    let send = |body: Value| served.send("POST", EMBEDDINGS, &[], &body.to_string());
    let cases = [
        (
            json!({ "model": "v/gemini-2.5-pro", "input": "a" }),
            404,
            "endpoint_not_spoken",
            "",
        ),
        (
            json!({ "model": "v/claude-x@1", "input": "a" }),
            404,
            "endpoint_not_spoken",
            "",
        ),
        (
            json!({ "model": "v/text-embedding-005", "input": [1, 2] }),
            400,
            "not_expressible",
            "input has tokens",
        ),
        (
            json!({ "model": "v/text-embedding-005", "input": "a", "odd": 1 }),
            400,
            "not_expressible",
            "odd",
        ),
        (
            json!({ "model": "v/gone-embedding", "input": "a" }),
            404,
            "provider_no_model",
            "was not found",
        ),
        (
            json!({ "model": "v/throttled-embedding", "input": "a" }),
            429,
            "provider_rate_limited",
            "",
        ),
        (
            json!({ "model": "v/short-embedding", "input": ["a", "b"] }),
            502,
            "provider_malformed",
            "",
        ),
    ];
    for (body, status, label, says) in cases {
        let answer = send(body.clone());
        assert_eq!(code(&answer.json()), label, "{body} {answer:?}");
        assert_eq!(answer.status, status, "{body} {answer:?}");
        assert!(answer.body.contains(says), "{body} {answer:?}");
    }
    for path in ENDPOINTS {
        let answer = ask(&served, path, "v/text-embedding-005", false);
        assert_eq!(code(&answer.json()), "endpoint_not_spoken", "{answer:?}");
    }
    is_clean(served);
}

#[test]
fn its_errors_are_told_by_their_kind() {
    let Some(vertex) = Vertex::start("errors") else {
        return;
    };
    for path in ENDPOINTS {
        let served = vertex.before("service.json");
        for (model, status, label, says) in [
            ("throttled", 429, "provider_rate_limited", ""),
            (
                "invalid",
                400,
                "provider_refused",
                "temperature has to be below 2",
            ),
            (
                "claude-invalid",
                400,
                "provider_refused",
                "temperature has to be below 2",
            ),
            ("long", 400, "context_too_long", "exceeds the maximum"),
            ("gone", 404, "provider_no_model", "was not found"),
            ("claude-down", 502, "provider_error", ""),
            ("claude-denied", 404, "provider_no_model", ""),
        ] {
            let answer = ask(&served, path, &format!("v/{model}"), model == "throttled");
            assert_eq!(answer.status, status, "{path} {model} {answer:?}");
            assert_eq!(code(&answer.json()), label, "{path} {model}");
            assert!(answer.body.contains(says), "{path} {model} {answer:?}");
            assert!(!answer.body.contains(CANARY), "{path} {model} {answer:?}");
        }
        let answer = ask(&served, path, "v/m", false);
        assert_eq!(answer.status, 200, "the credential is not lost: {answer:?}");
        is_clean(served);
    }
    // Anthropic's own words reach a caller who speaks them as they are.
    let served = vertex.before("service.json");
    let answer = ask(&served, ENDPOINTS[1], "v/claude-own-words", false);
    assert_eq!(
        answer.json()["error"]["message"],
        "max_tokens: has to be positive"
    );
    is_clean(served);
}

#[test]
fn credentials_that_are_none_are_told_before_the_start() {
    let Some(vertex) = Vertex::start("none") else {
        return;
    };
    let folder = |name: &str, text: &str| fs::write(vertex.folder.join(name), text).unwrap();
    folder(
        "external.json",
        r#"{"type":"external_account","secret":"c4nary"}"#,
    );
    folder(
        "cut.json",
        r#"{"type":"service_account","private_key":"c4nary"#,
    );
    let asked = |how: &str, says: &str| {
        let place = vertex.place(&[("v", how)]);
        let arguments = ["--config", "durward.yaml", "--state-dir", "state", "check"];
        let output = place.durward(&arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(16), "{how} {text}");
        assert!(
            text.contains(says) && !text.contains(CANARY),
            "{how} {text}"
        );
    };
    for (file, says) in [
        ("external.json", "\"external_account\" cannot be used"),
        ("cut.json", "not a JSON file of a service account"),
        ("no-project.json", "name no project"),
        ("gone.json", "No such file"),
        ("", "it is not a file"),
    ] {
        asked(&vertex.credentials(file), says);
    }
    // What is asked of another project is refused there, and nothing is told of whose it is.
    let served = vertex.before("wrong-project.json");
    let answer = ask(&served, ENDPOINTS[0], "v/m", false);
    assert_eq!(code(&answer.json()), "provider_no_model", "{answer:?}");
    is_clean(served);
}
