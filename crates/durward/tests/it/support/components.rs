//! The real components that `scripts/setup-tests` installs into `.cache`.

use std::path::{Path, PathBuf};

/// The repository root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The official MCP filesystem server from npm.
pub fn official_filesystem() -> Option<PathBuf> {
    component("npm/node_modules/.bin/mcp-server-filesystem")
}

/// A Python that can import FastMCP.
pub fn fastmcp_python() -> Option<PathBuf> {
    component("venv/bin/python")
}

/// Node 24, which the suite and the inspector want.
pub fn node() -> Option<PathBuf> {
    component("npm/node_modules/.bin/node")
}

/// The official inspector's start script.
pub fn inspector() -> Option<PathBuf> {
    component("npm/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")
}

/// The official conformance suite.
pub fn conformance_suite() -> Option<PathBuf> {
    component("npm/node_modules/@modelcontextprotocol/conformance")
}

/// The official everything server's script.
pub fn everything() -> Option<PathBuf> {
    component("clients-npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// The folder of the TypeScript SDK's packages, both of its lines.
pub fn client_packages() -> Option<PathBuf> {
    component("clients-npm/node_modules/@modelcontextprotocol/sdk")?;
    component("clients-npm")
}

/// A Python that can import openai-agents and langchain-mcp-adapters.
pub fn agents_python() -> Option<PathBuf> {
    component("clients-venv/bin/python")
}

/// A Python that can import openai and anthropic.
pub fn models_python() -> Option<PathBuf> {
    component("models-venv/bin/python")
}

/// A server that plays providers of models, which others wrote.
pub fn aimock() -> Option<PathBuf> {
    component("foreign-npm/node_modules/@copilotkit/aimock/dist/cli.js")
}

/// LiteLLM's proxy, which plays a provider of models.
pub fn litellm() -> Option<PathBuf> {
    component("litellm-venv/bin/litellm")
}

/// The fetch server, and httpx.
pub fn fetch_python() -> Option<PathBuf> {
    component("fetch-venv/bin/python")
}

/// The generator of requests from an OpenAPI document.
pub fn schemathesis() -> Option<PathBuf> {
    component("schemathesis-venv/bin/schemathesis")
}

/// A Python that can import opentelemetry-proto.
pub fn otel_python() -> Option<PathBuf> {
    component("otel-venv/bin/python")
}

/// A Python that can import botocore, AWS's own library.
pub fn aws_python() -> Option<PathBuf> {
    component("aws-venv/bin/python")
}

/// A Python that can import Google's own libraries, and Anthropic's for Vertex.
pub fn google_python() -> Option<PathBuf> {
    component("google-venv/bin/python")
}

/// The folder of the TypeScript libraries of model APIs.
pub fn models_packages() -> Option<PathBuf> {
    component("models-npm/node_modules/openai")?;
    component("models-npm")
}

/// The script that drives a library of model APIs.
pub fn models_driver(name: &str) -> PathBuf {
    repository()
        .join("crates/durward/tests/drivers/models")
        .join(name)
}

/// Keycloak's home, with the realms of the tests to import.
pub fn keycloak() -> Option<PathBuf> {
    component("keycloak/home/bin/kc.sh")?;
    component("keycloak/home")
}

/// The program on the Go SDK's client.
pub fn go_client() -> Option<PathBuf> {
    component("clients-go/client")
}

/// A Redis server of the test's own.
pub fn redis_server() -> Option<mocks::redis_server::RedisProcess> {
    component("redis/usr/bin/redis-server")?;
    mocks::redis_server::RedisProcess::start(&repository().join(".cache"), &[]).unwrap()
}

/// nginx, the system's own or Debian's.
pub fn nginx() -> Option<PathBuf> {
    let own = Path::new("/usr/sbin/nginx");
    if own.exists() {
        return Some(own.to_path_buf());
    }
    component("nginx/usr/sbin/nginx")
}

/// The script that drives a real client.
pub fn client_driver(name: &str) -> PathBuf {
    let drivers = repository().join("crates/durward/tests/drivers/clients");
    drivers.join(name)
}

/// Builds a program on Go's net/http that opens URLs; `None` with a word on standard error if there is no Go.
pub fn go_fetcher(binary: &Path) -> Option<PathBuf> {
    let built = std::process::Command::new("go")
        .args(["build", "-o"])
        .arg(binary)
        .arg("./fetcher")
        .current_dir(repository().join("scripts/differential/go"))
        .output();
    let Ok(output) = built else {
        assert!(std::env::var_os("CI").is_none(), "go is missing");
        eprintln!("skipped: go is missing");
        return None;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(binary.to_owned())
}

/// Whether the system has this program; its absence is told as that of a component.
pub fn installed(path: &str) -> bool {
    let is_there = Path::new(path).exists();
    assert!(
        is_there || std::env::var_os("CI").is_none(),
        "{path} is missing: run scripts/setup-tests"
    );
    if !is_there {
        eprintln!("skipped: {path} is missing: run scripts/setup-tests");
    }
    is_there
}

/// A component, or `None` with a word on standard error. Continuous integration has them all.
fn component(path: &str) -> Option<PathBuf> {
    let path = repository().join(".cache").join(path);
    if path.exists() {
        return Some(path);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "{} is missing: run scripts/setup-tests",
        path.display()
    );
    eprintln!(
        "skipped: {} is missing: run scripts/setup-tests",
        path.display()
    );
    None
}
