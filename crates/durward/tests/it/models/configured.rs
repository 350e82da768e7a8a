//! What is wrong with a configuration of models is said before anything starts.

use super::support::place;

#[test]
fn wrong_configurations_are_refused_with_the_place() {
    let providers = "providers: { a: { kind: mock, models: [x] } }";
    let with = |aliases: &str| format!("models: {{ {providers}, aliases: {{ {aliases} }} }}");
    let cases = [
        ("models: {}".to_owned(), "names no provider"),
        ("models: { providers: { a: {} } }".to_owned(), "has no kind"),
        (
            "models: { providers: { a: { kind: openay } } }".to_owned(),
            "did you mean \"openai\"?",
        ),
        (
            "models: { providers: { a: { kind: mock, base_url: \"http://127.0.0.1/\" } } }"
                .to_owned(),
            "is not for providers of kind mock",
        ),
        (
            "models: { providers: { a: { kind: openai, base_url: \"ftp://x/\" } } }".to_owned(),
            "is neither http nor https",
        ),
        (
            "models: { providers: { a: { kind: openai, api_key: \"a b\" } } }".to_owned(),
            "keys cannot have",
        ),
        (
            "models: { providers: { a: { kind: openai, latency: 1s } } }".to_owned(),
            "is not for providers of kind openai",
        ),
        (
            "models: { providers: { a: { kind: azure } } }".to_owned(),
            "has no base_url",
        ),
        (
            "models: { providers: { a: { kind: google, api_version: x } } }".to_owned(),
            "is not for providers of kind google",
        ),
        (
            "models: { providers: { \"a/b\": { kind: mock } } }".to_owned(),
            "cannot be a name here",
        ),
        (
            "models: { providers: { a: { kind: mock, model: x } } }".to_owned(),
            "did you mean \"models\"?",
        ),
        (
            "models: { providers: { a: { kind: bedrock, api_key: k } } }".to_owned(),
            "has no region",
        ),
        (
            "models: { providers: { a: { kind: bedrock, api_key: k, region: \"x.evil/\" } } }".to_owned(),
            "lower-case letters, digits",
        ),
        (
            "models: { providers: { a: { kind: bedrock, region: us-east-1 } } }".to_owned(),
            "has no key",
        ),
        (
            "models: { providers: { a: { kind: bedrock, region: us-east-1, access_key: k } } }".to_owned(),
            "has not both of access_key and secret_key",
        ),
        (
            "models: { providers: { a: { kind: bedrock, region: us-east-1, access_key: k, secret_key: k, api_key: k } } }".to_owned(),
            "has access_key and api_key",
        ),
        (
            "models: { providers: { a: { kind: bedrock, region: us-east-1, access_key: k, secret_key: \"k k\" } } }".to_owned(),
            "keys cannot have",
        ),
        (
            "models: { providers: { a: { kind: openai, region: us-east-1 } } }".to_owned(),
            "is not for providers of kind openai",
        ),
        (
            "models: { providers: { a: { kind: vertex, api_key: k } } }".to_owned(),
            "has no location",
        ),
        (
            "models: { providers: { a: { kind: vertex, location: \"x.evil/\", api_key: k } } }".to_owned(),
            "lower-case letters, digits",
        ),
        (
            "models: { providers: { a: { kind: vertex, location: eu, api_key: k } } }".to_owned(),
            "has no project",
        ),
        (
            "models: { providers: { a: { kind: vertex, location: eu, project: \"p/../q\", api_key: k } } }".to_owned(),
            "write the project's id",
        ),
        (
            "models: { providers: { a: { kind: vertex, location: eu, project: p, api_key: k, metadata: true } } }".to_owned(),
            "has more than one of credentials",
        ),
        (
            "models: { providers: { a: { kind: vertex, location: eu, project: p, credentials: gone.json } } }".to_owned(),
            "gone.json: No such file",
        ),
        (
            "models: { providers: { a: { kind: vertex, location: eu, project: p, credentials: policy.json } } }".to_owned(),
            "not a JSON file of a service account",
        ),
        (
            "models: { providers: { a: { kind: google, location: eu } } }".to_owned(),
            "is not for providers of kind google",
        ),
        (with("s: { tiers: [] }"), "has no target"),
        (
            with("s: { tiers: [t] }, t: { tiers: [[s, a/x]] }"),
            "s -> t -> s",
        ),
        (with("s: { tiers: [s] }"), "s -> s"),
        (with("s: { tiers: [b/x] }"), "neither PROVIDER/MODEL"),
        (with("s: { tiers: [nope] }"), "neither PROVIDER/MODEL"),
        (with("s: { tiers: [a/y] }"), "not in its provider's list"),
        (with("a: { tiers: [a/x] }"), "stands for two things"),
        (with("s: { tiers: a/x }"), "must be a list"),
        (
            with("s: { tiers: [a/x], rotate: dice }"),
            "is not one of none, round_robin, weighted",
        ),
        (with("s: { tiers: [a/x], deadline: 1ms }"), "is outside of"),
        (
            with("s: { tiers: [a/x], weights: { a/y: 2 } }"),
            "not one of its targets",
        ),
        (
            with("s: { tiers: [a/x], weights: { a/x: -1 } }"),
            "not a whole number",
        ),
    ];
    for (yaml, says) in cases {
        let place = place(&yaml, &[]);
        for command in ["check", "serve"] {
            let output =
                place.durward(&["--config", "durward.yaml", "--state-dir", "state", command]);
            let text = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(16), "{command} {yaml} {text}");
            assert!(text.contains(says), "{command} {yaml}\n{text}");
        }
    }
}
