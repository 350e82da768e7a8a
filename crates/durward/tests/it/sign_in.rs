//! People who sign in at a real Keycloak, two realms of it. Keycloak starts once, in the one test that needs it.

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::components::{fastmcp_python, keycloak, repository};
use crate::support::guarded::{Place, eventually, eventually_within};
use crate::support::serving::{Answer, Served, call, modern, modern_headers};

/// How long Keycloak may take to start on a machine that does other work.
const START: Duration = Duration::from_secs(240);

/// A running Keycloak with the realms `company` and `partner`. It ends with the standard input that this process holds.
struct Keycloak {
    process: Child,
    base: String,
}

impl Keycloak {
    fn start(home: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        // The shell ends Keycloak when its standard input ends, also when this process is killed.
        let script = "\"$0\" \"$@\" </dev/null & pid=$!; read -r _; kill $pid; wait $pid";
        let process = Command::new("sh")
            .args(["-c", script])
            .arg(home.join("bin/kc.sh"))
            .args([
                "start-dev",
                "--import-realm",
                "--db=dev-mem",
                "--http-host=127.0.0.1",
            ])
            .arg(format!("--http-port={port}"))
            .env("KC_BOOTSTRAP_ADMIN_USERNAME", "admin")
            .env("KC_BOOTSTRAP_ADMIN_PASSWORD", "admin")
            .env("JAVA_OPTS_APPEND", "-Xmx512m")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let keycloak = Self {
            process,
            base: format!("http://127.0.0.1:{port}"),
        };
        let issuer = keycloak.issuer("company");
        eventually_within(START, "Keycloak starts", || {
            let is_up = TcpStream::connect(("127.0.0.1", port)).is_ok();
            is_up
                && keycloak
                    .act(&["password", &issuer, "alice", "openid"])
                    .is_some()
        });
        keycloak
    }

    fn issuer(&self, realm: &str) -> String {
        format!("{}/realms/{realm}", self.base)
    }

    /// Acts as a person or an administrator; the output, or `None` if that failed.
    fn act(&self, args: &[&str]) -> Option<String> {
        let script = repository().join("crates/durward/tests/drivers/people/keycloak.py");
        let output = Command::new("python3")
            .arg(script)
            .args(args)
            .output()
            .unwrap();
        output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// The tokens of a user.
    fn tokens(&self, realm: &str, user: &str, scope: &str) -> Value {
        let answer = self.act(&["password", &self.issuer(realm), user, scope]);
        serde_json::from_str(&answer.unwrap()).unwrap()
    }

    fn access(&self, realm: &str, user: &str, scope: &str) -> String {
        let tokens = self.tokens(realm, user, scope);
        tokens["access_token"].as_str().unwrap().to_owned()
    }
}

impl Drop for Keycloak {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

const RULES: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"ops","effect":"allow","conditions":{"tool_name":"echo","issuer":"COMPANY","subject_group":"ops","scope":"mcp:read"}},
    {"id":"model","effect":"allow","conditions":{"model":"*","issuer":["COMPANY","PARTNER"]}},
    {"id":"partner","effect":"deny","conditions":{"tool_name":"*","issuer":"PARTNER"}}]}"#;

/// A place whose configuration trusts both realms.
fn place(company: &str, partner: &str, more: &str) -> Place {
    let place = Place::new();
    let rules = RULES
        .replace("COMPANY", company)
        .replace("PARTNER", partner);
    place.write_policy(&rules);
    let mock = place.mock(&["echo"]);
    let text = json!({
        "identity": {
            "public_url": "https://gate.example",
            "scopes": ["mcp:read"],
            "issuers": {
                "company": {"issuer": company, "audiences": ["durward"], "client_id": "durward", "scopes": ["openid", "mcp:read"]},
                "partner": {"issuer": partner, "audiences": ["durward"], "algorithms": ["RS256"], "client_id": "durward", "scopes": ["openid", "mcp:read"]},
            },
        },
        "servers": {"echo": {"command": mock[0], "args": mock[1..]}},
        "models": {"providers": {"near": {"kind": "mock", "latency": "0ms", "models": ["plain"]}}},
        "policy": "policy.json",
    });
    // JSON is YAML; what differs between tests is written over it.
    let mut text: Value = text;
    let more: Value = serde_json::from_str(more).unwrap();
    for (name, value) in more.as_object().unwrap() {
        text["identity"][name] = value.clone();
    }
    std::fs::write(place.path("durward.yaml"), text.to_string()).unwrap();
    place
}

fn call_tool(served: &Served, id: &str, headers: &[(&str, &str)]) -> Answer {
    let mut all = modern_headers("tools/call", "echo");
    all.extend(headers);
    served.send(
        "POST",
        "/mcp/echo",
        &all,
        &modern(&format!("\"{id}\""), "tools/call", CALL),
    )
}

const CALL: &str = r#""name":"echo","arguments":{"text":"hello"}"#;

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[track_caller]
fn assert_challenge(answer: &Answer, status: u16, says: &[&str]) {
    assert_eq!(answer.status, status, "{answer:?}");
    let challenge = answer.header("www-authenticate").unwrap_or_default();
    for part in says {
        assert!(challenge.contains(part), "{part}: {challenge}");
    }
}

#[test]
fn people_sign_in_with_keycloak_and_call_in_their_own_name() {
    let Some(home) = keycloak() else {
        return;
    };
    let keycloak = Keycloak::start(&home);
    let (company, partner) = (keycloak.issuer("company"), keycloak.issuer("partner"));
    let served = Served::start_ruled(place(&company, &partner, "{}"));
    calls_are_judged_and_recorded_by_person(&keycloak, &served);
    challenges_lead_to_the_issuers(&keycloak, &served);
    rotated_keys_are_fetched(&keycloak, &served);
    a_session_that_ends_at_the_issuer_ends_here(&keycloak, &served);
    drop(served);
    let signed_in = place(&company, &partner, "{}");
    commands_act_in_the_name_of_who_is_signed_in(&keycloak, &signed_in);
    a_session_ends_when_its_person_signs_out_or_another_signs_in(&keycloak, &signed_in);
    tokens_are_refreshed_until_the_session_ends(&keycloak, &signed_in);
    an_sdk_finds_the_issuer_and_signs_in_by_itself(&keycloak);
    a_mixed_up_issuer_stops_the_start(&keycloak);
}

fn calls_are_judged_and_recorded_by_person(keycloak: &Keycloak, served: &Served) {
    let company = keycloak.issuer("company");
    let alice = keycloak.access("company", "alice", "openid mcp:read");
    let answer = call_tool(served, "1", &[("authorization", &bearer(&alice))]);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.contains("hello"), "{answer:?}");
    // Another group, and another issuer with a user of the same name and group.
    for (realm, user) in [("company", "bob"), ("partner", "alice")] {
        let token = keycloak.access(realm, user, "openid mcp:read");
        let answer = call_tool(served, user, &[("authorization", &bearer(&token))]);
        assert!(!answer.body.contains("hello"), "{answer:?}");
        let body = r#"{"model":"plain","messages":[{"role":"user","content":"hi"}]}"#;
        let headers = [
            ("authorization", bearer(&token)),
            ("content-type", "application/json".into()),
        ];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let answer = served.send("POST", "/v1/chat/completions", &headers, body);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let records = served.place.records();
    let decisions: Vec<&Value> = records.decisions();
    let of = |issuer: &str| {
        let begins = format!("{issuer}#");
        let own = decisions.iter().filter(|own| {
            own["subject_id"]
                .as_str()
                .is_some_and(|id| id.starts_with(&begins))
        });
        own.count()
    };
    assert_eq!(of(&company), 3, "{decisions:#?}");
    assert_eq!(of(&keycloak.issuer("partner")), 2, "{decisions:#?}");
    assert!(
        decisions
            .iter()
            .any(|own| own.to_string().contains("\"ops\""))
    );
    // An operator's counts are not for people who have signed in.
    let metrics = served.send("GET", "/metrics", &[("authorization", &bearer(&alice))], "");
    assert_eq!(metrics.status, 403);
}

fn challenges_lead_to_the_issuers(keycloak: &Keycloak, served: &Served) {
    let metadata =
        "resource_metadata=\"https://gate.example/.well-known/oauth-protected-resource/mcp/echo\"";
    let answer = call_tool(served, "c1", &[]);
    assert_challenge(&answer, 401, &[metadata, "scope=\"mcp:read\""]);
    assert!(
        !answer
            .header("www-authenticate")
            .unwrap()
            .contains("error=")
    );
    let document = served.send(
        "GET",
        "/.well-known/oauth-protected-resource/mcp/echo",
        &[("origin", "https://inspector.example")],
        "",
    );
    assert_eq!(document.status, 200);
    assert_eq!(
        document.header("access-control-allow-origin"),
        Some("https://inspector.example")
    );
    let document = document.json();
    assert_eq!(document["resource"], "https://gate.example/mcp/echo");
    assert_eq!(
        document["authorization_servers"],
        json!([keycloak.issuer("company"), keycloak.issuer("partner")])
    );
    let models = served.send("GET", "/.well-known/oauth-protected-resource/v1", &[], "");
    assert_eq!(models.json()["resource"], "https://gate.example/v1");
    let foreign = served.send(
        "GET",
        "/.well-known/oauth-protected-resource",
        &[("host", "evil.example")],
        "",
    );
    assert_ne!(foreign.status, 200);
    // A page of another origin reads the documents and nothing else.
    let page = served.send(
        "GET",
        "/health",
        &[("origin", "https://inspector.example")],
        "",
    );
    assert_eq!(page.status, 403);

    let tokens = keycloak.tokens("company", "alice", "openid mcp:read");
    let text = |name: &str| bearer(tokens[name].as_str().unwrap());
    let without_audience = keycloak.access("company", "alice", "openid");
    let (access, id, refresh) = (
        text("access_token"),
        text("id_token"),
        text("refresh_token"),
    );
    let invalid = "error=\"invalid_token\"";
    for (token, why) in [
        (&bearer(&without_audience), "audience"),
        (&id, "this is an ID token"),
        (&refresh, "shared secret"),
        (&bearer("ya29.opaque"), "not a signed JWT"),
        (&format!("{access}x"), "token"),
    ] {
        let answer = call_tool(served, "c2", &[("authorization", token)]);
        assert_challenge(&answer, 401, &[metadata, invalid, why]);
    }
    let twice = call_tool(
        served,
        "c3",
        &[("authorization", &access), ("authorization", &access)],
    );
    assert_challenge(&twice, 400, &["error=\"invalid_request\""]);
    let path = format!(
        "/mcp/echo?access_token={}",
        tokens["access_token"].as_str().unwrap()
    );
    let answer = served.send(
        "POST",
        &path,
        &modern_headers("tools/call", "echo"),
        &call("9", "x"),
    );
    assert_challenge(&answer, 401, &["in the URL is not accepted"]);
    let answer = served.send("GET", "/v1/models", &[("authorization", &id)], "");
    assert_challenge(
        &answer,
        401,
        &["/.well-known/oauth-protected-resource/v1\"", invalid],
    );
    eventually("the refusals are recorded", || {
        let records = served.place.records();
        let reasons = [
            "token_audience_missing",
            "token_is_id_token",
            "token_in_query",
            "credential_ambiguous",
        ];
        reasons
            .iter()
            .all(|reason| records.0.iter().any(|record| record["reason"] == *reason))
    });
}

fn rotated_keys_are_fetched(keycloak: &Keycloak, served: &Served) {
    let before = keycloak.access("company", "alice", "openid mcp:read");
    keycloak
        .act(&["rotate", &keycloak.base, "company"])
        .unwrap();
    let after = keycloak.access("company", "alice", "openid mcp:read");
    let key = |token: &str| token.split('.').next().unwrap().to_owned();
    assert_ne!(key(&before), key(&after), "Keycloak signs with the old key");
    for token in [&after, &before] {
        let answer = call_tool(served, "r1", &[("authorization", &bearer(token))]);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

fn a_session_that_ends_at_the_issuer_ends_here(keycloak: &Keycloak, served: &Served) {
    let url = format!("http://{}/oidc/backchannel-logout", served.address);
    keycloak
        .act(&["report-logout", &keycloak.base, "company", &url])
        .unwrap();
    let token = keycloak.access("company", "alice", "openid mcp:read");
    let alice = bearer(&token);
    let bob = bearer(&keycloak.access("company", "bob", "openid mcp:read"));
    assert_eq!(
        call_tool(served, "b1", &[("authorization", &alice)]).status,
        200
    );
    // Of several sessions that an administrator ends in one request Keycloak 26.4 reports one.
    keycloak
        .act(&["end-session", &keycloak.base, "company", &token])
        .unwrap();
    eventually("the session ends", || {
        call_tool(served, "b2", &[("authorization", &alice)]).status == 401
    });
    let answer = call_tool(served, "b3", &[("authorization", &alice)]);
    assert_challenge(&answer, 401, &["has ended at the issuer"]);
    // Another person's session goes on: a rule refuses the call, not the door.
    assert_eq!(
        call_tool(served, "b4", &[("authorization", &bob)]).status,
        200
    );
    let again = bearer(&keycloak.access("company", "alice", "openid mcp:read"));
    assert_eq!(
        call_tool(served, "b5", &[("authorization", &again)]).status,
        200
    );
    // What is no logout token ends nothing.
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for body in [
        "",
        "logout_token=",
        "logout_token=a.b.c",
        "x=1",
        &format!("logout_token={}", &again[7..]),
    ] {
        let answer = served.send("POST", "/oidc/backchannel-logout", &form, body);
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
    }
    assert_eq!(
        call_tool(served, "b6", &[("authorization", &again)]).status,
        200
    );
}

/// Runs `durward login` while a person signs in in a browser.
fn login(keycloak: &Keycloak, place: &Place, issuer: &str, user: &str) {
    let mut process = place
        .command(&[
            "--config",
            "durward.yaml",
            "--state-dir",
            "state",
            "login",
            issuer,
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let page = lines.next().unwrap().unwrap();
    let page = page.strip_prefix("open ").unwrap().trim().to_owned();
    let code = lines.next().unwrap().unwrap();
    assert!(
        page.contains(code.strip_prefix("code ").unwrap().trim()),
        "{page} {code}"
    );
    let said = keycloak.act(&["device", &page, user]);
    let ended = process.wait().unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(ended.success(), "{ended} {rest:?} {said:?}");
    assert!(rest.concat().contains("signed in as"), "{rest:?}");
}

fn durward(place: &Place, args: &[&str]) -> (i32, String) {
    let before = ["--config", "durward.yaml", "--state-dir", "state"];
    let output = place.durward(&[&before, args].concat());
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

fn commands_act_in_the_name_of_who_is_signed_in(keycloak: &Keycloak, place: &Place) {
    assert_eq!(durward(place, &["whoami"]).0, 13);
    login(keycloak, place, "company", "alice");
    let (code, person) = durward(place, &["whoami", "--json"]);
    assert_eq!(code, 0, "{person}");
    let person: Value = serde_json::from_str(&person).unwrap();
    assert_eq!(person["issuer"], keycloak.issuer("company"));
    assert_eq!(person["groups"], json!(["ops"]));
    let stored = std::fs::read_to_string(place.path("state/sign-in/sign-in.sealed")).unwrap();
    // Each token begins with the letters of `{"alg"`.
    assert!(!stored.contains("eyJhbGci"), "the tokens are not sealed");
    let (code, said) = durward(place, &["call", "echo", "echo", r#"{"text":"hello"}"#]);
    assert_eq!(code, 0, "{said}");
    let records = place.records();
    let decisions = records.decisions();
    let last = decisions.last().unwrap();
    assert_eq!(last["subject_id"], person["subject"], "{last}");
    let (code, said) = durward(place, &["logout", "--federated"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("/protocol/openid-connect/logout?client_id=durward"),
        "{said}"
    );
    assert_eq!(durward(place, &["whoami"]).0, 13);
    // Without a sign-in the rules see the local user, who is in no group.
    let (code, said) = durward(place, &["call", "echo", "echo", r#"{"text":"hello"}"#]);
    assert_ne!(code, 0, "{said}");
}

/// A `durward run` whose client says nothing and stays.
fn waiting_run(place: &Place) -> Child {
    let args = [
        "--config",
        "durward.yaml",
        "--state-dir",
        "state",
        "run",
        "echo",
    ];
    let mut command = place.command(&args);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut process = command.spawn().unwrap();
    // It has read the sign-in before it can be asked for its status.
    eventually("the session begins", || {
        let told = place.durward(&["--state-dir", "state", "status", "--json"]);
        String::from_utf8_lossy(&told.stdout).contains("echo")
    });
    assert!(process.try_wait().unwrap().is_none(), "it has ended");
    process
}

/// Waits for the end of a run whose client stays, and returns its exit code.
fn end_of(mut process: Child) -> Option<i32> {
    // Waiting closes the standard input that the process still has.
    let input = process.stdin.take();
    let status = process.wait().unwrap();
    drop(input);
    status.code()
}

fn a_session_ends_when_its_person_signs_out_or_another_signs_in(
    keycloak: &Keycloak,
    place: &Place,
) {
    login(keycloak, place, "company", "alice");
    let first = waiting_run(place);
    login(keycloak, place, "company", "bob");
    assert_eq!(end_of(first), Some(15));
    let second = waiting_run(place);
    assert_eq!(durward(place, &["logout"]).0, 0);
    assert_eq!(end_of(second), Some(13));
}

/// The partner's tokens last ten seconds.
fn tokens_are_refreshed_until_the_session_ends(keycloak: &Keycloak, place: &Place) {
    login(keycloak, place, "partner", "alice");
    let token_end = || {
        let (code, person) = durward(place, &["whoami", "--json"]);
        assert_eq!(code, 0, "{person}");
        let person: Value = serde_json::from_str(&person).unwrap();
        person["token_end_ms"].as_i64().unwrap()
    };
    let first = token_end();
    let run = waiting_run(place);
    let patience = Duration::from_secs(60);
    eventually_within(patience, "the token is refreshed", || token_end() > first);
    let end = ["end-sessions", &keycloak.base, "partner", "alice"];
    keycloak.act(&end).unwrap();
    assert_eq!(end_of(run), Some(13));
    let (code, said) = durward(place, &["call", "echo", "echo", "{}"]);
    assert_eq!(code, 13, "{said}");
    assert!(said.contains("has ended at the issuer"), "{said}");
    assert_eq!(durward(place, &["logout"]).0, 0);
}

fn an_sdk_finds_the_issuer_and_signs_in_by_itself(keycloak: &Keycloak) {
    let Some(python) = fastmcp_python() else {
        return;
    };
    let free = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let (own, callback) = (free(), free());
    let more = json!({ "public_url": format!("http://127.0.0.1:{own}") }).to_string();
    let (company, partner) = (keycloak.issuer("company"), keycloak.issuer("partner"));
    let place = place(&company, &partner, &more);
    let before = ["--config", "durward.yaml", "--state-dir", "state", "serve"];
    let listen = format!("127.0.0.1:{own}");
    let served = Served::spawn(place, &[&before[..], &["--listen", &listen]].concat());
    let script = repository().join("crates/durward/tests/drivers/people/fastmcp_oauth.py");
    let output = Command::new(python)
        .arg(script)
        .arg(format!("http://{listen}/mcp/echo"))
        .args(["alice", &callback.to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("hello"),
        "{output:?}"
    );
    let records = served.place.records();
    let last = records.decisions().last().unwrap()["subject_id"].clone();
    assert!(last.as_str().unwrap().starts_with(&company), "{last}");
}

fn a_mixed_up_issuer_stops_the_start(keycloak: &Keycloak) {
    let slash = format!("{}/", keycloak.issuer("company"));
    let place = place(&slash, &keycloak.issuer("partner"), "{}");
    let args = ["serve", "--listen", "127.0.0.1:0"];
    let (code, said) = durward(&place, &args);
    assert_eq!(code, 16, "{said}");
    assert!(said.contains("that of another issuer"), "{said}");
}

/// An address of this machine at which nothing listens.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/realms/x", listener.local_addr().unwrap())
}

#[test]
fn required_sign_in_and_an_unreachable_issuer_have_exit_codes_of_their_own() {
    let issuer = nowhere();
    let place = place(&issuer, "https://partner.example", r#"{"required": true}"#);
    let (code, said) = durward(&place, &["run", "echo"]);
    assert_eq!(code, 13, "{said}");
    assert!(said.contains("durward login"), "{said}");
    let (code, said) = durward(&place, &["login", "company"]);
    assert_eq!(code, 12, "{said}");
    let (code, said) = durward(&place, &["call", "echo", "echo", "{}"]);
    assert_eq!(code, 13, "{said}");
    let (code, said) = durward(&place, &["login", "nobody"]);
    assert_eq!(code, 16, "{said}");
    let (code, said) = durward(&place, &["login"]);
    assert_eq!(code, 16, "{said}");
    assert!(said.contains("company, partner"), "{said}");
    assert_eq!(durward(&place, &["logout"]).0, 0);
}

#[test]
fn without_its_issuer_the_server_starts_and_answers_503_to_tokens() {
    let issuer = nowhere();
    let served = Served::start_ruled(place(&issuer, &nowhere(), "{}"));
    let encode = |text: &str| {
        let table = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut out = String::new();
        for part in text.as_bytes().chunks(3) {
            let word = part
                .iter()
                .fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
                << (8 * (3 - part.len()));
            for at in 0..=part.len() {
                out.push(char::from(table[(word >> (18 - 6 * at)) as usize & 63]));
            }
        }
        out
    };
    let header = encode(r#"{"alg":"RS256","kid":"k"}"#);
    let claims = encode(&json!({"iss": issuer, "sub": "a"}).to_string());
    let token = format!("Bearer {header}.{claims}.{}", encode("signature"));
    let answer = call_tool(&served, "1", &[("authorization", &token)]);
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(call_tool(&served, "2", &[]).status, 401);
    // An operator's key counts as before.
    let key = crate::serve_keys::bearer(&served.place, &["create", "ci"]);
    eventually("the key counts", || {
        let answer = call_tool(&served, "3", &[("authorization", &key)]);
        answer.status == 200 && !answer.body.contains("token_")
    });
}
