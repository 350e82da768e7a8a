//! The reader, held against a table of files.

use std::ffi::OsString;
use std::path::Path;

use super::keys;
use super::node::CONFIG_BYTES_MAX;
use super::read;
use super::section::Reader;
use super::settings::{Origin, Settings};
use super::values::Span;
use crate::places::Places;
use crate::policy_source::{PolicySource, ShippedPolicy};
use everything::EVERYTHING;

mod everything;

fn variable(name: &str) -> Option<OsString> {
    match name {
        "TOKEN" => Some("s3cret".into()),
        "DIR" => Some("/srv/data".into()),
        "LINES" => Some("s3cret\nmore".into()),
        _ => None,
    }
}

fn settings(text: &str) -> Result<Settings, String> {
    let reader = Reader {
        variable: &variable,
        base: Path::new("/etc/durward"),
        home: Some(Path::new("/home/ada")),
    };
    read::settings(text, &reader).map_err(|fault| fault.to_string())
}

/// Each file with the whole of its message.
#[track_caller]
fn refused(cases: &[(&str, &str)]) {
    for (text, expect) in cases {
        match settings(text) {
            Err(message) => assert_eq!(message, *expect, "reading {text:?}"),
            Ok(_) => panic!("{text:?} was taken"),
        }
    }
}

#[test]
fn unknown_keys_are_refused_with_the_nearest() {
    refused(&[
        (
            "servr: {}",
            "line 1, column 1: unknown key \"servr\"\n  hint: did you mean \"servers\"?",
        ),
        (
            "policy: p.json\nlimits:\n  request: { rate: 10/s }",
            "line 3, column 3: unknown key \"request\" in limits\n  hint: did you mean \"requests\"?",
        ),
        (
            "servers:\n  files: { command: npx, arg: [a] }",
            "line 2, column 26: unknown key \"arg\" in servers.files\n  hint: did you mean \"args\"?",
        ),
        (
            "journal: { zzzzzzzz: 1 }",
            "line 1, column 12: unknown key \"zzzzzzzz\" in journal\n  hint: known here: sync, verify, witness, warn_below, retain",
        ),
        (
            "\"a\\u202Eb\": 1",
            "line 1, column 1: unknown key \"a\\u{202e}b\"\n  hint: known here: listen, root, prefix, search_above, require_key, share, session_idle, lenient, threads, servers, identity, models, inspect, policy, limits, approval, journal, call_timeout, tool_timeout, refusals, insecure_http, breaker, state_dir, confine, tls, allowed_hosts, allowed_origins, descriptions, pin, watch, agents, patterns, otel, state",
        ),
    ]);
}

#[test]
fn values_of_the_wrong_kind_are_refused() {
    refused(&[
        (
            "- a",
            "line 1, column 1: the file is a list; it must be a map",
        ),
        (
            "text",
            "line 1, column 1: the file is a single value; it must be a map",
        ),
        (
            "limits: 5",
            "line 1, column 9: limits is a single value; it must be a map",
        ),
        (
            "policy: [a]",
            "line 1, column 9: policy is a list; it must be a single value",
        ),
        (
            "policy:",
            "line 1, column 7: policy is nothing; it must be a single value",
        ),
        (
            "policy: \"\"",
            "line 1, column 9: policy: \"\" names no file",
        ),
        (
            "policy: ~bob/p",
            "line 1, column 9: policy: \"~bob/p\" begins with ~, and only ~/ is read; write the whole path",
        ),
        (
            "listen: 8765",
            "line 1, column 9: listen: \"8765\" is not an address with a port; write 127.0.0.1:8765, [::1]:8765, localhost:8765 or unix:/run/durward.sock",
        ),
        (
            "call_timeout: 60",
            "line 1, column 15: call_timeout: \"60\" has no unit; write 60s for seconds",
        ),
        (
            "call_timeout: 10ms",
            "line 1, column 15: call_timeout: \"10ms\" is outside of 1s to 24h",
        ),
        (
            "tool_timeout: { slow: 60 }",
            "line 1, column 17: tool_timeout of \"slow\": \"60\" has no unit; write 60s for seconds",
        ),
        (
            "tool_timeout: { slow: 25h }",
            "line 1, column 17: tool_timeout of \"slow\": 25h is outside of 1s to 24h",
        ),
        (
            "tool_timeout: 60s",
            "line 1, column 15: tool_timeout is a single value; it must be a map\n  hint: write tool_timeout: { NAME: value }",
        ),
        (
            "call_timeout: 25h",
            "line 1, column 15: call_timeout: \"25h\" is outside of 1s to 24h",
        ),
        (
            "limits: { requests: { rate: 10 } }",
            "line 1, column 29: limits.requests.rate: \"10\" is not a rate; write 10/s, 600/m or 5000/h",
        ),
        (
            "limits: { requests: { burst: 0 } }",
            "line 1, column 30: limits.requests.burst: \"0\" is outside of 1 to 1000000",
        ),
        (
            "limits: { requests: { burst: -1 } }",
            "line 1, column 30: limits.requests.burst: \"-1\" is not a whole number",
        ),
        (
            "limits: { requests: { burst: 1.0 } }",
            "line 1, column 30: limits.requests.burst: \"1.0\" is not a whole number",
        ),
        (
            "limits: { requests: { burst: .inf } }",
            "line 1, column 30: limits.requests.burst: \".inf\" is not a whole number",
        ),
        (
            "limits: { response_bytes: 257MiB }",
            "line 1, column 27: limits.response_bytes: \"257MiB\" is outside of 1KiB to 256MiB",
        ),
        (
            "limits: { journal_bytes: 255KiB }",
            "line 1, column 26: limits.journal_bytes: \"255KiB\" is outside of 256KiB to 1024GiB",
        ),
        (
            "limits: { per_tool: { then: ask } }",
            "line 1, column 29: limits.per_tool.then: \"ask\" is not one of hitl, refuse",
        ),
        (
            "pin: enfroce",
            "line 1, column 6: pin: \"enfroce\" is not one of off, warn, enforce; did you mean \"enforce\"?",
        ),
        (
            "approval: { timeout: 4s }",
            "line 1, column 22: approval.timeout: \"4s\" is outside of 5s to 5m",
        ),
        (
            "allowed_hosts: a.example",
            "line 1, column 16: allowed_hosts is a single value; it must be a list\n  hint: write allowed_hosts: [one, two]",
        ),
        (
            "allowed_hosts: [\"*.example\"]",
            "line 1, column 16: allowed_hosts holds \"*.example\", which is not a host name\n  hint: write whole names, each on its own; there are no wildcards",
        ),
        (
            "tls: { cert: c.pem }",
            "line 1, column 14: tls.cert needs tls.key beside it",
        ),
        (
            "tls: { key: c.pem }",
            "line 1, column 13: tls.key needs tls.cert beside it",
        ),
    ]);
}

#[test]
fn what_is_no_yaml_is_refused() {
    refused(&[
        (
            "listen: a\nlisten: b",
            "line 2, column 1: \"listen\" is given twice\n  hint: keep one of the two",
        ),
        (
            "policy: *s3cret",
            "line 1, column 9: an alias refers to an anchor that is not defined before it\n  hint: a value that begins with * has to be quoted",
        ),
        (
            "policy: !secret abc",
            "line 1, column 17: tags (!name) are not supported\n  hint: a value that begins with ! has to be quoted",
        ),
        (
            "<<: { policy: a }",
            "line 1, column 1: merge keys (<<) are not supported\n  hint: write the members out",
        ),
        (
            "policy: a\n---\npolicy: b",
            "line 3, column 1: the file holds more than one document\n  hint: remove the second ---",
        ),
        (
            "servers: &a [*a]",
            "line 1, column 14: an alias refers to a value that contains it\n  hint: write the value out",
        ),
    ]);
    for text in [
        "a: [1",
        "policy: @abc",
        "policy: a: b",
        "{",
        "\"",
        "policy: |\n a\nb",
    ] {
        let message = settings(text).unwrap_err();
        assert!(message.contains(": this is not YAML: "), "{message}");
    }
}

#[test]
fn a_server_with_declarations_alone_is_one_that_a_client_starts() {
    let read = settings("servers:\n  a: { tools: { x: read }, relative_to: /srv }").unwrap();
    assert!(read.servers.is_empty());
    assert!(
        read.declared_of("a")
            .is_some_and(|own| own.declared("x").is_some())
    );
    assert!(read.declared_of("b").is_none());
    let message = settings("servers:\n  a: { tools: { x: read }, pin: warn }").unwrap_err();
    assert!(message.contains("has neither command nor url"), "{message}");
}

#[test]
fn servers_that_cannot_be_are_refused() {
    let case = |inner: &'static str, expect: &'static str| {
        let message = settings(&format!("servers:\n  a: {inner}")).unwrap_err();
        assert!(message.ends_with(expect), "{inner}: {message}");
    };
    case(
        "{}",
        "servers.a has neither command nor url nor builtin\n  hint: write command: PROGRAM to start a server, url: https://… to reach one, or builtin: NAME for one that is built in",
    );
    case(
        "{ builtin: sheep }",
        "servers.a.builtin: \"sheep\" is not one of echo, ssh, simulation",
    );
    for other in ["command: x", "url: \"http://h\""] {
        let message =
            settings(&format!("servers: {{ a: {{ builtin: echo, {other} }} }}")).unwrap_err();
        let wrong = "is for servers outside of Durward, but builtin is given; keep one of the two";
        assert!(message.ends_with(wrong), "{message}");
    }
    case(
        "{ builtin: echo, transport: stdio }",
        "servers.a.transport says how a server is reached, but builtin is given",
    );
    case(
        "{ builtin: echo, args: [x] }",
        "servers.a.args is for servers with a command, but no command is given",
    );
    case(
        "{ command: x, transport: builtin }",
        "servers.a.transport is builtin, but the key builtin is not given",
    );
    case(
        "{ command: \" \" }",
        "line 2, column 17: servers.a.command is empty",
    );
    case(
        "{ args: [x], url: \"http://h\" }",
        "servers.a.args is for servers with a command, but no command is given",
    );
    case(
        "{ command: x, api_key: k }",
        "servers.a.api_key is for servers with a url, but no url is given",
    );
    case(
        "{ command: x, args: [[y]] }",
        "servers.a.args[0] is a list; it must be a single value",
    );
    case(
        "{ command: x, env: [A] }",
        "servers.a.env is a list; it must be a map\n  hint: write env: { NAME: value }",
    );
    case(
        "{ command: x, env: { \"A=B\": c } }",
        "\"A=B\" is not a variable name",
    );
    case(
        "{ command: x, transport: http }",
        "servers.a.transport is http, but no url is given",
    );
    case(
        "{ url: \"http://h\", type: stdio }",
        "servers.a.type is stdio, but no command is given",
    );
    case(
        "{ url: \"http://h\", type: sse }",
        "servers.a.type: \"sse\" is the transport before Streamable HTTP, which is not supported; use http if the server has it",
    );
    case(
        "{ url: \"http://h\", type: http, transport: auto }",
        "servers.a.type says something else than transport; keep one of the two",
    );
    for (url, why) in [
        (
            "h",
            "is not a URL; write http://HOST/PATH or https://HOST/PATH",
        ),
        ("ftp://h", "is neither http nor https"),
        (
            "https://",
            "is not a URL; write http://HOST/PATH or https://HOST/PATH",
        ),
        (
            "https://me:pw@h/",
            "holds a user or a password; use api_key or headers",
        ),
        ("https://h/#a", "has a fragment, which no server would see"),
        (
            "https://h/a b",
            "is not a URL; write http://HOST/PATH or https://HOST/PATH",
        ),
    ] {
        let message = settings(&format!("servers: {{ a: {{ url: \"{url}\" }} }}")).unwrap_err();
        assert_eq!(message, format!("line 1, column 22: servers.a.url {why}"));
    }
    case(
        "{ url: \"https://h\", headers: { Host: x } }",
        "header \"Host\" belongs to the protocol and cannot be set",
    );
    case(
        "{ url: \"https://h\", headers: { Mcp-Session-Id: x } }",
        "header \"Mcp-Session-Id\" belongs to the protocol and cannot be set",
    );
    case(
        "{ url: \"https://h\", headers: { \"A B\": x } }",
        "header \"A B\" has no name that HTTP allows",
    );
    case(
        "{ url: \"https://h\", headers: { A: \"x\\r\\nB: y\" } }",
        "header \"A\" holds a control character",
    );
    case(
        "{ url: \"https://h\", api_key: k, headers: { authorization: x } }",
        "header \"authorization\" is what api_key sets; keep one of the two",
    );
    case(
        "{ url: \"https://h\", api_key: \"\" }",
        "servers.a.api_key is empty",
    );
    case(
        "{ url: \"https://h\", api_key: \"${LINES}\" }",
        "servers.a.api_key has a character that keys cannot have; is there a line end in it?",
    );
    case(
        "{ url: \"https://h\", client_cert: c }",
        "servers.a.client_cert needs client_key beside it",
    );
    for name in ["a__b", "a_", "\"\"", "\"a b\"", "\"a/b\""] {
        let message = settings(&format!("servers: {{ {name}: {{ command: x }} }}")).unwrap_err();
        assert!(
            message.starts_with("line 1, column 12: a server's name has"),
            "{message}"
        );
    }
    refused(&[(
        "servers: {}\nmcpServers: {}",
        "line 2, column 1: servers and mcpServers are two names of one key\n  hint: keep one of the two",
    )]);
}

#[test]
fn bounds_are_held() {
    let servers = |count: usize| {
        let lines: Vec<String> = (0..count)
            .map(|n| format!("  s{n}: {{ command: x }}"))
            .collect();
        format!("servers:\n{}", lines.join("\n"))
    };
    assert_eq!(
        settings(&servers(read::SERVERS_MAX)).unwrap().servers.len(),
        read::SERVERS_MAX
    );
    let message = settings(&servers(read::SERVERS_MAX + 1)).unwrap_err();
    assert!(
        message.contains("has 257 servers; at most 256 are allowed"),
        "{message}"
    );

    let args = |count: usize| {
        format!(
            "servers: {{ a: {{ command: x, args: [{}] }} }}",
            vec!["y"; count].join(", ")
        )
    };
    assert!(settings(&args(1_024)).is_ok());
    let message = settings(&args(1_025)).unwrap_err();
    assert!(
        message.contains("servers.a.args has 1025 elements, and may have 1024"),
        "{message}"
    );

    let deep = format!("policy: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let message = settings(&deep).unwrap_err();
    assert!(message.contains("nested too deeply"), "{message}");
    let mut bomb = String::from("a: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let alias = format!("*a{}", n - 1);
        bomb.push_str(&format!("b{n}: &a{n} [{}]\n", vec![alias; 9].join(", ")));
    }
    assert!(bomb.len() < CONFIG_BYTES_MAX);
    let message = settings(&bomb).unwrap_err();
    assert!(message.contains("nested too deeply"), "{message}");
}

#[test]
fn nothing_said_is_the_default() {
    for text in [
        "",
        "# nothing\n",
        "{}",
        "---\n",
        "servers:\n",
        "limits: {}\n",
    ] {
        let read = settings(text).unwrap();
        assert!(
            read.rows().iter().all(|row| row.origin == Origin::Default),
            "{text:?}"
        );
    }
}

#[test]
fn models_are_read_with_all_they_say() {
    let read = settings(EVERYTHING).unwrap().models;
    let far = &read.providers[0];
    assert_eq!(far.summary(), "openai at https://far.example/v1");
    assert_eq!(
        (far.keys.len(), far.models.as_slice()),
        (1, &["big".to_owned()][..])
    );
    assert_eq!(far.ca.as_deref(), Some(Path::new("/etc/durward/ca.pem")));
    assert_eq!(read.providers[1].latency, Span(5));
    let smart = &read.aliases[0];
    assert_eq!(smart.tiers, [vec!["far/big"], vec!["near/a", "near/b"]]);
    assert_eq!(
        (smart.rotate, smart.deadline_ms),
        (models::Rotation::Weighted, 9_000)
    );
    assert_eq!(smart.weights.get("near/a"), Some(&3));
    let own = &read.budgets[0];
    assert_eq!(
        (own.most, own.window_ms, own.per),
        (models::Most::Tokens(1_000), 86_400_000, models::Per::Group)
    );
    assert_eq!(read.budgets[1].most, models::Most::Micros(2_500_000));
    let price = models::Price {
        input: 1_250_000,
        output: 10_000_000,
        cached: Some(125_000),
        written: Some(1_562_500),
        reasoning: Some(12_000_001),
    };
    assert_eq!(read.prices.get("far/big"), Some(&price));
    let moved = settings(&format!("# moved\n{EVERYTHING}")).unwrap().models;
    assert!(read.differ(&moved).is_empty());
    let other = EVERYTHING
        .replace("far/big,", "")
        .replace("tokens: 1000", "tokens: 1001");
    let other = settings(&other).unwrap().models;
    assert_eq!(read.differ(&other), ["models.aliases", "models.budgets"]);
}

#[test]
fn servers_are_read_in_their_order() {
    let read = settings(EVERYTHING).unwrap();
    let names: Vec<&str> = read
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    assert_eq!(names, ["files", "docs"]);
    let files = read.server("files").unwrap();
    let command = files.command.as_ref().unwrap();
    assert_eq!(command.program.value, "/etc/durward/bin/server");
    let args: Vec<&str> = command.args.iter().map(|arg| arg.value.as_str()).collect();
    assert_eq!(
        args,
        [
            "-y",
            "8080",
            "no",
            "012",
            "1e3",
            "~/x",
            "/srv/data/in",
            "null-ish"
        ]
    );
    assert_eq!(
        command.directory.as_deref(),
        Some(Path::new("/home/ada/work"))
    );
    let environment: Vec<(&str, &str)> = command
        .environment
        .iter()
        .map(|(name, value)| (name.as_str(), value.reveal()))
        .collect();
    assert_eq!(environment, [("TOKEN", "s3cret"), ("PLAIN", "1")]);
    assert_eq!(
        read.policy_of(Some(files)).0,
        PolicySource::File("/etc/durward/files.json".into())
    );
    assert_eq!(read.call_timeout_of(Some(files)).to_string(), "2m");
    assert_eq!(read.processes_max_of(Some(files)), 3);
    let docs = read.server("docs").unwrap();
    assert_eq!(
        read.policy_of(Some(docs)).0,
        PolicySource::File("/srv/data/policy.json".into())
    );
    assert_eq!(read.call_timeout_of(Some(docs)).to_string(), "90s");
    assert_eq!(read.processes_max_of(Some(docs)), 32);
    let http = docs.http.as_ref().unwrap();
    assert_eq!(http.api_key.as_ref().unwrap().reveal(), "s3cret");
    assert_eq!(http.headers.first().unwrap().1.reveal(), "s3cret");
    let told: Vec<&str> = read.warnings.iter().map(|w| w.message.as_str()).collect();
    assert!(told.is_empty(), "{told:?}");
    let places = Places::find(Some("/s".into()), "durward".into());
    let files = read.guarded(&places);
    let (closed, read_only) = (files.closed, files.read_only);
    for (list, file) in [
        (&closed, "/etc/durward/files.json"),
        (&read_only, "/etc/durward/c.pem"),
        (&closed, "/t/k.pem"),
    ] {
        assert!(
            list.iter().any(|known| known == Path::new(file)),
            "{file} is not guarded"
        );
    }
}

#[test]
fn what_the_environment_holds_is_never_shown() {
    let read = settings(EVERYTHING).unwrap();
    let shown = format!(
        "{read:?} {:?}",
        read.servers.iter().map(|s| s.summary()).collect::<Vec<_>>()
    );
    assert!(!shown.contains("s3cret"), "{shown}");
    for text in [
        "listen: ${TOKEN}",
        "pin: ${TOKEN}",
        "call_timeout: ${TOKEN}",
        "limits: { requests: { rate: \"${TOKEN}\" } }",
        "servers: { a: { url: \"${TOKEN}\" } }",
        "servers: { a: { url: \"https://h\", headers: { A: \"${LINES}\" } } }",
        "servers: { a: { url: \"https://h\", api_key: \"${LINES}\" } }",
        "allowed_hosts: [\"${LINES}\"]",
        "policy: ${MISSING}",
    ] {
        let message = settings(text).unwrap_err();
        assert!(!message.contains("s3cret"), "{message}");
    }
}

#[test]
fn what_looks_like_a_mistake_is_warned_of() {
    let warned = |text: &str| -> Vec<String> {
        settings(text)
            .unwrap()
            .warnings
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    let of_key = |url: &str, key: &str| {
        warned(&format!(
            "servers: {{ a: {{ url: \"{url}\", api_key: \"{key}\" }} }}"
        ))
    };
    assert!(of_key("https://h", "${TOKEN}").is_empty());
    assert!(of_key("http://127.0.0.1:1/mcp", "${TOKEN}").is_empty());
    assert_eq!(
        of_key("http://h", "${TOKEN}"),
        ["line 1: the api key would be sent without encryption; use https"]
    );
    // A name that only begins like an address of this machine is another machine's.
    assert_eq!(of_key("http://127.0.0.1.example.org", "${TOKEN}").len(), 1);
    assert_eq!(of_key("https://h", "k").len(), 1);
    assert!(
        warned("listen: 0.0.0.0:1")
            .first()
            .unwrap()
            .starts_with("0.0.0.0:1 can be reached from other machines")
    );
    assert!(warned("listen: 0.0.0.0:1\ntls: { cert: a, key: b }").is_empty());
}

#[test]
fn a_built_in_server_has_its_shipped_rules_where_none_are_chosen() {
    let servers = "servers: { s: { builtin: ssh, hosts: h.yaml }, e: { builtin: echo } }\n";
    let read = settings(servers).unwrap();
    let source = |settings: &Settings, name: &str| settings.policy_of(settings.server(name)).0;
    let shipped = PolicySource::Shipped;
    assert_eq!(source(&read, "s"), shipped(ShippedPolicy::Ssh));
    assert_eq!(source(&read, "e"), shipped(ShippedPolicy::Starter));
    let read = settings(&format!("policy: /p.json\n{servers}")).unwrap();
    assert_eq!(source(&read, "s"), PolicySource::File("/p.json".into()));
}

#[test]
fn the_flag_outranks_the_file_and_the_server() {
    let mut read = settings(EVERYTHING).unwrap();
    read.set_policy(None, Origin::Flag("--policy"));
    assert_eq!(
        read.policy_of(read.server("files")).0,
        PolicySource::File("/etc/durward/files.json".into())
    );
    read.set_policy(Some(Path::new("mine.json")), Origin::Flag("--policy"));
    assert_eq!(
        read.policy_of(read.server("files")).0,
        PolicySource::File("mine.json".into())
    );
}

#[test]
fn json_is_read_too_and_the_example_of_the_page() {
    let json = r#"{"mcpServers": {"files": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {}}}}"#;
    assert_eq!(settings(json).unwrap().servers.len(), 1);
    let example = keys::EXAMPLE
        .replace("DOCS_KEY", "TOKEN")
        .replace("OPENAI_API_KEY", "TOKEN");
    let read = settings(&example).unwrap();
    assert_eq!(read.servers.len(), 3);
    let echo = read.server("echo").unwrap();
    assert_eq!(
        (echo.transport.to_string(), echo.summary()),
        ("builtin".to_owned(), "echo".to_owned())
    );
}

#[test]
fn options_of_a_built_in_server_are_read_and_refused_elsewhere() {
    let read = settings("servers: { sim: { builtin: simulation, models: [models], workers: 4 } }");
    let read = read.unwrap();
    let builtin = read.server("sim").unwrap().builtin.clone().unwrap();
    assert_eq!(builtin.options.paths("models").len(), 1);
    assert_eq!(builtin.options.number("workers"), Some(4));
    let wrong = |inner: &str| settings(&format!("servers: {{ a: {{ {inner} }} }}")).unwrap_err();
    assert!(
        wrong("builtin: simulation")
            .ends_with("servers.a needs models: folders from which models may be loaded; links out of them are not followed")
    );
    assert!(
        wrong("builtin: simulation, modles: [m]")
            .ends_with("unknown key \"modles\" in servers.a\n  hint: did you mean \"models\"?")
    );
    for other in ["builtin: echo, models: [m]", "command: x, models: [m]"] {
        assert!(wrong(other).ends_with(
            "unknown key \"models\" in servers.a\n  hint: it is for builtin: simulation"
        ));
    }
}

#[test]
fn a_tools_own_time_is_the_flags_the_servers_or_everybodys() {
    let read = settings(
        "servers:\n  a: { command: x, tool_timeout: { slow: 5m, own: 7s } }\n  b: { command: y }\ntool_timeout: { slow: 90s, common: 3s }",
    )
    .unwrap();
    let flags = [("own".to_owned(), 2)];
    let ms = |server: Option<&str>, tool: &str| {
        let server = server.and_then(|name| read.server(name));
        read.tool_timeouts_of(server, &flags).get(tool).copied()
    };
    for (server, tool, expect) in [
        (Some("a"), "slow", Some(300_000)),
        (Some("a"), "own", Some(2_000)),
        (Some("a"), "common", Some(3_000)),
        (Some("b"), "slow", Some(90_000)),
        (None, "slow", Some(90_000)),
        (Some("b"), "other", None),
    ] {
        assert_eq!(ms(server, tool), expect, "{server:?} {tool}");
    }
}
