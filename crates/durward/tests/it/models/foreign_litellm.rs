//! LiteLLM's proxy as a provider that others wrote: its scripted replies, whole and streamed, as OpenAI's API and as
//! Anthropic's.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::foreign::{FRONTS, Said, ask, streamed, whole, word};
use super::support::{code, serve};
use crate::support::components;
use crate::support::guarded::{PATIENCE, Place, eventually_within};
use crate::support::serving::{Answer, Served, read_answer, write_request};

/// The dialects in which the proxy is asked: a provider's name and its kind.
const BACKS: [(&str, &str); 2] = [("o", "openai"), ("a", "anthropic")];
pub(super) const KEY: &str = "sk-of-the-proxy";
const SAID: &str = "Hello there, stranger!";

pub(super) struct Proxy {
    child: Child,
    pub port: u16,
    _place: Place,
}

/// The models of the proxy: some with a script, and one that it asks for at a provider, in its own translation.
fn models(provider: u16) -> Value {
    let call = json!({"id": "call_w", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Rome\"}"}});
    let scripts = [
        ("hello", json!({"mock_response": SAID})),
        (
            "tool",
            json!({"mock_response": "", "mock_tool_calls": [call]}),
        ),
        (
            "far",
            json!({"api_base": format!("http://127.0.0.1:{provider}/v1")}),
        ),
        ("busy", json!({"mock_response": "litellm.RateLimitError"})),
        (
            "broken",
            json!({"mock_response": "litellm.InternalServerError"}),
        ),
    ];
    let listed = scripts.map(|(name, mut params)| {
        params["model"] = json!("openai/m/echo");
        params["api_key"] = json!("none");
        json!({"model_name": name, "litellm_params": params})
    });
    configured(&listed)
}

/// The proxy with these models. It repeats nothing and lets nothing rest: that is ours to do.
pub(super) fn configured(models: &[Value]) -> Value {
    json!({
        "model_list": models,
        "general_settings": {"master_key": KEY},
        "router_settings": {"num_retries": 0, "disable_cooldowns": true}
    })
}

impl Proxy {
    /// `None` where it is not installed.
    pub fn start(configuration: &Value) -> Option<Self> {
        let program = components::litellm()?;
        let place = Place::new();
        std::fs::write(place.path("litellm.yaml"), configuration.to_string()).unwrap();
        let port = mocks::ports::reserved().unwrap();
        let child = Command::new(program)
            .args(["--config", "litellm.yaml", "--host", "127.0.0.1"])
            .args(["--port", &port.to_string()])
            .current_dir(&place.dir)
            // It would else fetch a list of prices.
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut proxy = Self {
            child,
            port,
            _place: place,
        };
        // It takes minutes to begin where the machine is busy.
        eventually_within(10 * PATIENCE, "LiteLLM answers", || {
            let ended = proxy.child.try_wait().unwrap();
            assert!(ended.is_none(), "LiteLLM ended: {ended:?}");
            proxy.is_alive().unwrap_or(false)
        });
        Some(proxy)
    }

    /// The signal that has ended it, where one has: a fault of its own that says nothing of us.
    pub fn crashed(&mut self) -> Option<i32> {
        self.child.try_wait().unwrap()?.signal()
    }

    fn is_alive(&self) -> io::Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(
            b"GET /health/liveliness HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.starts_with("HTTP/1.1 200"))
    }

    fn before(&self) -> Served {
        self.guarded(&[])
    }

    /// Durward in front of it, with these rules.
    fn guarded(&self, rules: &[&str]) -> Served {
        let providers = BACKS.map(|(name, kind)| {
            format!(
                "{name}: {{ kind: {kind}, base_url: \"http://127.0.0.1:{}/v1\", api_key: {KEY} }}",
                self.port
            )
        });
        serve(
            &format!("models: {{ providers: {{ {} }} }}", providers.join(", ")),
            rules,
        )
    }

    /// What the proxy answers to a request of its own.
    pub fn answers(&self, body: &Value) -> Answer {
        self.answers_at(FRONTS[0], "application/json", &body.to_string())
    }

    fn answers_at(&self, path: &str, kind: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let key = format!("Bearer {KEY}");
        let headers = [("authorization", key.as_str()), ("content-type", kind)];
        write_request(&mut stream, "POST", path, &headers, body);
        read_answer(&mut BufReader::new(stream))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a model says through every endpoint and these dialects, whole and, where that is wanted, streamed.
fn everywhere(served: &Served, model: &str, backs: &[&str], ways: &[bool]) -> Vec<(String, Said)> {
    let mut all = Vec::new();
    for path in FRONTS {
        for back in backs {
            for streams in ways.iter().copied() {
                let more = json!({"model": format!("{back}/{model}"), "stream": streams});
                let answer = ask(served, path, back, "hello", &more);
                let place = format!("{path} before {back}, stream {streams}");
                assert_eq!(answer.status, 200, "{place}: {answer:?}");
                let said = if streams {
                    streamed(&answer)
                } else {
                    whole(&answer.json())
                };
                all.push((place, said));
            }
        }
    }
    all
}

/// A caller can name further models for the proxy to go on to, where the one that was judged fails.
#[test]
fn a_model_that_a_caller_names_for_the_proxy_to_go_on_to_is_not_asked() {
    let Some(proxy) = Proxy::start(&models(9)) else {
        return;
    };
    let turns = json!([{ "role": "user", "content": "hello" }]);
    let further = [
        ("fallbacks", json!(["hello"])),
        ("router_settings_override", json!({"fallbacks": ["hello"]})),
    ];
    for (name, value) in &further {
        let mut body = json!({"model": "broken", "messages": turns});
        body[name] = value.clone();
        let told = proxy.answers(&body);
        assert_eq!(told.status, 200, "{name} {told:?}");
        assert!(told.body.contains(SAID), "{name} {told:?}");
    }
    let deny = r#"{"id":"no-hello","effect":"deny","conditions":{"model":"*hello*"}}"#;
    let served = proxy.guarded(&[deny]);
    let spelled = ["Fallbacks", "context_window_fallbacks", "fallback_models"];
    let spelled = spelled.map(|name| (name, json!(["hello"])));
    for path in FRONTS {
        for (back, _) in BACKS {
            for (name, value) in further.iter().chain(&spelled) {
                let mut more = json!({"model": format!("{back}/broken")});
                more[name] = value.clone();
                let answer = ask(&served, path, back, "hello", &more);
                let place = format!("{path} {back} {name}");
                assert_eq!(answer.status, 400, "{place} {answer:?}");
                assert_eq!(code(&answer.json()), "request_unreadable", "{place}");
                assert!(answer.body.contains("allback"), "{place} {answer:?}");
            }
        }
    }
}

/// The proxy asks each model of a list with commas between them, and takes a field of a form without the `[]` behind its
/// name.
#[test]
fn no_list_of_models_reaches_the_proxy_in_a_name_or_a_form() {
    let Some(proxy) = Proxy::start(&models(9)) else {
        return;
    };
    let turns = json!([{ "role": "user", "content": "hello" }]);
    let told = proxy.answers(&json!({"model": "busy, hello", "messages": turns}));
    assert!(told.body.contains(SAID), "{told:?}");
    let form = |model: &str| {
        let field = |name: &str, value: &str| {
            format!("--xx\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let file = "--xx\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\ncontent-type: audio/wav\r\n\r\nRIFF\r\n";
        [
            field("model", model),
            field("fallbacks[]", "hello"),
            file.to_owned(),
            "--xx--\r\n".to_owned(),
        ]
        .concat()
    };
    let (path, kind) = (
        "/v1/audio/transcriptions",
        "multipart/form-data; boundary=xx",
    );
    let told = proxy.answers_at(path, kind, &form("far"));
    assert!(told.body.contains("Fallback to hello"), "{told:?}");
    let deny = r#"{"id":"no-hello","effect":"deny","conditions":{"model":["hello","o/hello"]}}"#;
    let served = proxy.guarded(&[deny]);
    let headers = [("content-type", kind)];
    for answer in [
        ask(
            &served,
            FRONTS[0],
            "o",
            "hello",
            &json!({"model": "o/busy, hello"}),
        ),
        served.send("POST", path, &headers, &form("o/far")),
    ] {
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!(code(&answer.json()), "request_unreadable");
    }
}

#[test]
fn its_replies_and_its_faults_are_told_in_each_callers_dialect() {
    let mock = "models: { providers: { m: { kind: mock, latency: 0ms } } }";
    let provider = serve(mock, &[]);
    let Some(proxy) = Proxy::start(&models(provider.address.port())) else {
        return;
    };
    let served = proxy.before();
    // Its script does not stream in Anthropic's dialect: it sends a whole reply where a stream was asked for.
    let mut scripted = everywhere(&served, "hello", &["o"], &[false, true]);
    scripted.extend(everywhere(&served, "hello", &["a"], &[false]));
    for (place, said) in scripted {
        assert_eq!(said.text, SAID, "{place}");
        assert_eq!(said.stop, word(&place, "stop", "end_turn"), "{place}");
    }
    for path in FRONTS {
        let more = json!({"model": "a/hello", "stream": true});
        let told = ask(&served, path, "a", "hello", &more).json();
        assert_eq!(code(&told), "provider_malformed", "{path} {told}");
    }
    for (place, said) in everywhere(&served, "tool", &["o"], &[false]) {
        let calls = [("weather".to_owned(), json!({"city": "Rome"}))];
        assert_eq!(said.calls, calls, "{place}");
    }
    // The usage that nobody asked for is left out, also where a choice stands beside it.
    let more = json!({"model": "o/far", "stream": true});
    let streamed = ask(&served, FRONTS[0], "o", "hello", &more);
    assert!(!streamed.body.contains("\"usage\":{"), "{}", streamed.body);
    // What it translates itself it streams in both dialects.
    let translated = everywhere(&served, "far", &["o", "a"], &[false, true]);
    let first = translated[0].1.text.clone();
    assert!(first.contains("hello"), "{first}");
    for (place, said) in translated {
        assert_eq!(said.text, first, "{place}");
        assert_eq!(said.stop, word(&place, "stop", "end_turn"), "{place}");
    }
    let (_, place) = served.stop();
    let records = place.journal();
    let mut good = records.operations();
    good.retain(|one| one["status"] == "Success");
    assert!(good.len() >= 16, "{good:#?}");
    for operation in good {
        let output = operation["usage"]["output_tokens"].as_u64();
        assert!(output > Some(0), "{operation}");
    }
    for path in FRONTS {
        for (back, _) in BACKS {
            for (model, status, label) in [
                ("busy", 429, "provider_rate_limited"),
                ("broken", 502, "provider_error"),
            ] {
                // A key that rests, or a breaker that opens, is another test's.
                let served = proxy.before();
                let more = json!({"model": format!("{back}/{model}")});
                let answer = ask(&served, path, back, "hello", &more);
                let told = (answer.status, code(&answer.json()).to_owned());
                assert_eq!(told, (status, label.to_owned()), "{path} {back} {answer:?}");
            }
        }
    }
}
