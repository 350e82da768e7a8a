//! Names of servers, as rules, journal and wire know them.

use std::ffi::{OsStr, OsString};

/// Paths below `/mcp` that belong to no server.
const RESERVED: [&str; 4] = ["capabilities", "list_tools", "call_tool", "resources"];

/// Names become parts of tool names on the wire, where two underscores separate.
pub fn server_name(text: &str) -> Result<String, String> {
    let plain = !text.is_empty()
        && text.len() <= 64
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if RESERVED.contains(&text) {
        return Err(format!(
            "/mcp/{text} has a meaning of its own, so a server cannot be called \"{text}\""
        ));
    }
    if plain && !text.contains("__") && !text.ends_with('_') {
        Ok(text.to_owned())
    } else {
        Err("a server's name has 1 to 64 letters, digits, - _ or ., without a double underscore or an underscore at its end".into())
    }
}

/// A name of at most 64 letters, digits, dots and hyphens.
pub fn plain(text: &str) -> String {
    let character = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' {
            c
        } else {
            '-'
        }
    };
    text.chars().map(character).take(64).collect()
}

/// Names of files that say nothing of the server in them, and of folders around them.
const SAYS_NOTHING: [&str; 14] = [
    "index", "main", "server", "__main__", "cli", "app", "start", "run", "dist", "build", "src",
    "lib", "bin", "out",
];

/// The name that a word of a command has without directories, versions and extensions; of a file whose own name says
/// nothing, that of the nearest folder that does.
fn base(text: &OsStr) -> String {
    let text = text.to_string_lossy();
    let stem = |part: &str| {
        let name = part.split('@').find(|part| !part.is_empty());
        let name = name.unwrap_or_default();
        let ends = [".js", ".mjs", ".cjs", ".ts", ".py"];
        let end = ends.iter().find_map(|end| name.strip_suffix(end));
        end.unwrap_or(name).to_owned()
    };
    let mut parts = text.rsplit('/').map(stem);
    let own = parts.next().unwrap_or_default();
    let is_file = text.contains('/');
    if !is_file || !SAYS_NOTHING.contains(&own.as_str()) {
        return own;
    }
    let mut folders = parts.filter(|part| !part.is_empty() && part != "." && part != "..");
    let says = folders.find(|part| !SAYS_NOTHING.contains(&part.as_str()));
    says.unwrap_or(own)
}

/// The server's name out of its command: the last word that names a program or package, without
/// directories, versions and extensions.
pub fn of_command(program: &OsStr, arguments: &[OsString]) -> String {
    const RUNNERS: [&str; 9] = [
        "npx", "node", "python", "python3", "uvx", "uv", "bun", "deno", "pipx",
    ];
    let own = base(program);
    let named = if RUNNERS.contains(&own.as_str()) {
        arguments
            .iter()
            .find(|a| !a.to_string_lossy().starts_with('-'))
            .map_or(own, |a| base(a))
    } else {
        own
    };
    let mut clean = plain(&named);
    if clean.is_empty() {
        clean = "server".into();
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_commands() {
        let cases = [
            (
                &[
                    "npx",
                    "-y",
                    "@modelcontextprotocol/server-filesystem",
                    "/tmp",
                ][..],
                "server-filesystem",
            ),
            (&["npx", "server-x@1.2.3"], "server-x"),
            (&["/usr/bin/my_server"], "my-server"),
            (&["python3", "dir/echo.py"], "echo"),
            (&["node", "/srv/github-tools/dist/index.js"], "github-tools"),
            (&["node", "../weather/src/server/main.mjs"], "weather"),
            (&["python", "notes/__main__.py"], "notes"),
            (&["node", "index.js"], "index"),
            (&["node", "./dist/index.js"], "index"),
            (&["node"], "node"),
        ];
        for (command, name) in cases {
            let words: Vec<OsString> = command.iter().map(OsString::from).collect();
            assert_eq!(of_command(&words[0], &words[1..]), name);
        }
    }
}
