//! What expressions say of facts, and which are refused.

use super::*;
use crate::facts::{Fact, Facts, ResourceType};
use crate::paths::canonical::Meaning;
use crate::paths::{PathArgument, Role};

fn path(role: Role, places: &[&str]) -> PathArgument {
    PathArgument {
        text: places.first().copied().unwrap_or_default().into(),
        role,
        content: false,
        meaning: Meaning {
            places: places.iter().map(|p| (*p).to_owned()).collect(),
            uncertain: places.is_empty(),
            ..crate::paths::Meaning::default()
        },
    }
}

fn call(tool: &str, paths: Vec<PathArgument>) -> Facts {
    Facts {
        method: "tools/call".into(),
        tool_name: Fact::Known(tool.into()),
        backend_id: "files".into(),
        resource_type: Some(ResourceType::Tool),
        subject_id: "u".into(),
        paths: Fact::Known(paths),
        ..Facts::default()
    }
}

#[track_caller]
fn says(text: &str, facts: &Facts, effect: Effect, expected: Tri) {
    let when = When::compile(text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    assert_eq!(when.holds(&Seen::new(facts), effect), expected, "{text}");
}

#[test]
fn facts_by_their_names() {
    let read = call("read_file", vec![path(Role::Path, &["/tmp/A.PEM"])]);
    let cases = [
        (
            "tool_name == 'read_file' && backend_id == \"files\"",
            Tri::Yes,
        ),
        ("mcp_method == 'tools/call' && subject_id == 'u'", Tri::Yes),
        (
            "resource_type == 'tool' && direction == 'to_server'",
            Tri::Yes,
        ),
        ("operation == 'read' && 'fs_read' in side_effects", Tri::Yes),
        ("path.startsWith('/tmp/') && size(path) < 20", Tri::Yes),
        ("extension == '.pem'", Tri::Yes),
        ("paths.all(p, p.startsWith('/tmp/'))", Tri::Yes),
        (
            "paths.exists(p, ['/etc/', '/tmp/'].exists(d, p.startsWith(d)))",
            Tri::Yes,
        ),
        ("paths.filter(p, p.contains('x')).size() == 0", Tri::Yes),
        ("path.matches('^/tmp/[A-Z]+[.]PEM$')", Tri::Yes),
        (
            "uri == null && source_path == null && dest_path == null",
            Tri::Yes,
        ),
        ("operation == 'write'", Tri::No),
        ("path == 1", Tri::No),
        // Not a truth value, or it throws.
        ("size(path)", Tri::Unknown),
        ("uri.startsWith('x')", Tri::Unknown),
        ("1 / 0 == 1", Tri::Unknown),
        ("paths[7] == 'x'", Tri::Unknown),
        // What fails is left out of account where the rest decides.
        ("false && uri.startsWith('x')", Tri::No),
        ("uri.startsWith('x') || true", Tri::Yes),
    ];
    for (text, expected) in cases {
        says(text, &read, Effect::Allow, expected);
    }
}

#[test]
fn what_is_unknown_or_ambiguous_is_unknown() {
    let mut listed = call("read_file", Vec::new());
    listed.paths = Fact::Unknown;
    let cases = [
        ("path.startsWith('/tmp/')", Tri::Unknown),
        ("paths.all(p, p == '/x')", Tri::Unknown),
        ("extension == '.pem'", Tri::Unknown),
        ("tool_name == 'x' && path == '/x'", Tri::No),
        ("tool_name == 'read_file' || path == '/x'", Tri::Yes),
        ("tool_name == 'read_file'", Tri::Yes),
    ];
    for (text, expected) in cases {
        says(text, &listed, Effect::Deny, expected);
    }
    // A second path must not slip by behind the first.
    let copy = call(
        "copy",
        vec![
            path(Role::Source, &["/tmp/a"]),
            path(Role::Destination, &["/etc/b", "/etc/c"]),
        ],
    );
    says(
        "path.startsWith('/tmp/')",
        &copy,
        Effect::Allow,
        Tri::Unknown,
    );
    says(
        "source_path.startsWith('/tmp/')",
        &copy,
        Effect::Allow,
        Tri::Yes,
    );
    says(
        "dest_path.startsWith('/etc/')",
        &copy,
        Effect::Allow,
        Tri::Unknown,
    );
    says("size(paths) == 3", &copy, Effect::Allow, Tri::Yes);
    let uncertain = call("read", vec![path(Role::Path, &[])]);
    says(
        "paths.all(p, true)",
        &uncertain,
        Effect::Allow,
        Tri::Unknown,
    );
    let many = (0..=LIST_MAX).map(|_| path(Role::Shape, &["/x"])).collect();
    says(
        "size(paths) > 0",
        &call("read", many),
        Effect::Deny,
        Tri::Unknown,
    );
    // Contents: an allow rule does not look at them, others do.
    let mut content = path(Role::Shape, &["/etc/x"]);
    content.content = true;
    let write = call("write", vec![path(Role::Path, &["/tmp/a"]), content]);
    says(
        "paths.all(p, p == '/tmp/a')",
        &write,
        Effect::Allow,
        Tri::Yes,
    );
    says(
        "paths.exists(p, p == '/etc/x')",
        &write,
        Effect::Deny,
        Tri::Yes,
    );
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    let long = format!("path == '{}'", "x".repeat(WHEN_BYTES_MAX));
    let deep = "(".repeat(BRACKETS_MAX + 1);
    let cases: [(&str, usize, &str); 14] = [
        ("tool_nam == 'x'", 0, "unknown fact \"tool_nam\""),
        ("true && pth == 'x'", 8, "unknown fact \"pth\""),
        ("paths.all(p, q == p)", 13, "unknown fact \"q\""),
        (
            "path.startswith('x')",
            15,
            "unknown function \"startswith\"",
        ),
        ("timestamp('x') == 1", 9, "unknown function \"timestamp\""),
        ("path ==", 7, "bad when: "),
        ("", 0, "when is blank"),
        (&long, 0, "when is longer than 1024 bytes"),
        (&deep, BRACKETS_MAX, "when has more than 64 brackets"),
        ("!!!!!!!!!true", 8, "when has more than 8 signs"),
        ("path.matches(tool_name)", 12, "has to be written out"),
        ("path.matches('(((')", 12, "bad pattern of matches"),
        (
            "path.matches('(a{999}){999}')",
            12,
            "bad pattern of matches",
        ),
        ("tool_name.map(c, c) == []", 13, "nobody knows how long"),
    ];
    for (text, at, message) in cases {
        let error = When::compile(text).expect_err(text);
        assert!(error.message.contains(message), "{text}: {error:?}");
        assert_eq!(error.at, at, "{text}: {error:?}");
    }
    let hint = When::compile("tool_nam == 'x'").unwrap_err().hint;
    assert_eq!(hint.as_deref(), Some("did you mean \"tool_name\"?"));
    let slow = "paths.all(a, paths.all(b, paths.all(c, a == b || b == c)))";
    let error = When::compile(slow).unwrap_err();
    assert!(error.message.contains("more than 8192 steps"), "{error:?}");
}

#[test]
fn nothing_within_the_bounds_ends_the_process() {
    let read = call("read_file", vec![path(Role::Path, &["/tmp/a"])]);
    let seen = Seen::new(&read);
    let fill = |piece: &str| piece.repeat(WHEN_BYTES_MAX / piece.len());
    let nested = |open: &str, close: &str| {
        format!(
            "{}path{}",
            open.repeat(BRACKETS_MAX),
            close.repeat(BRACKETS_MAX)
        )
    };
    let texts = [
        format!("{}1", fill("1+").get(..WHEN_BYTES_MAX - 2).unwrap()),
        format!("{}true", fill("true||").get(..1_014).unwrap()),
        format!("{}true", fill("true&&").get(..1_014).unwrap()),
        format!("path{}", fill(".a").get(..1_000).unwrap()),
        format!("{}true", "true?true:".repeat(CHOICES_MAX)),
        format!("{}true", "!".repeat(SIGNS_MAX)),
        format!("[{}1]", "1,".repeat(500)),
        nested("(", ")"),
        nested("[", "]"),
        nested("size(", ")"),
        "(".repeat(BRACKETS_MAX),
        "'".repeat(WHEN_BYTES_MAX),
        "\"\"\"".repeat(300),
        fill("a "),
        fill("%"),
        "\u{0}\u{202e}é".into(),
    ];
    for text in texts {
        if let Ok(when) = When::compile(&text) {
            let _ = when.holds(&seen, Effect::Deny);
        }
    }
}
