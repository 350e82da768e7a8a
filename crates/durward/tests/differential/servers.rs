//! Servers on SDKs, each with the same two tools, each writing down what it executes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A server and how it is started.
pub struct Server {
    /// The SDK.
    pub name: &'static str,
    /// The words that start it over standard streams.
    pub command: Vec<String>,
}

fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

fn word(path: impl AsRef<Path>) -> String {
    path.as_ref().to_str().unwrap().to_owned()
}

/// Every server that can be had; continuous integration has them all.
pub fn all() -> Vec<Server> {
    let root = repository();
    let (scripts, cache) = (root.join("scripts/differential"), root.join(".cache"));
    let mut found = Vec::new();
    let mut add = |name, command: Option<Vec<String>>| match command {
        Some(command) => found.push(Server { name, command }),
        None => {
            assert!(
                std::env::var_os("CI").is_none(),
                "{name} is missing and CI wants it"
            );
            eprintln!("skipped: {name} is missing");
        }
    };
    for (name, package) in [("mcp-go", "mcpgo"), ("official Go SDK", "official")] {
        add(
            name,
            go(&scripts.join("go"), package).map(|binary| vec![binary]),
        );
    }
    let python = cache.join("venv/bin/python");
    let there = python.exists();
    add(
        "official Python SDK",
        there.then(|| vec![word(python), word(scripts.join("server.py"))]),
    );
    let (npm, node) = (cache.join("npm"), cache.join("npm/node_modules/.bin/node"));
    let there = npm.join("node_modules/@modelcontextprotocol/sdk").exists();
    add(
        "official TypeScript SDK",
        there.then(|| vec![word(node), word(scripts.join("server.mjs")), word(npm)]),
    );
    found
}

/// Builds a Go server; the versions are those of its `go.sum`.
fn go(folder: &Path, package: &str) -> Option<String> {
    let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join(package);
    let output = Command::new("go")
        .args(["build", "-o", &word(&binary), &format!("./{package}")])
        .current_dir(folder)
        .output()
        .ok()?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(word(binary))
}
