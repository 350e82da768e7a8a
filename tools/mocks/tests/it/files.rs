use crate::common::{Directory, ready};
use mcp::client::{Client, Era};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

const TOOLS: [&str; 10] = [
    "read_file",
    "write_file",
    "update_file",
    "list_files",
    "copy_path",
    "move_path",
    "delete_file",
    "delete_directory",
    "create_directory",
    "set_filesystem_default",
];

fn server(root: &Directory) -> Client {
    ready(&["files", "--root", root.text()], Era::Modern)
}

fn ok(client: &mut Client, tool: &str, arguments: Value) -> String {
    let reply = client.call_tool(tool, arguments.clone()).unwrap();
    assert!(
        !reply.is_tool_error(),
        "{tool} {arguments}: {}",
        reply.line()
    );
    reply.text().unwrap().to_owned()
}

fn refused(client: &mut Client, tool: &str, arguments: Value) -> String {
    let reply = client.call_tool(tool, arguments.clone()).unwrap();
    assert!(
        reply.is_tool_error(),
        "{tool} {arguments}: {}",
        reply.line()
    );
    reply.text().unwrap().to_owned()
}

#[test]
fn the_ten_tools_are_listed_with_schemas_and_annotations() {
    for era in Era::ALL {
        let directory = Directory::new();
        let mut client = ready(&["files", "--root", directory.text()], era);
        let reply = client.request("tools/list", json!({})).unwrap();
        let tools = reply.result().unwrap()["tools"].as_array().unwrap();
        let names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, TOOLS, "{era:?}");
        for tool in tools {
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object");
            assert_eq!(schema["additionalProperties"], false);
            for required in schema["required"].as_array().unwrap() {
                assert!(
                    schema["properties"][required.as_str().unwrap()].is_object(),
                    "{tool}"
                );
            }
            let read_only = ["read_file", "list_files"].contains(&tool["name"].as_str().unwrap());
            assert_eq!(tool["annotations"]["readOnlyHint"], read_only, "{tool}");
            assert!(
                tool["annotations"]["destructiveHint"].is_boolean(),
                "{tool}"
            );
        }
    }
}

#[test]
fn write_then_read_then_update() {
    let root = Directory::new();
    let mut client = server(&root);
    let path = root.join("a/b.txt");
    ok(
        &mut client,
        "write_file",
        json!({"path": path, "content": "one two two\n"}),
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "one two two\n");
    assert_eq!(
        ok(&mut client, "read_file", json!({"path": path})),
        "one two two\n"
    );
    ok(
        &mut client,
        "update_file",
        json!({"path": path, "blocks": [{"search": "two", "replace": "2"}, {"search": "one", "replace": "1"}]}),
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "1 2 two\n");
    ok(
        &mut client,
        "write_file",
        json!({"path": path, "content": "x x x"}),
    );
    ok(
        &mut client,
        "update_file",
        json!({"path": path, "blocks": [{"search": "x", "replace": "y"}], "replaceAll": true}),
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "y y y");
}

#[test]
fn an_update_whose_passage_is_missing_writes_nothing() {
    let root = Directory::new();
    let path = root.join("a.txt");
    fs::write(&path, "one two").unwrap();
    let mut client = server(&root);
    let blocks = json!([{"search": "one", "replace": "1"}, {"search": "three", "replace": "3"}]);
    let said = refused(
        &mut client,
        "update_file",
        json!({"path": path, "blocks": blocks}),
    );
    assert!(
        said.contains("block 2") && said.contains("nothing was written"),
        "{said}"
    );
    refused(
        &mut client,
        "update_file",
        json!({"path": path, "blocks": []}),
    );
    refused(
        &mut client,
        "update_file",
        json!({"path": path, "blocks": [{"search": "", "replace": "3"}]}),
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "one two");
}

#[test]
fn list_files_shows_one_level_or_all() {
    let root = Directory::new();
    fs::create_dir_all(root.path().join("d/e")).unwrap();
    for name in ["b", "a", "d/f", "d/e/g"] {
        fs::write(root.path().join(name), "").unwrap();
    }
    let mut client = server(&root);
    assert_eq!(
        ok(&mut client, "list_files", json!({"path": root.text()})),
        "a\nb\nd/"
    );
    assert_eq!(
        ok(
            &mut client,
            "list_files",
            json!({"path": ".", "includeNested": true})
        ),
        "a\nb\nd/\nd/e/\nd/e/g\nd/f"
    );
    refused(&mut client, "list_files", json!({"path": root.join("a")}));
}

#[test]
fn copy_and_move() {
    let root = Directory::new();
    fs::create_dir(root.path().join("d")).unwrap();
    fs::write(root.path().join("d/x"), "content").unwrap();
    let mut client = server(&root);
    ok(
        &mut client,
        "copy_path",
        json!({"source_path": "d/x", "destination_path": "y"}),
    );
    assert_eq!(fs::read_to_string(root.join("y")).unwrap(), "content");
    let said = refused(
        &mut client,
        "copy_path",
        json!({"source_path": "d", "destination_path": "e", "recursive": false}),
    );
    assert!(said.contains("set recursive"), "{said}");
    ok(
        &mut client,
        "copy_path",
        json!({"source_path": "d", "destination_path": "e"}),
    );
    assert_eq!(fs::read_to_string(root.join("e/x")).unwrap(), "content");
    let said = refused(
        &mut client,
        "copy_path",
        json!({"source_path": "d", "destination_path": "d/d"}),
    );
    assert!(said.contains("inside the source"), "{said}");
    refused(
        &mut client,
        "copy_path",
        json!({"source_path": "y", "destination_path": "y"}),
    );
    ok(
        &mut client,
        "move_path",
        json!({"source_path": "y", "destination_path": "e/z"}),
    );
    assert!(!root.path().join("y").exists() && root.path().join("e/z").exists());
}

#[test]
fn create_and_delete() {
    let root = Directory::new();
    let mut client = server(&root);
    refused(
        &mut client,
        "create_directory",
        json!({"path": "a/b", "create_parents": false}),
    );
    ok(&mut client, "create_directory", json!({"path": "a/b"}));
    ok(
        &mut client,
        "write_file",
        json!({"path": "a/b/c", "content": ""}),
    );
    let said = refused(&mut client, "delete_file", json!({"path": "a/b"}));
    assert!(said.contains("delete_directory"), "{said}");
    let said = refused(&mut client, "delete_directory", json!({"path": "a/b/c"}));
    assert!(said.contains("delete_file"), "{said}");
    refused(&mut client, "delete_directory", json!({"path": "a"}));
    ok(&mut client, "delete_file", json!({"path": "a/b/c"}));
    ok(&mut client, "delete_directory", json!({"path": "a/b"}));
    ok(&mut client, "create_directory", json!({"path": "a/x/y"}));
    ok(
        &mut client,
        "delete_directory",
        json!({"path": "a", "recursive": true}),
    );
    assert!(!root.path().join("a").exists());
    let said = refused(
        &mut client,
        "delete_directory",
        json!({"path": ".", "recursive": true}),
    );
    assert!(said.contains("is a root"), "{said}");
    assert!(root.path().exists());
}

#[test]
fn relative_paths_start_at_the_default() {
    let root = Directory::new();
    fs::create_dir(root.path().join("sub")).unwrap();
    fs::write(root.path().join("sub/f"), "in sub").unwrap();
    let mut client = server(&root);
    refused(&mut client, "read_file", json!({"path": "f"}));
    ok(
        &mut client,
        "set_filesystem_default",
        json!({"path": root.join("sub")}),
    );
    assert_eq!(ok(&mut client, "read_file", json!({"path": "f"})), "in sub");
    refused(&mut client, "set_filesystem_default", json!({"path": "f"}));
    refused(&mut client, "set_filesystem_default", json!({"path": "/"}));
}

#[test]
fn paths_outside_the_roots_are_refused_by_every_tool() {
    let root = Directory::new();
    let outside = Directory::new();
    let secret = outside.join("secret");
    fs::write(&secret, "secret").unwrap();
    fs::write(root.path().join("in"), "in").unwrap();
    symlink(outside.path(), root.path().join("link")).unwrap();
    symlink("/nowhere/at/all", root.path().join("dangling")).unwrap();
    let mut client = server(&root);
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    let tricks = [
        secret.clone(),
        format!("../{name}/secret"),
        root.join(&format!("../{name}/secret")),
        "link/secret".into(),
        root.join("link/./secret"),
    ];
    for path in tricks {
        for tool in [
            "read_file",
            "list_files",
            "delete_file",
            "delete_directory",
            "create_directory",
            "set_filesystem_default",
        ] {
            let said = refused(&mut client, tool, json!({"path": path}));
            assert!(said.contains("lies outside"), "{tool} {path}: {said}");
        }
        refused(
            &mut client,
            "write_file",
            json!({"path": path, "content": "owned"}),
        );
        refused(
            &mut client,
            "update_file",
            json!({"path": path, "blocks": [{"search": "secret", "replace": "owned"}]}),
        );
        for (source, destination) in [(path.as_str(), "in2"), ("in", path.as_str())] {
            refused(
                &mut client,
                "copy_path",
                json!({"source_path": source, "destination_path": destination}),
            );
            refused(
                &mut client,
                "move_path",
                json!({"source_path": source, "destination_path": destination}),
            );
        }
    }
    for path in ["", "a\u{0}b", "missing/../../x", "dangling"] {
        refused(
            &mut client,
            "write_file",
            json!({"path": path, "content": "x"}),
        );
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(fs::read_to_string(root.join("in")).unwrap(), "in");
}

#[test]
fn deleting_a_link_leaves_its_target() {
    let root = Directory::new();
    let outside = Directory::new();
    fs::write(outside.path().join("kept"), "kept").unwrap();
    symlink(outside.path().join("kept"), root.path().join("link")).unwrap();
    let mut client = server(&root);
    ok(&mut client, "delete_file", json!({"path": "link"}));
    assert!(outside.path().join("kept").exists());
    assert!(fs::symlink_metadata(root.path().join("link")).is_err());
}

#[test]
fn several_roots_and_any_root() {
    let (one, two) = (Directory::new(), Directory::new());
    fs::write(two.path().join("f"), "two").unwrap();
    let mut client = ready(
        &["files", "--root", one.text(), "--root", two.text()],
        Era::Legacy("2025-11-25"),
    );
    assert_eq!(
        ok(&mut client, "read_file", json!({"path": two.join("f")})),
        "two"
    );
    let mut client = ready(&["files", "--any-root"], Era::Legacy("2025-11-25"));
    assert_eq!(
        ok(&mut client, "read_file", json!({"path": two.join("f")})),
        "two"
    );
    let said = refused(&mut client, "delete_directory", json!({"path": "/"}));
    assert!(said.contains("is a root"), "{said}");
}

#[test]
fn what_cannot_be_read_as_text_says_so() {
    let root = Directory::new();
    fs::write(root.path().join("binary"), b"\xff\xfe").unwrap();
    fs::File::create(root.path().join("huge"))
        .unwrap()
        .set_len(4 * 1024 * 1024 + 1)
        .unwrap();
    let mut client = server(&root);
    for (path, complaint) in [
        ("binary", "not UTF-8"),
        ("huge", "longer than"),
        (".", "not a regular file"),
        ("none", "No such file"),
    ] {
        let said = refused(&mut client, "read_file", json!({"path": path}));
        assert!(said.contains(complaint), "{path}: {said}");
    }
}

#[test]
fn bad_arguments_are_tool_errors_in_every_tool() {
    let root = Directory::new();
    let mut client = server(&root);
    for tool in TOOLS {
        for arguments in [
            json!({}),
            json!({"path": 1}),
            json!({"path": "a", "source_path": "a", "destination_path": "b", "odd": 1}),
        ] {
            let said = refused(&mut client, tool, arguments);
            assert!(said.starts_with(&format!("{tool}: arguments: ")), "{said}");
        }
    }
}

#[test]
fn count_proves_what_arrived_before_it_acted() {
    let root = Directory::new();
    let count = root.join("count");
    let mut client = ready(
        &["files", "--root", root.text(), "--count", &count],
        Era::Modern,
    );
    // The counter is on disk before the tool runs, so the tool itself can read it.
    assert_eq!(
        ok(&mut client, "read_file", json!({"path": "count"})),
        "{\"name\":\"read_file\",\"arguments\":{\"path\":\"count\"}}\n"
    );
}
