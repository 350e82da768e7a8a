use std::collections::HashMap;

use super::*;
use crate::paths::Meaning;
use crate::paths::view::Link;

/// Files by their place.
struct Files(HashMap<&'static str, FileText>);

impl PathView for Files {
    fn home(&self) -> Option<String> {
        None
    }

    fn current_dir(&self) -> Option<String> {
        None
    }

    fn read_link(&self, _: &str) -> Link {
        Link::Missing
    }

    fn read_text(&self, path: &str, _: usize) -> FileText {
        self.0.get(path).cloned().unwrap_or(FileText::Missing)
    }
}

fn call(tool: &str, places: &[&str]) -> Facts {
    let argument = PathArgument {
        text: places[0].to_owned(),
        role: Role::Path,
        content: false,
        meaning: Meaning {
            places: places.iter().map(|place| (*place).to_owned()).collect(),
            ..Meaning::default()
        },
    };
    Facts {
        tool_name: Fact::Known(tool.to_owned()),
        paths: Fact::Known(vec![argument]),
        ..Facts::default()
    }
}

fn shown(tool: &str, arguments: &str) -> Vec<String> {
    let files = Files(HashMap::from([
        ("/a", FileText::Text("one\ntwo\nthree\n".to_owned())),
        ("/bin", FileText::Binary),
        ("/long", FileText::TooLong),
        ("/dir", FileText::NotAFile),
        ("/shut", FileText::Unreadable),
        // What a link is to a view that follows none.
        ("/link", FileText::NotAFile),
    ]));
    let value: serde_json::Value = serde_json::from_str(arguments).unwrap();
    let path = value["path"].as_str().unwrap();
    let places: &[&str] = if path == "/link" {
        &["/link", "/a"]
    } else {
        &[path]
    };
    let change = of(&call(tool, places), arguments, Some(&files), None);
    change.map(|change| change.lines).unwrap_or_default()
}

#[test]
fn a_write_is_shown_against_what_stands_there() {
    let cases: [(&str, &str, &[&str]); 12] = [
        (
            "write_file",
            r#"{"path":"/a","content":"one\n2\nthree\n"}"#,
            &[
                "/a: 1 line removed, 1 added",
                " one",
                "-two",
                "+2",
                " three",
            ],
        ),
        (
            "write_file",
            r#"{"path":"/link","content":"one\ntwo\n"}"#,
            &["/a: 1 line removed, 0 added", " one", " two", "-three"],
        ),
        (
            "write_file",
            r#"{"path":"/new","content":"x\u202ey\n"}"#,
            &["/new: a new file, 0 lines removed, 1 added", "+x\\u{202e}y"],
        ),
        (
            "write_file",
            r#"{"path":"/a","content":"one\ntwo\nthree\n"}"#,
            &["/a: nothing would change"],
        ),
        (
            "write_file",
            r#"{"path":"/bin","content":"x"}"#,
            &["/bin: what is there is no text, and would be replaced or changed"],
        ),
        (
            "write_file",
            r#"{"path":"/long","content":"x"}"#,
            &["/long: the file is longer than 256 KiB, and no difference is shown"],
        ),
        (
            "write_file",
            r#"{"path":"/dir","content":"x"}"#,
            &["/dir: there is something there that is not a file"],
        ),
        (
            "write_file",
            r#"{"path":"/shut","content":"x"}"#,
            &["/shut: the file cannot be read here, and no difference is shown"],
        ),
        (
            "edit_file",
            r#"{"path":"/a","edits":[{"oldText":"one\n","newText":""},{"oldText":"three","newText":"3"}]}"#,
            &[
                "/a: 2 lines removed, 1 added",
                "-one",
                " two",
                "-three",
                "+3",
            ],
        ),
        (
            "edit_file",
            r#"{"path":"/a","edits":[{"oldText":"four","newText":""}]}"#,
            &["/a: a text that would be replaced does not stand in the file as it is"],
        ),
        (
            "append_file",
            r#"{"path":"/a","content":"four"}"#,
            &[
                "/a: 0 lines removed, 1 added",
                "@ line 2",
                " two",
                " three",
                "+four",
            ],
        ),
        ("read_file", r#"{"path":"/a"}"#, &[]),
    ];
    for (tool, arguments, expected) in cases {
        assert_eq!(shown(tool, arguments), expected, "{tool} {arguments}");
    }
}

#[test]
fn what_is_too_long_to_be_shown_is_said() {
    let text = "line\n".repeat(LINES_MAX + 5);
    let arguments = serde_json::json!({"path": "/new", "content": text}).to_string();
    let files = Files(HashMap::new());
    let change = of(
        &call("write_file", &["/new"]),
        &arguments,
        Some(&files),
        None,
    )
    .unwrap();
    assert!(change.is_cut);
    assert_eq!(change.lines.last().unwrap(), "…[5 more lines not shown]");
    let far = of(&call("write_file", &["/new"]), &arguments, None, None).unwrap();
    assert_eq!(
        far.lines,
        ["/new: the file is the server's own and cannot be read from here"]
    );
}

#[test]
fn what_is_replaced_in_a_file_elsewhere_is_shown_without_the_file() {
    let edits = r#"{"path":"/etc/x","edits":[{"old_text":"a\nb\n","new_text":"a\nc\n"},{"old_text":"d","new_text":""}]}"#;
    let change = of(&call("ssh_edit_file", &["/etc/x"]), edits, None, None).unwrap();
    assert_eq!(
        change.lines,
        [
            "/etc/x: 2 texts of the file replaced, 2 lines removed, 1 added",
            " a",
            "-b",
            "+c",
            "-d",
        ]
    );
}

#[test]
fn a_file_that_its_server_has_looked_up_is_shown_beside_what_takes_its_place() {
    let text = |text: &str| FileText::Text(text.to_owned());
    let shown = |old: FileText, new: FileText| {
        let place = "/etc/x".to_owned();
        let seen = Seen {
            place,
            old,
            new,
            digest: None,
        };
        // The arguments name files alone.
        let arguments = r#"{"path":"/etc/x","local":"drop/x"}"#;
        of(&call("ssh_put", &["/etc/x"]), arguments, None, Some(&seen))
            .unwrap()
            .lines
    };
    let lines = shown(text("one\ntwo\n"), text("one\n2\n"));
    let both = ["/etc/x: 1 line removed, 1 added", " one", "-two", "+2"];
    assert_eq!(lines, both);
    let lines = shown(FileText::Missing, text("one\n"));
    assert_eq!(
        lines,
        ["/etc/x: a new file, 0 lines removed, 1 added", "+one"]
    );
    for (old, new, wanted) in [
        (text("a"), text("a"), "nothing would change"),
        (FileText::Binary, text("a"), "what is there is no text"),
        (FileText::TooLong, text("a"), "no difference is shown"),
        (
            FileText::Unreadable,
            text("a"),
            "the file cannot be read here",
        ),
        (
            text("a"),
            FileText::Binary,
            "what would be written is not text",
        ),
        (
            text("a"),
            FileText::TooLong,
            "what would be written is longer",
        ),
        (
            text("a"),
            FileText::Unreadable,
            "what would be written cannot be read",
        ),
    ] {
        let lines = shown(old, new);
        assert!(lines.len() == 1 && lines[0].contains(wanted), "{lines:?}");
    }
}
