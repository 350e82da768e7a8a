use serde_json::json;

use super::*;

fn entry() -> Value {
    json!({ "command": "d", "args": ["run"] })
}

fn json_set(text: &str) -> Result<String, EditError> {
    Format::Json.set(text, &["mcpServers", "new"], &entry())
}

#[test]
fn empty_files_get_the_entry_alone() {
    let expect = "{\n  \"mcpServers\": {\n    \"new\": {\n      \"args\": [\"run\"],\n      \"command\": \"d\"\n    }\n  }\n}";
    for text in ["", " \n", "{}", "{}\n", "{\n}"] {
        assert_eq!(json_set(text).unwrap().trim(), expect, "{text:?}");
    }
}

#[test]
fn every_other_byte_stays() {
    let text = "// who\n{\n\t\"z\": 1, // one\n\t\"mcpServers\": {\n\t\t\"b\": {\"command\":  \"x\"}, /* last */\n\t\t\"a\": {},\n\t},\n\t\"y\": [1,\n2]\n}\n";
    let is = json_set(text).unwrap();
    for part in text.split("\"a\": {},\n") {
        assert!(is.contains(part), "{part:?} in {is}");
    }
}

#[test]
fn a_list_is_widened_and_narrowed_in_its_layout() {
    let old = json!(["-y", "x"]);
    let new = json!(["run", "--", "npx", "-y", "x"]);
    for (format, text) in [
        (
            Format::Json,
            "{\n  \"s\": {\n    \"args\": [\n      // yes\n      \"-y\",\n      \"x\" // the package\n    ]\n  }\n}\n",
        ),
        (Format::Json, "{\"s\": {\"args\": [\"-y\", \"x\"]}}"),
        (Format::Toml, "# top\n[s]\nargs = [ \"-y\", 'x' ] # both\n"),
        (
            Format::Toml,
            "[s]\nargs = [\n  \"-y\", # yes\n  \"x\",\n]\n",
        ),
        (
            Format::Yaml,
            "# top\ns:\n  args:\n  - -y\n  - x # the package\n  other: 1\n",
        ),
        (Format::Yaml, "s:\n    args:\n        - -y\n        - x\n"),
        (Format::Yaml, "s:\n  args: [\"-y\",\"x\"]\n"),
    ] {
        let wide = format.set(text, &["s", "args"], &new).unwrap();
        assert_ne!(wide, text);
        assert_eq!(
            format.set(&wide, &["s", "args"], &old).unwrap(),
            text,
            "{wide}"
        );
    }
}

#[test]
fn entries_are_added_to_each_format() {
    for (format, text, expect) in [
        (
            Format::Toml,
            "model = \"x\" # mine\n",
            "model = \"x\" # mine\n\n[mcp_servers.new]\nargs = [\"run\"]\ncommand = \"d\"\n",
        ),
        (
            Format::Yaml,
            "extensions:\n  a:\n    cmd: x\n\n# more\nother: 1\n",
            "extensions:\n  a:\n    cmd: x\n  new:\n    args: [\"run\"]\n    command: d\n\n# more\nother: 1\n",
        ),
        (
            Format::Yaml,
            "",
            "extensions:\n  new:\n    args: [\"run\"]\n    command: d\n",
        ),
    ] {
        let section = if format == Format::Toml {
            "mcp_servers"
        } else {
            "extensions"
        };
        assert_eq!(
            format.set(text, &[section, "new"], &entry()).unwrap(),
            expect
        );
    }
}

#[test]
fn what_cannot_be_edited_is_refused() {
    let deep = "[".repeat(100_000);
    for (format, text, part) in [
        (Format::Json, "{\"mcpServers\": {\"a\": }}", "line 1"),
        (Format::Json, "{'a': 1}", "not valid JSON"),
        (Format::Json, "{} x", "not valid JSON"),
        (Format::Json, "[]", "does not hold an object"),
        (
            Format::Json,
            "{\"mcpServers\": []}",
            "\"mcpServers\" is not an object",
        ),
        (
            Format::Json,
            "{\"mcpServers\": {}, \"mcpServers\": {}}",
            "given twice",
        ),
        (
            Format::Json,
            "{\"mcpServers\": {\"new\": 1, \"new\": 2}}",
            "given twice",
        ),
        (Format::Json, &deep, "not valid JSON"),
        (Format::Toml, "a = [\n", "not valid TOML"),
        (
            Format::Toml,
            "mcpServers = 1\n",
            "\"mcpServers\" is not an object",
        ),
        (Format::Toml, "a = 1\na = 2\n", "line 2"),
        (Format::Yaml, "a: [\n", "not valid YAML"),
        (Format::Yaml, "- a\n", "does not hold an object"),
        (
            Format::Yaml,
            "mcpServers: 1\n",
            "\"mcpServers\" is not an object",
        ),
        (
            Format::Yaml,
            "{mcpServers: {a: 1}}\n",
            "layout of this file",
        ),
    ] {
        let said = format
            .set(text, &["mcpServers", "new"], &entry())
            .unwrap_err()
            .to_string();
        assert!(said.contains(part), "{text:.60}: {said}");
    }
}
