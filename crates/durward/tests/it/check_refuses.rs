//! `durward check` refuses every configuration that `durward serve` refuses at its start, in the same words.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::world::{World, binary};

/// How long a command may take that has nothing to wait for.
const PATIENCE: Duration = Duration::from_secs(120);

const SERVER: &str = "servers: { e: { builtin: echo } }\n";

/// A configuration, and what is said of it.
struct Case {
    yaml: String,
    says: &'static str,
    /// Done to the surroundings first.
    before: fn(&World),
}

fn case(yaml: impl Into<String>, says: &'static str) -> Case {
    Case {
        yaml: yaml.into(),
        says,
        before: |_| {},
    }
}

/// One server beside this.
fn with(more: &str) -> String {
    format!("{SERVER}{more}\n")
}

/// Exit code and the last error of a command that ends by itself.
fn refused(world: &World, args: &[&str]) -> (i32, String) {
    let mut child = Command::new(binary())
        .args(args)
        .env_clear()
        .envs(world.environment())
        .current_dir(&world.tmp)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{args:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let error = text.find("error: ").map(|at| text[at..].to_owned());
    (output.status.code().unwrap(), error.unwrap_or(text))
}

fn mode(path: &std::path::Path, mode: u32) {
    fs::create_dir_all(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn of_servers() -> Vec<Case> {
    vec![
        case(with("root: other"), "root: no server is called \"other\""),
        case(
            "servers: { far: { url: \"http://far.example/mcp\" } }",
            "say insecure_http: true in durward.yaml",
        ),
        case(
            "servers: { far: { url: \"http://far.example/mcp\", insecure_http: false } }\ninsecure_http: true",
            "the server \"far\"",
        ),
        case(
            "servers: { far: { url: \"https://far.example/mcp\", ca: gone.pem } }",
            "gone.pem: No such file",
        ),
        case(
            "servers: { far: { url: \"https://far.example/mcp\", client_cert: durward.yaml, client_key: durward.yaml } }",
            "certificate",
        ),
        case(
            "servers: { far: { url: \"https://far.example/mcp\", api_key: \"\u{fc}\" } }",
            "api_key is not a key",
        ),
        case(
            "servers: { hosts: { builtin: ssh, hosts: gone.yaml } }",
            "the built-in server ssh cannot be used",
        ),
        case(
            "servers: { e: { builtin: echo, policy: gone.json } }",
            "gone.json: ",
        ),
        case(with("policy: durward.yaml"), "durward.yaml: "),
    ]
}

fn of_listening() -> Vec<Case> {
    vec![
        case(
            with("listen: 0.0.0.0:0"),
            "without TLS anybody on the network could read",
        ),
        case(
            with("tls: { cert: gone.pem, key: gone.pem }"),
            "gone.pem: No such file",
        ),
        case(
            with("tls: { cert: durward.yaml, key: durward.yaml }"),
            "durward.yaml with ",
        ),
        case(
            with("listen: unix:/no/such/place/durward.sock"),
            "the directory does not exist",
        ),
        case(
            with(&format!("listen: unix:/tmp/{}", "x".repeat(200))),
            "too long for a socket",
        ),
        case(with("allowed_hosts: [\"a/b\"]"), "host \"a/b\": "),
        case(with("allowed_origins: [nowhere]"), "origin \"nowhere\": "),
    ]
}

fn of_models() -> Vec<Case> {
    let provider = |inner: &str| format!("models: {{ providers: {{ far: {{ {inner} }} }} }}");
    vec![
        case(
            provider("kind: openai, base_url: \"http://far.example/v1\""),
            "the model provider \"far\"",
        ),
        case(
            provider("kind: openai, ca: gone.pem"),
            "gone.pem: No such file",
        ),
        Case {
            yaml:
                "models: { providers: { near: { kind: mock } }, budgets: { own: { tokens: 5 } } }"
                    .into(),
            says: "the budgets cannot be kept",
            before: |world| {
                mode(&world.state(), 0o700);
                fs::write(world.state().join("budgets"), "no account\nnor this\n").unwrap();
            },
        },
    ]
}

fn of_places() -> Vec<Case> {
    vec![
        Case {
            yaml: with(""),
            says: "api_keys.json",
            before: |world| {
                mode(&world.state().join("keys"), 0o700);
                let file = world.state().join("keys/api_keys.json");
                fs::write(&file, "not json").unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            },
        },
        Case {
            yaml: with(""),
            says: "/state/durward",
            before: |world| mode(&world.state(), 0o777),
        },
        Case {
            yaml: with(""),
            says: "/journal",
            before: |world| {
                mode(&world.state(), 0o700);
                mode(&world.state().join("journal"), 0o777);
            },
        },
        Case {
            yaml: with(""),
            says: "the runtime directory",
            before: |world| mode(&world.runtime().join("durward"), 0o755),
        },
    ]
}

/// Settings of their own kind, refused where the file is read.
fn of_keys() -> Vec<Case> {
    [
        ("require_key: yes", "is not one of true, false"),
        ("share: nobody", "is not one of session, caller, all"),
        ("session_idle: 0s", "is outside of 1s to 24h"),
        ("threads: 0", "is outside of 1 to 64"),
        ("threads: 65", "is outside of 1 to 64"),
        ("watch: sometimes", "is not one of true, false"),
        ("insecure_http: 1", "is not one of true, false"),
        (
            "limits: { per_tool: { concurrency: 0 } }",
            "is outside of 1 to 1024",
        ),
    ]
    .map(|(line, says)| case(with(line), says))
    .into()
}

fn compare(cases: Vec<Case>) {
    for Case { yaml, says, before } in cases {
        let world = World::new(None);
        fs::create_dir_all(world.config()).unwrap();
        fs::write(world.config().join("durward.yaml"), &yaml).unwrap();
        before(&world);
        let served = refused(&world, &["serve"]);
        assert_ne!(served.0, 0, "{yaml}");
        assert!(served.1.contains(says), "{yaml}\n{}", served.1);
        for check in [&["check"][..], &["check", "--strict"]] {
            let (code, said) = refused(&world, check);
            assert_eq!((code, &said), (16, &served.1), "{check:?} {yaml}");
        }
    }
}

#[test]
fn p11_servers_that_cannot_be_served() {
    compare(of_servers());
}

#[test]
fn places_that_cannot_be_listened_at() {
    compare(of_listening());
}

#[test]
fn models_that_cannot_be_asked() {
    compare(of_models());
}

#[test]
fn directories_and_keys_that_cannot_be_trusted() {
    compare(of_places());
}

#[test]
fn p11_values_that_are_none() {
    compare(of_keys());
}

#[test]
fn nothing_to_serve_is_a_warning_that_strict_refuses() {
    let world = World::new(None);
    let (code, said) = refused(&world, &["serve"]);
    assert!(
        code == 16 && said.contains("there is no server to serve"),
        "{said}"
    );
    let plain = world.durward(&["check"]);
    assert!(plain.status.success());
    let out = String::from_utf8(plain.stdout).unwrap();
    assert!(out.contains("there is no server to serve"), "{out}");
    let (code, said) = refused(&world, &["check", "--strict"]);
    assert_eq!(
        (code, said.as_str()),
        (16, "error: 1 warning, and --strict was given\n")
    );
    // A check makes nothing.
    assert_eq!(fs::read_dir(world.state()).unwrap().count(), 0);
}
