//! Rules over URLs: every spelling of an address gets the verdict of the address.

use gate::Caller;
use gate::facts::{Fact, Facts, ResourceType};
use gate::paths::StepBudget;
use gate::paths::reach::{Reader, Text};
use gate::policy::{Effect, Policy};

/// A call of a fetch tool with these arguments.
fn call(arguments: &[(&str, &str)]) -> Facts {
    let mut facts = Facts {
        method: "tools/call".into(),
        backend_id: "web".into(),
        resource_type: Some(ResourceType::Tool),
        tool_name: Fact::Known("fetch".into()),
        paths: Fact::Known(Vec::new()),
        ..Facts::of(&Caller::local("u"))
    };
    let budget = StepBudget::for_input(arguments.iter().map(|(_, text)| text.len()).sum());
    let mut reader = Reader::new(&[], None, &budget);
    for (key, text) in arguments {
        reader.take(Text {
            text,
            key,
            is_path: false,
            is_content: *key == "content",
        });
    }
    facts.reach = reader.done(false);
    facts
}

fn policy(effect: &str, conditions: &str) -> Policy {
    let others = r#"{"id":"all","effect":"allow","conditions":{"tool_name":"*"}}"#;
    let rule = format!(r#"{{"id":"rule","effect":"{effect}","conditions":{{{conditions}}}}}"#);
    let rules = match effect {
        "allow" => rule,
        _ => format!("{rule},{others}"),
    };
    let text = format!(r#"{{"version":"1","rules":[{rules}]}}"#);
    Policy::load(&text, None, &[]).unwrap()
}

fn verdict(policy: &Policy, facts: &Facts) -> Effect {
    policy.judge(facts).verdict().effect
}

/// Hosts that are 127.0.0.1 for each reader that opens them at all.
const PLAIN_HOSTS: [&str; 25] = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0X7F000001",
    "0x7f.0.0.1",
    "0x7f.1",
    "127.0.0.0x1",
    "0x7f.0x0.0x0.0x1",
    "0x0000007f.0.0.1",
    "127.0.0.1.",
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "%3127.0.0.1",
    "１２７.0.0.1",
    "127。0。0。1",
    "127．0．0．1",
    "①②⑦.0.0.1",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[0000:0000:0000:0000:0000:FFFF:7F00:0001]",
    "[64:ff9b::127.0.0.1]",
    "[::127.0.0.1]",
];
/// Hosts that some readers take for 127.0.0.1, and others for another address or name.
const ODD_HOSTS: [&str; 8] = [
    "0177.0.0.1",
    "0127.0.0.1",
    "017700000001",
    "localhost",
    "LocalHost.",
    "0",
    "[::1]",
    "app.localhost",
];

fn spellings(host: &str) -> Vec<String> {
    let mut out = vec![
        format!("http://{host}:8080/secret/x"),
        format!("HTTP://{host}:8080/secret/x"),
        format!("hTtP://{host}:08080/secret/x"),
        format!("http://user:pw@{host}:8080/secret/x"),
        format!(" http://{host}:8080/secret/x\n"),
        format!("http:/{host}:8080/secret/x"),
        format!("http:{host}:8080/secret/x"),
        format!("http:///{host}:8080/secret/x"),
        format!(r"http:\\{host}:8080\secret\x"),
        format!(r"http:/\{host}:8080/secret/x"),
        format!("ht\ttp://{host}:80\n80/secret/x"),
        format!("http://{host}:8080/%73ecret/x?q=1#f"),
    ];
    // Readers that know no such forms make something else of it, so an allow rule has others.
    out.push(format!("http://{host}:8080//secret/x"));
    out
}

#[test]
fn a_rule_that_refuses_an_address_refuses_every_spelling_of_it() {
    let rules = [
        policy("deny", r#""path_pattern":"http://127.0.0.1:8080/**""#),
        policy("deny", r#""url_pattern":"http://127.0.0.1:8080/secret/**""#),
        policy("hitl", r#""url_pattern":"*://0x7f.1:*/**""#),
        policy("deny", r#""host":"127.0.0.1""#),
        policy("deny", r#""address_class":["loopback","metadata"]"#),
        policy(
            "deny",
            r#""when":"url_address_class.exists(c, c == 'loopback')""#,
        ),
    ];
    let mut count = 0;
    for host in PLAIN_HOSTS.into_iter().chain(ODD_HOSTS) {
        for url in spellings(host) {
            count += 1;
            let calls = [
                call(&[("url", &url)]),
                call(&[("query", &url)]),
                call(&[("content", &url)]),
                call(&[("text", &format!("get {} now", url.trim()))]),
                call(&[(
                    "data",
                    &format!("{{\"u\": {}}}", serde_json::Value::from(url.as_str())),
                )]),
            ];
            for (rule, policy) in rules.iter().enumerate() {
                for (way, facts) in calls.iter().enumerate() {
                    // Only a parser that gets the whole drops what is inside of a scheme.
                    if way == 3 && url.contains('\t') {
                        continue;
                    }
                    let effect = verdict(policy, facts);
                    assert_ne!(effect, Effect::Allow, "rule {rule}, call {way}, {url:?}");
                }
            }
        }
    }
    assert!(count >= 400, "{count}");
    let bare = call(&[("url", "127.1:8080/secret/x")]);
    for policy in &rules {
        assert_ne!(verdict(policy, &bare), Effect::Allow, "{bare:?}");
    }
}

#[test]
fn addresses_that_no_rule_names_pass_a_rule_that_refuses() {
    let rules = [
        policy("deny", r#""path_pattern":"http://127.0.0.1:8080/**""#),
        policy("deny", r#""url_pattern":"http://127.0.0.1:8080/secret/**""#),
        policy(
            "deny",
            r#""address_class":["loopback","private","link_local","metadata"],"url_pattern":"**""#,
        ),
    ];
    for url in [
        "http://128.0.0.1:8080/secret/x",
        "https://example.org:8080/secret/x",
        "http://127.0.0.1.example.org:8080/secret/x",
        "http://[2606:4700::1]:8080/secret/x",
        "no URL",
    ] {
        for policy in &rules {
            let facts = call(&[("url", url)]);
            assert_eq!(verdict(policy, &facts), Effect::Allow, "{url}");
        }
    }
    let port = call(&[("url", "http://127.0.0.1:8081/secret/x")]);
    assert_eq!(verdict(&rules[0], &port), Effect::Allow);
}

#[test]
fn a_rule_that_allows_an_address_allows_the_spellings_that_all_readers_share() {
    let rules = [
        policy("allow", r#""path_pattern":"http://127.0.0.1:8080/**""#),
        policy(
            "allow",
            r#""url_pattern":"http://127.0.0.1:8080/secret/**""#,
        ),
        policy("allow", r#""host":"127.0.0.1""#),
        policy(
            "allow",
            r#""when":"size(url_host) == 1 && url_host[0] == '127.0.0.1'""#,
        ),
    ];
    for (at, policy) in rules.iter().enumerate() {
        for host in PLAIN_HOSTS {
            for url in spellings(host).into_iter().take(4) {
                let facts = call(&[("url", &url)]);
                assert_eq!(verdict(policy, &facts), Effect::Allow, "rule {at}, {url}");
            }
        }
        for host in ODD_HOSTS {
            let url = format!("http://{host}:8080/secret/x");
            let facts = call(&[("url", &url)]);
            assert_eq!(verdict(policy, &facts), Effect::Deny, "rule {at}, {url}");
        }
        for url in [
            r"http://127.0.0.1:8080\@evil.example/secret/x",
            "http://127.0.0.1:8080#@evil.example/secret/x",
            "http://127.0.0.1:8080@evil.example/secret/x",
            "http://evil.example/http://127.0.0.1:8080/secret/x",
            "http://127.0.0.1:8080/secret/x,http://evil.example/",
            "http://127.0.0.1:8080/secret/x http://evil.example/",
            "http://127.0.0.1.evil.example:8080/secret/x",
            "http://127.0.0.1:8080/secret/../../../etc/passwd",
            "http://127.0.0.1:8080/secret/%2e%2e/x",
            "",
        ] {
            let facts = call(&[("url", url)]);
            assert_eq!(verdict(policy, &facts), Effect::Deny, "rule {at}, {url}");
        }
        let two = call(&[
            ("url", "http://127.0.0.1:8080/secret/x"),
            ("other", "ftp://evil.example/"),
        ]);
        assert_eq!(verdict(policy, &two), Effect::Deny, "rule {at}");
        let bare = call(&[
            ("url", "http://127.0.0.1:8080/secret/x"),
            ("proxy_url", "evil.example"),
        ]);
        assert_eq!(verdict(policy, &bare), Effect::Deny, "rule {at}");
    }
}

#[test]
fn a_url_pattern_means_what_it_says() {
    let cases = [
        (
            "https://good.example/public/**",
            "https://good.example/public/a?x=1",
            true,
        ),
        (
            "https://good.example/public/**",
            "https://GOOD.example:443/public",
            true,
        ),
        (
            "https://good.example/public/**",
            "https://good.example/login?next=https://good.example/public/",
            false,
        ),
        (
            "https://good.example/public/**",
            "http://good.example/public/a",
            false,
        ),
        (
            "https://good.example/public/**",
            "https://good.example/publicity",
            false,
        ),
        (
            "https://good.example/public/**",
            "https://good.example/public/..%2fadmin",
            false,
        ),
        ("https://*.example/**", "https://a.b.example/x", true),
        ("https://*.example/**", "https://example/x", false),
        (
            "https://bücher.example/**",
            "https://xn--bcher-kva.example/x",
            true,
        ),
        ("*://good.example:*/**", "ws://good.example:9/x", true),
        ("https://good.example", "https://good.example/", true),
        ("https://good.example", "https://good.example/x", false),
        ("http://[::1]:80/**", "http://[0:0::1]/x", true),
        ("**", "gopher://h.example/x", true),
    ];
    for (pattern, url, expect) in cases {
        let policy = policy("allow", &format!(r#""url_pattern":"{pattern}""#));
        let is_allowed = verdict(&policy, &call(&[("url", url)])) == Effect::Allow;
        assert_eq!(is_allowed, expect, "{pattern} {url}");
    }
    // A URL in a query is data of the first one for who allows, and a target for who refuses.
    let redirect = call(&[(
        "url",
        "https://good.example/go?to=http://169.254.169.254/latest",
    )]);
    let allow = policy("allow", r#""url_pattern":"https://good.example/**""#);
    assert_eq!(verdict(&allow, &redirect), Effect::Allow);
    let deny = policy("deny", r#""address_class":"metadata""#);
    assert_eq!(verdict(&deny, &redirect), Effect::Deny);
}

#[test]
fn patterns_that_cannot_match_do_not_load() {
    for (pattern, says) in [
        ("good.example/**", "is not a URL pattern"),
        ("https:///x", "has no host"),
        (
            "https://u:p@good.example/**",
            "has a user name or a password",
        ),
        ("https://good.example:99999/**", "has the port"),
        ("https://good.example/x#y", "has a fragment"),
        (
            "http://0127.0.0.1/**",
            "has no host that all readers take for the same",
        ),
    ] {
        let text = format!(
            r#"{{"version":"1","rules":[{{"id":"r","effect":"deny","conditions":{{"url_pattern":"{pattern}"}}}}]}}"#
        );
        let fault = Policy::load(&text, None, &[]).unwrap_err();
        assert!(fault.message.contains(says), "{pattern}: {}", fault.message);
        assert!(fault.hint.is_some(), "{pattern}");
    }
}

#[test]
fn check_names_rules_that_compare_the_text_of_a_url() {
    let warnings = |effect: &str, conditions: &str| {
        let policy = policy(effect, conditions);
        let found = gate::policy::lint::warnings(policy.rules(), &[]);
        found
            .first()
            .map(|warning| warning.message.clone())
            .unwrap_or_default()
    };
    for (effect, conditions, says) in [
        (
            "deny",
            r#""path_pattern":"http://127.0.0.1:8080/**""#,
            "compares a URL as a path",
        ),
        (
            "allow",
            r#""path_pattern":"https://good.example/public/**""#,
            "compares a URL as a path",
        ),
        (
            "deny",
            r#""path_pattern":"http://u@h.example/**""#,
            "so no URL matches it",
        ),
        (
            "deny",
            r#""when":"uri.startsWith('http://127.0.0.1')""#,
            "compares the text of a URL",
        ),
        (
            "deny",
            r#""url_pattern":"http://127.0.0.1/**""#,
            "covers port 80 of 127.0.0.1 alone",
        ),
        (
            "deny",
            r#""url_pattern":"https://h.example/x?y=*""#,
            "queries are not compared",
        ),
    ] {
        let found = warnings(effect, conditions);
        assert!(found.contains(says), "{conditions}: {found}");
    }
    for (effect, conditions) in [
        ("deny", r#""url_pattern":"*://127.0.0.1:*/**""#),
        ("allow", r#""url_pattern":"https://good.example/public/**""#),
        ("deny", r#""address_class":["private","loopback"]"#),
        ("deny", r#""when":"'http://a.example/x' in urls""#),
    ] {
        assert_eq!(warnings(effect, conditions), "", "{conditions}");
    }
}
