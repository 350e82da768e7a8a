//! The file server of the tour: ten tools over standard streams, as a process that `durward run` guards.
//!
//! It does what it is asked with any path, as a careless server would: what keeps the agent from files is the gate.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use net::blocking::{FRAME_BYTES_MAX, Line, Lines};
use serde_json::{Value, json};

/// The hidden command that runs it.
pub const SERVER_COMMAND: &str = "__demo-files";
/// The longest file that is read, in bytes.
const READ_BYTES_MAX: u64 = 1024 * 1024;
/// JSON-RPC: there is no such method.
const UNKNOWN_METHOD: i64 = -32_601;

/// A tool of the server.
struct FileTool {
    name: &'static str,
    description: &'static str,
    arguments: &'static [&'static str],
    is_read_only: bool,
}

const TOOLS: [FileTool; 10] = [
    reader("read_file", "Returns the text of a file.", &["path"]),
    reader("list_files", "Lists a directory.", &["path"]),
    reader("echo", "Returns its text.", &["text"]),
    writer(
        "write_file",
        "Replaces the content of a file.",
        &["path", "content"],
    ),
    writer(
        "append_file",
        "Adds to the end of a file.",
        &["path", "content"],
    ),
    writer("copy_path", "Copies a file.", MOVED),
    writer("move_path", "Renames a file or directory.", MOVED),
    writer(
        "create_directory",
        "Makes a directory and those above it.",
        &["path"],
    ),
    writer("delete_file", "Deletes a file.", &["path"]),
    writer("delete_directory", "Deletes an empty directory.", &["path"]),
];

/// The arguments of a tool that moves something.
const MOVED: &[&str] = &["source_path", "destination_path"];

const fn reader(
    name: &'static str,
    description: &'static str,
    arguments: &'static [&'static str],
) -> FileTool {
    FileTool {
        name,
        description,
        arguments,
        is_read_only: true,
    }
}

const fn writer(
    name: &'static str,
    description: &'static str,
    arguments: &'static [&'static str],
) -> FileTool {
    FileTool {
        is_read_only: false,
        ..reader(name, description, arguments)
    }
}

/// Serves until the input ends.
///
/// # Errors
/// When standard input or output fails.
pub fn serve() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut lines = Lines::new(FRAME_BYTES_MAX);
    loop {
        match lines.next_line() {
            Line::Frame(frame) => {
                if let Some(answer) = answer(frame) {
                    let mut text = answer.to_string();
                    text.push('\n');
                    output.write_all(text.as_bytes())?;
                    output.flush()?;
                }
            }
            // Nobody can be answered: the id is in what was dropped.
            Line::TooLong => {}
            Line::Incomplete => {
                if lines.fill(&mut input)? == 0 {
                    return Ok(());
                }
            }
        }
    }
}

/// Returns the answer to a frame; nothing for a notification, and for what is no request.
fn answer(frame: &[u8]) -> Option<Value> {
    let request: Value = serde_json::from_slice(frame).ok()?;
    let id = request.get("id")?;
    let method = request.get("method").and_then(Value::as_str)?;
    let params = request.get("params").unwrap_or(&Value::Null);
    let result = match method {
        "initialize" => json!({
            "protocolVersion": params.get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "demo-files", "version": env!("CARGO_PKG_VERSION")},
        }),
        "ping" => json!({}),
        "tools/list" => json!({"tools": TOOLS.iter().map(describe).collect::<Vec<Value>>()}),
        "tools/call" => {
            let (text, is_error) = match call_tool(params) {
                Ok(text) => (text, false),
                Err(text) => (text, true),
            };
            json!({"content": [{"type": "text", "text": text}], "isError": is_error})
        }
        _ => {
            let error = json!({"code": UNKNOWN_METHOD, "message": format!("no method {method}")});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn describe(tool: &FileTool) -> Value {
    let arguments = tool.arguments.iter();
    let properties: serde_json::Map<String, Value> = arguments
        .map(|name| ((*name).to_owned(), json!({"type": "string"})))
        .collect();
    json!({
        "name": tool.name,
        "description": tool.description,
        "annotations": {
            "readOnlyHint": tool.is_read_only,
            "destructiveHint": !tool.is_read_only,
            "idempotentHint": tool.is_read_only,
            "openWorldHint": false,
        },
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": tool.arguments,
            "additionalProperties": false,
        },
    })
}

fn call_tool(params: &Value) -> Result<String, String> {
    let name = params
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let argument = |name: &str| {
        let found = params.pointer(&format!("/arguments/{name}"));
        let found = found.and_then(Value::as_str);
        found.ok_or_else(|| format!("the argument {name} is missing"))
    };
    let path = || argument("path").map(Path::new);
    let failed = |error: io::Error| error.to_string();
    let done = match name {
        "echo" => return argument("text").map(str::to_owned),
        "read_file" => return read_file(path()?).map_err(failed),
        "list_files" => return list_files(path()?).map_err(failed),
        "write_file" => fs::write(path()?, argument("content")?),
        "append_file" => {
            let (path, content) = (path()?, argument("content")?);
            let opened = fs::OpenOptions::new().append(true).create(true).open(path);
            opened.and_then(|mut file| file.write_all(content.as_bytes()))
        }
        "copy_path" => fs::copy(argument("source_path")?, argument("destination_path")?).map(drop),
        "move_path" => fs::rename(argument("source_path")?, argument("destination_path")?),
        "create_directory" => fs::create_dir_all(path()?),
        "delete_file" => fs::remove_file(path()?),
        "delete_directory" => fs::remove_dir(path()?),
        _ => return Err(format!("there is no tool {name}")),
    };
    done.map(|()| "done".to_owned()).map_err(failed)
}

fn read_file(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > READ_BYTES_MAX {
        return Err(io::Error::other("the file is longer than 1 MiB"));
    }
    fs::read_to_string(path)
}

fn list_files(path: &Path) -> io::Result<String> {
    let mut names = fs::read_dir(path)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<String>>>()?;
    names.sort_unstable();
    Ok(names.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &Value) -> (String, bool) {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}});
        let answer = answer(request.to_string().as_bytes()).unwrap();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        (text.to_owned(), answer["result"]["isError"] == true)
    }

    #[test]
    fn every_tool_does_what_it_is_called() {
        let folder = std::env::temp_dir().join(format!("demo-server-{}", std::process::id()));
        let of = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let done = ("done".to_owned(), false);
        assert_eq!(call("create_directory", &json!({"path": of("d")})), done);
        let write = json!({"path": of("a"), "content": "x"});
        assert_eq!(call("write_file", &write), done);
        assert_eq!(call("append_file", &write), done);
        assert_eq!(
            call("read_file", &json!({"path": of("a")})),
            ("xx".into(), false)
        );
        let two =
            |from: &str, to: &str| json!({"source_path": of(from), "destination_path": of(to)});
        assert_eq!(call("copy_path", &two("a", "b")), done);
        assert_eq!(call("move_path", &two("b", "c")), done);
        let list = json!({"path": folder.to_str()});
        assert_eq!(call("list_files", &list), ("a\nc\nd".into(), false));
        assert_eq!(call("delete_directory", &json!({"path": of("d")})), done);
        assert_eq!(call("delete_file", &json!({"path": of("a")})), done);
        assert_eq!(call("list_files", &list), ("c".into(), false));
        assert!(call("read_file", &json!({"path": of("a")})).1);
        assert!(call("read_file", &json!({})).1 && call("nothing", &json!({})).1);
        assert_eq!(
            call("echo", &json!({"text": "hello"})),
            ("hello".into(), false)
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_no_request_gets_no_answer_and_an_unknown_method_an_error() {
        for frame in ["", "[]", r#"{"method":"ping"}"#, r#"{"id":1}"#] {
            assert_eq!(answer(frame.as_bytes()), None, "{frame}");
        }
        let unknown = answer(br#"{"id":1,"method":"server/discover"}"#).unwrap();
        assert_eq!(unknown["error"]["code"], UNKNOWN_METHOD);
        let listed = answer(br#"{"id":"a","method":"tools/list"}"#).unwrap();
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 10);
    }
}
