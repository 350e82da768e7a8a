//! A file with every key, and that each is read and shown.

use super::super::keys::KEYS;
use super::super::settings::Origin;
use super::settings;

/// Every key at once, each with another value than its default.
pub(super) const EVERYTHING: &str = r#"
listen: "[::1]:9000"
root: files
prefix: always
search_above: 200
require_key: true
share: caller
session_idle: 5m
lenient: true
threads: 3
servers:
  files:
    command: bin/server
    args: [-y, 8080, no, 012, 1e3, ~/x, "${DIR}/in", null-ish]
    env: { TOKEN: "${TOKEN}", PLAIN: "1" }
    cwd: ~/work
    transport: stdio
    policy: files.json
    call_timeout: 2m
    tool_timeout: { slow: 3m }
    processes_max: 3
    sandbox: { read: [~/in, "${DIR}/more"], write: [out], exec: [bin], network: none }
    pin: enforce
  docs:
    type: http
    url: https://docs.example/mcp
    headers: { X-Team: "${TOKEN}" }
    api_key: ${TOKEN}
    client_cert: c.pem
    client_key: k.pem
    ca: ca.pem
    insecure_http: true
identity:
  issuers: { company: { issuer: "https://id.example/realms/t", audiences: [gate], algorithms: [ES256], subject_claim: email, groups_claim: realm_access.roles, client_id: cli, scopes: [openid, "mcp:read"] } }
  public_url: "https://gate.example"
  required: true
  scopes: ["mcp:read"]
  skew: 30s
  lifetime_max: 2h
  keys_max: 3h
models:
  providers:
    far: { kind: openai, base_url: "https://far.example/v1", api_keys: ["${TOKEN}"], ca: ca.pem, models: [big], unsupported: refuse }
    near: { kind: mock, latency: 5ms }
    azure: { kind: azure, base_url: "https://own.openai.azure.com", api_version: 2025-01-01-preview, models: [big] }
    aws: { kind: bedrock, region: eu-west-3, access_key: "${TOKEN}", secret_key: "${TOKEN}", session_token: "${TOKEN}", models: [big] }
    vertex: { kind: vertex, location: europe-west4, project: p-1, token_file: token, models: [big] }
    google: { kind: vertex, location: eu, credentials: key.json, metadata: false, models: [big] }
  aliases: { smart: { tiers: [far/big, [near/a, near/b]], rotate: weighted, weights: { near/a: 3 }, overflow: [far/big], deadline: 9s } }
  prices: { far/big: { input: 1.25, output: 10, cached: 0.125, written: 1.5625, reasoning: 12.000001 }, azure/big: { input: 1, output: 1 }, aws/big: { input: 1, output: 1 }, vertex/big: { input: 1, output: 1 }, google/big: { input: 1, output: 1 } }
  budgets: { own: { tokens: 1000, window: 24h, per: group, groups: [dev] }, money: { cost: 2.50 }, calls: { requests: 7 } }
  deadline: 30s
  stall: 20s
  stream_max: 2h
  reserve: 100
  cache: { ttl: 30m, bytes: 1MiB, per: tenant }
  accounts: { register: open, requests: 30, admin_group: ops, servers: [files] }
patterns: { sober: { system: Think in order., encoding: native, tools: false } }
agents:
  helper: { model: smart, description: Helps, instruction: Help., pattern: sober, patterns: [react], aliases: [aid],
    toolsets: [{ server: files, tools: ["read_*"] }, { agent: checker }], permissions: { allow: ["files/read_*"], ask: ["files/write_*"], deny: ["*/delete_*"] }, max_iterations: 4,
    limits: { tool_calls: 3, time: 9s, tokens: 900, cost: 0.25, parallel: 2, tool_result_bytes: 1KiB },
    on_limit: error, show: none, parameters: { temperature: 0.5, top_p: 0.9, max_tokens: 50, reasoning: low, stop: [END] } }
  checker: { model: smart, instruction: Check. }
inspect: { keys: { secrets: [aws, jwt], on: requests, servers: [files], action: mask, labels: [private] },
  dlp: { checker: { url: "https://dlp.example/x", secret: 0123456789abcdef, deadline: 1s, unchecked: allow }, action: deny } }
policy: ${DIR}/policy.json
limits:
  requests: { rate: 90/m, burst: 7 }
  per_tool: { calls: 3, window: 5s, then: refuse, concurrency: 6 }
  concurrency: 2
  response_bytes: 64KiB
  request_bytes: 1MiB
  journal_bytes: 2MiB
approval: { timeout: 30s, remember: 0s, pending_max: 5, waiting_max: 2, per_minute: 9,
  notify: { bell: false, desktop: true, command: [tell, me], webhook: { url: "https://hooks.example/x", secret: 0123456789abcdef }, arguments: true } }
journal: { sync: every, verify: report, witness: heads.jsonl, warn_below: 2GiB, retain: 20GiB }
call_timeout: 90s
tool_timeout: { slow: 4m }
state_dir: ../state
confine: require
tls: { cert: /t/c.pem, key: /t/k.pem }
allowed_hosts: [gate.example, "gate.example:9000"]
allowed_origins: ["https://app.example"]
descriptions: { links: strip, length_max: 500 }
refusals: error
insecure_http: true
watch: false
breaker: { failures: 4, open: 2s, open_max: 1m }
pin: off
otel:
  endpoint: "https://otel.example:4318/"
  headers: { x-key: "${TOKEN}" }
  protocol: http/protobuf
  traces: false
  metrics: false
  sampling: 0.25
  timeout: 2s
  interval: 15s
  queue: 512
  service: gate
state: { url: "redis://me:${TOKEN}@store.example:6380/1", password: "${TOKEN}", prefix: gates, replica: a1, replicas: 3, on_loss: share }
"#;

#[test]
fn every_key_of_the_catalogue_is_read() {
    let read = settings(EVERYTHING).unwrap();
    let rows = read.rows();
    for key in KEYS
        .iter()
        .filter(|key| !key.path.contains('*') && key.path != "servers")
    {
        let row = rows.iter().find(|row| row.key == key.path);
        let row = row.unwrap_or_else(|| panic!("{} is not shown", key.path));
        assert!(
            matches!(row.origin, Origin::File(_)),
            "{} is not read",
            key.path
        );
        // There is one protocol.
        if key.path != "otel.protocol" {
            assert_ne!(row.value, key.default, "{}", key.path);
        }
    }
    for row in &rows {
        assert!(
            KEYS.iter().any(|key| key.path == row.key),
            "{} is not in the catalogue",
            row.key
        );
    }
    let shown: Vec<String> = rows.iter().map(|row| row.value.clone()).collect();
    assert_eq!(
        shown,
        [
            "[::1]:9000",
            "files",
            "always",
            "200",
            "true",
            "caller",
            "5m",
            "true",
            "3",
            "/srv/data/policy.json",
            "https://gate.example",
            "true",
            "mcp:read",
            "30s",
            "2h",
            "3h",
            "30s",
            "20s",
            "2h",
            "100",
            "open",
            "30",
            "ops",
            "files",
            "30m",
            "1MiB",
            "tenant",
            "keys mask, dlp deny",
            "90/m",
            "7",
            "3",
            "5s",
            "refuse",
            "6",
            "2",
            "64KiB",
            "1MiB",
            "2MiB",
            "30s",
            "0s",
            "5",
            "2",
            "9",
            "false",
            "true",
            "tell me",
            "hooks.example",
            "***",
            "true",
            "every",
            "report",
            "2GiB",
            "90s",
            "slow 4m",
            "error",
            "true",
            "4",
            "2s",
            "60s",
            "20GiB",
            "/etc/durward/heads.jsonl",
            "/etc/durward/../state",
            "require",
            "/t/c.pem",
            "/t/k.pem",
            "gate.example, gate.example:9000",
            "https://app.example",
            "strip",
            "500",
            "off",
            "false",
            "https://otel.example:4318/",
            "x-key: ***",
            "http/protobuf",
            "false",
            "false",
            "0.25",
            "2s",
            "15s",
            "512",
            "gate",
            "redis://store.example:6380/1",
            "***",
            "gates",
            "a1",
            "3",
            "share",
        ]
    );
}
