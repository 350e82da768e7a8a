//! Servers on SDKs, each with the same tools, each writing down what it executes.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use wire::Revision;

use crate::place::Place;

/// A server and how it is started.
pub struct Server {
    /// The SDK.
    pub name: &'static str,
    /// The words that start it over standard streams.
    pub command: Vec<String>,
    /// The newest revision that the SDK speaks; all speak the older ones.
    pub newest: Revision,
}

/// A server that listens; dropping it ends it.
pub struct Listening {
    child: Child,
    pub url: String,
}

impl Listening {
    /// Starts a server that listens where its first line says.
    pub fn of(server: &Server, place: &Place) -> Self {
        let (program, arguments) = server.command.split_first().unwrap();
        let mut child = place
            .command(program)
            .args(arguments)
            .arg("http")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        assert!(url.starts_with("http://"), "{}: {url:?}", server.name);
        Self { child, url }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
    let mut add = |name, newest, command: Option<Vec<String>>| match command {
        Some(command) => found.push(Server {
            name,
            command,
            newest,
        }),
        None => {
            assert!(
                std::env::var_os("CI").is_none(),
                "{name} is missing and CI wants it"
            );
            eprintln!("skipped: {name} is missing");
        }
    };
    let modern = Revision::V2026_07_28;
    for (name, package) in [("mcp-go", "mcpgo"), ("official Go SDK", "official")] {
        let binary = go(&scripts.join("go"), package);
        add(name, modern, binary.map(|binary| vec![binary]));
    }
    let python = cache.join("venv/bin/python");
    let there = python.exists();
    add(
        "official Python SDK",
        modern,
        there.then(|| vec![word(python), word(scripts.join("server.py"))]),
    );
    let (npm, node) = (cache.join("npm"), cache.join("npm/node_modules/.bin/node"));
    let versions = [
        ("TypeScript SDK 1", "1", "sdk", Revision::V2025_11_25),
        ("TypeScript SDK 2", "2", "server", modern),
    ];
    for (name, version, package, newest) in versions {
        let packages = npm.join("node_modules/@modelcontextprotocol");
        let command = [
            word(&node),
            word(scripts.join("server.mjs")),
            word(&npm),
            version.to_owned(),
        ];
        let there = packages.join(package).exists();
        add(name, newest, there.then(|| command.into()));
    }
    let java = cache.join("differential-java");
    let command = [
        "java".to_owned(),
        "-XX:TieredStopAtLevel=1".to_owned(),
        "-cp".to_owned(),
        format!(
            "{}:{}/*",
            word(java.join("classes")),
            word(java.join("libs"))
        ),
        "Differential".to_owned(),
    ];
    let there = java.join("stamp").exists();
    add(
        "official Java SDK",
        Revision::V2025_11_25,
        there.then(|| command.into()),
    );
    found
}

/// A server whose tools coerce strings.
pub struct CoercingServer {
    /// The SDK, and what coerces.
    pub name: &'static str,
    /// The words that start it over standard streams.
    pub command: Vec<String>,
    /// Tools that execute some call that is drawn for them.
    pub coerces: &'static [&'static str],
    /// The syntaxes that some tool of it reads and another syntax does not cover.
    pub syntaxes: &'static [&'static str],
}

/// Every server that coerces and can be had; continuous integration has them all.
pub fn coercing() -> Vec<CoercingServer> {
    let root = repository();
    let (scripts, cache) = (root.join("scripts/differential"), root.join(".cache"));
    let mut found = Vec::new();
    let mut add = |name, command: Option<Vec<String>>, coerces, syntaxes| match command {
        Some(command) => found.push(CoercingServer {
            name,
            command,
            coerces,
            syntaxes,
        }),
        None => {
            assert!(
                std::env::var_os("CI").is_none(),
                "{name} is missing and CI wants it"
            );
            eprintln!("skipped: {name} is missing");
        }
    };
    let python = cache.join("venv/bin/python");
    let python = python.exists().then(|| word(python));
    let script = word(scripts.join("coerced.py"));
    let own = ["json", "yaml", "python"].as_slice();
    add(
        "official Python SDK",
        python.clone().map(|python| vec![python, script.clone()]),
        &[
            "take_list",
            "take_map",
            "take_union",
            "take_yaml",
            "take_literal",
        ],
        own,
    );
    add(
        "FastMCP",
        python.map(|python| vec![python, script, "fastmcp".to_owned()]),
        &["take_json", "take_yaml", "take_literal"],
        own,
    );
    let (npm, node) = (cache.join("npm"), cache.join("npm/node_modules/.bin/node"));
    for (name, version) in [
        ("TypeScript SDK 1, zod", "1"),
        ("TypeScript SDK 2, zod", "2"),
    ] {
        let command = [
            word(&node),
            word(scripts.join("coerced.mjs")),
            word(&npm),
            version.to_owned(),
        ];
        let command = node.exists().then(|| command.into());
        let tools = ["take_list", "take_map", "take_union", "take_coerced"].as_slice();
        add(name, command, tools, &["json"]);
    }
    let binary = go(&scripts.join("go"), "coerced");
    let tools = ["take_list", "take_map", "take_union", "take_model"].as_slice();
    add(
        "mcp-go",
        binary.clone().map(|binary| vec![binary]),
        tools,
        &["json"],
    );
    let official = binary.map(|binary| vec![binary, "official".to_owned()]);
    add("official Go SDK", official, tools, &["json"]);
    let java = coercing_java(&scripts.join("java"), &cache.join("differential-java"));
    let tools = ["take_list", "take_map", "take_lenient", "take_yaml"].as_slice();
    add("Java SDK, Jackson", java, tools, &["json", "yaml"]);
    found
}

/// Compiles the Java server; `None` if there is no JDK or its packages are missing.
fn coercing_java(source: &Path, packages: &Path) -> Option<Vec<String>> {
    if !packages.join("stamp").exists() {
        return None;
    }
    let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("coerced-java");
    let libraries = format!("{}/*", word(packages.join("libs")));
    let output = Command::new("javac")
        .args(["-cp", &libraries, "-d", &word(&classes)])
        .arg(source.join("Coerced.java"))
        .output()
        .ok()?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let path = format!("{}:{libraries}", word(&classes));
    let words = ["java", "-XX:TieredStopAtLevel=1", "-cp", &path, "Coerced"];
    Some(words.map(str::to_owned).into())
}

/// A program on mcp-go's client that lists the tools of a server; none without Go.
pub fn lister() -> Option<String> {
    go(&repository().join("scripts/differential/go"), "lister")
}

/// A server on mcp-go with a tool that answers once it is told to; none without Go.
pub fn held() -> Option<Server> {
    let binary = go(&repository().join("scripts/differential/go"), "held")?;
    Some(Server {
        name: "mcp-go",
        command: vec![binary],
        newest: Revision::V2026_07_28,
    })
}

/// Builds a Go program; the versions are those of its `go.sum`.
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
