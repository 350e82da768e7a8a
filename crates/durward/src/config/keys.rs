//! Every key of `durward.yaml`: what it takes, its default, what it is for. The reader refuses what
//! is not listed here, and the reference page is printed from it.

use std::io::{self, Write};

use crate::builtin;

/// One key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Where it stands; `*` is a server's name.
    pub path: &'static str,
    /// What it takes.
    pub form: &'static str,
    /// What holds without it; empty where there is nothing.
    pub default: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Whether a change is taken up while running.
    pub live: bool,
}

/// The other name of `servers`, as MCP clients have it.
pub const SERVERS_ALIAS: &str = "mcpServers";

/// Keys of parts that are still to come, and what they will be for.
pub const LATER: [(&str, &str); 2] = [
    ("agents", "agents as models"),
    ("state", "where counters and sessions are kept"),
];

const fn key(
    path: &'static str,
    form: &'static str,
    default: &'static str,
    about: &'static str,
) -> Key {
    Key {
        path,
        form,
        default,
        about,
        live: false,
    }
}

const fn live(
    path: &'static str,
    form: &'static str,
    default: &'static str,
    about: &'static str,
) -> Key {
    Key {
        path,
        form,
        default,
        about,
        live: true,
    }
}

/// All keys, in the order of the reference page.
pub const KEYS: &[Key] = &[
    key(
        "listen",
        "address:port, or unix:PATH",
        "127.0.0.1:8765",
        "where `durward serve` listens",
    ),
    key(
        "servers",
        "a map of servers by name",
        "",
        "the servers that `durward run NAME` and `durward serve` guard; also written `mcpServers`",
    ),
    key("servers.*.command", "text", "", "the program to start"),
    key("servers.*.args", "a list of texts", "none", "its arguments"),
    key(
        "servers.*.env",
        "a map of texts",
        "none",
        "variables that it gets besides the usual ones; a value may be `${NAME}`",
    ),
    key(
        "servers.*.cwd",
        "path",
        "where Durward was started",
        "the directory it is started in",
    ),
    key(
        "servers.*.url",
        "http or https URL",
        "",
        "where a server is reached over Streamable HTTP",
    ),
    key(
        "servers.*.builtin",
        "the name of a built-in server",
        "",
        "a server inside Durward: no process, no address; below",
    ),
    key(
        "servers.*.headers",
        "a map of texts",
        "none",
        "header fields sent with every request to it",
    ),
    key(
        "servers.*.api_key",
        "text",
        "none",
        "sent as `Authorization: Bearer`; write `${NAME}`, not the key itself",
    ),
    key(
        "servers.*.client_cert",
        "path",
        "none",
        "certificate shown to the server (PEM), with `client_key`",
    ),
    key(
        "servers.*.client_key",
        "path",
        "none",
        "its private key (PEM)",
    ),
    key(
        "servers.*.ca",
        "path",
        "the system's",
        "authorities that the server's certificate is checked against (PEM)",
    ),
    key(
        "servers.*.transport",
        "auto, stdio, http or builtin",
        "by what is given",
        "how the server is reached; `auto` tries `url` first, then `command`",
    ),
    key(
        "servers.*.type",
        "stdio or http",
        "",
        "what MCP clients call `transport`",
    ),
    live(
        "servers.*.policy",
        "path",
        "that of `policy`",
        "rules for this server alone",
    ),
    key(
        "servers.*.call_timeout",
        "span of time",
        "that of `call_timeout`",
        "for this server alone",
    ),
    key(
        "servers.*.tool_timeout",
        "a map of spans of time by tool",
        "that of `tool_timeout`, else the server's",
        "for single tools of this server",
    ),
    key(
        "servers.*.processes_max",
        "number",
        "32",
        "most processes of it at once under `durward serve`; for one more, the one that was idle for the longest time is ended",
    ),
    key(
        "servers.*.arguments",
        "a map of path, source, destination or content by argument, or by `TOOL.ARGUMENT`",
        "by names and schemas",
        "what the server's arguments are, where neither their names nor the tools' schemas tell",
    ),
    key(
        "servers.*.relative_to",
        "path",
        "any directory",
        "the directory that the server resolves relative paths against; without it a relative path is taken for one below any directory",
    ),
    key(
        "servers.*.sandbox.read",
        "a list of paths",
        "none",
        "directories that the server can read; with any key of `sandbox` it reaches nothing else but the system's own",
    ),
    key(
        "servers.*.sandbox.write",
        "a list of paths",
        "none",
        "directories that it can read and write",
    ),
    key(
        "servers.*.sandbox.exec",
        "a list of paths",
        "none",
        "directories that it can start programs from, besides the system's own",
    ),
    key(
        "servers.*.sandbox.network",
        "none or all",
        "all",
        "whether it has a network",
    ),
    key(
        "servers.*.pin",
        "off, warn or enforce",
        "that of `pin`",
        "for this server alone",
    ),
    live(
        "servers.*.labels",
        "a list of untrusted and private",
        "none",
        "labels that a caller's session gets with whatever the server says: rules can ask for them as `session_labels`",
    ),
    live(
        "servers.*.tool_labels",
        "a map of untrusted, private, untrusted+private or none by tool",
        "those of `labels`",
        "the same for the results of single tools",
    ),
    key(
        "models.providers.*.kind",
        "openai, anthropic, google, azure, mistral, deepseek, groq, cerebras, sambanova, cohere, local or mock",
        "",
        "whose API it is; `openai` with a `base_url` is any API like OpenAI's, `local` is one on this machine, and `mock` answers by a script, without a network",
    ),
    key(
        "models.providers.*.base_url",
        "http or https URL",
        "the API's own; `azure` has none",
        "what stands in front of `/chat/completions`, `/messages`, `/models/NAME:generateContent` or `/openai/deployments`",
    ),
    key(
        "models.providers.*.api_version",
        "text",
        "2024-10-21",
        "of `azure`: the version of its API",
    ),
    key(
        "models.providers.*.api_key",
        "text",
        "none",
        "the key that the provider is shown; write `${NAME}`, not the key itself",
    ),
    key(
        "models.providers.*.api_keys",
        "a list of texts",
        "none",
        "several keys: calls go round among them, and one that the provider does not take any more is left out",
    ),
    key(
        "models.providers.*.ca",
        "path",
        "the system's",
        "authorities that the provider's certificate is checked against (PEM)",
    ),
    key(
        "models.providers.*.models",
        "a list of texts",
        "any",
        "its models; no other name is passed on, and these are listed",
    ),
    key(
        "models.providers.*.latency",
        "span of time",
        "10ms",
        "of a `mock`: the time before each token",
    ),
    key(
        "models.aliases.*.tiers",
        "a list of targets, or of lists of targets",
        "",
        "where the name leads: PROVIDER/MODEL or another alias; one tier is used up before the next one is tried",
    ),
    key(
        "models.aliases.*.rotate",
        "none, round_robin, weighted, least_latency, cheapest or least_busy",
        "none",
        "where each call begins within a tier",
    ),
    key(
        "models.aliases.*.weights",
        "a map of targets to whole numbers",
        "1 each",
        "of `rotate: weighted`: how many of so many calls begin with each target; 0 where it is only for when others fail",
    ),
    key(
        "models.aliases.*.deadline",
        "span of time",
        "that of `models.deadline`",
        "for this name alone",
    ),
    key(
        "models.deadline",
        "span of time",
        "600s",
        "how long all attempts of a call together may take until a stream begins, or the whole reply is there",
    ),
    key(
        "models.stall",
        "span of time",
        "120s",
        "how long a stream may say nothing once it has begun",
    ),
    key(
        "models.stream_max",
        "span of time",
        "1h",
        "how long a stream may last",
    ),
    key(
        "models.prices.*.input",
        "dollars",
        "",
        "of a model (PROVIDER/MODEL, or its name at every provider): dollars for a million tokens that it reads",
    ),
    key(
        "models.prices.*.output",
        "dollars",
        "",
        "dollars for a million tokens that it writes",
    ),
    key(
        "models.prices.*.cached",
        "dollars",
        "that of `input`",
        "dollars for a million tokens that it reads from the provider's cache",
    ),
    key(
        "models.prices.*.written",
        "dollars",
        "that of `input`",
        "dollars for a million tokens that are put into the provider's cache",
    ),
    key(
        "models.prices.*.reasoning",
        "dollars",
        "that of `output`",
        "dollars for a million tokens that it thinks with",
    ),
    key(
        "models.budgets.*.cost",
        "dollars",
        "",
        "instead of `tokens`: what calls may cost within a window, by `models.prices`",
    ),
    key(
        "models.budgets.*.tokens",
        "number",
        "",
        "tokens that may be read and written within a window; a call reserves the most that it may use, and gives the rest back",
    ),
    key(
        "models.budgets.*.window",
        "span of time",
        "one that never ends",
        "the length of a window; windows begin at its multiples since 1970 (UTC)",
    ),
    key(
        "models.budgets.*.per",
        "caller, group or all",
        "caller",
        "whether each caller has the whole budget, or the callers of a group or all of them share it",
    ),
    key(
        "models.budgets.*.groups",
        "a list of texts",
        "all callers",
        "callers of these groups only",
    ),
    key(
        "models.accounts.register",
        "closed or open",
        "closed",
        "who may make an account at /v1/auth/register: administrators only (at /admin/users), or whoever reaches the server",
    ),
    key(
        "models.accounts.requests",
        "number",
        "60",
        "calls to models that a user may make in a minute, where the account has no budget of requests; 0: no bound",
    ),
    key(
        "models.accounts.admin_group",
        "text",
        "admin",
        "keys of this group (`durward keys create NAME --group GROUP`) may see to accounts, as users with the role admin may",
    ),
    key(
        "models.accounts.servers",
        "a list of servers",
        "none",
        "servers that the tokens of accounts are good for as well",
    ),
    key(
        "models.reserve",
        "number",
        "16384",
        "tokens that are reserved for a reply where the request names no most",
    ),
    live(
        "inspect",
        "a map of rules by name",
        "nothing is looked for",
        "what is looked for in requests and results, and what is done where it is found; the rule's name stands in the place of what is masked",
    ),
    live(
        "inspect.*.secrets",
        "all, or a list of kinds",
        "",
        "secrets of these kinds; below",
    ),
    live(
        "inspect.*.patterns",
        "a list of regular expressions",
        "",
        "whatever matches one of them; at most 64, of 1024 bytes each",
    ),
    live(
        "inspect.*.on",
        "requests, results or both",
        "both",
        "which messages are looked at; with `results` also what else a server says",
    ),
    live(
        "inspect.*.servers",
        "a list of servers",
        "all",
        "for these servers only",
    ),
    live(
        "inspect.*.action",
        "mask, deny, ask or label",
        "",
        "the match is replaced, the message is refused, a person is asked, or the session is labelled and nothing else",
    ),
    live(
        "inspect.*.labels",
        "a list of untrusted and private",
        "none",
        "labels that the session gets where something is found",
    ),
    live("policy", "path", "the starter policy", "the rules"),
    live(
        "limits.requests.rate",
        "rate",
        "50/s",
        "calls and lists of one caller, over all sessions",
    ),
    live(
        "limits.requests.burst",
        "number",
        "200",
        "how many may come at once",
    ),
    live(
        "limits.per_tool.calls",
        "number",
        "600",
        "calls of one tool by one caller within `window`, over all sessions",
    ),
    live(
        "limits.per_tool.window",
        "span of time",
        "60s",
        "the window of `calls`",
    ),
    live(
        "limits.per_tool.then",
        "hitl or refuse",
        "hitl",
        "what a breach leads to: a person is asked, or the call is refused",
    ),
    live(
        "limits.concurrency",
        "number",
        "256",
        "calls of one caller under way at once, over all sessions",
    ),
    live(
        "limits.response_bytes",
        "size",
        "16MiB",
        "the longest reply that is passed on",
    ),
    live(
        "limits.request_bytes",
        "size",
        "16MiB",
        "the longest message of a client that is taken, 64KiB to 128MiB",
    ),
    live(
        "approval.timeout",
        "span of time",
        "50s",
        "how long a call waits for a person; silence is no",
    ),
    live(
        "approval.remember",
        "span of time",
        "10m",
        "how long \"allow\" holds",
    ),
    live(
        "approval.pending_max",
        "number",
        "1000",
        "calls that may wait at once",
    ),
    live(
        "approval.waiting_max",
        "number",
        "20",
        "calls of one caller that may wait at once",
    ),
    live(
        "approval.per_minute",
        "number",
        "60",
        "times within a minute that one caller may have a person asked",
    ),
    key(
        "journal.sync",
        "interval, every or never",
        "interval",
        "when records are forced to the disk: once a second, before each call goes out, when the system likes",
    ),
    key(
        "journal.witness",
        "path",
        "none",
        "a file, best on another volume and append-only, that is given each head of the journal",
    ),
    key(
        "call_timeout",
        "span of time",
        "300s",
        "how long a server may take to answer a call",
    ),
    key(
        "tool_timeout",
        "a map of spans of time by tool",
        "none",
        "the same for single tools, of whichever server",
    ),
    key(
        "refusals",
        "result or error",
        "result",
        "what a refused tool call is answered with: a tool result with `isError`, after which agents go on, or a JSON-RPC error",
    ),
    key(
        "breaker.failures",
        "1 to 1000000",
        "20",
        "after so many calls in a row, over a second or more, that a server did not answer, it is spared: nothing is sent for a while, then one call tries; what a client did wrong or cancelled does not count, nor does an error that the server answers",
    ),
    key(
        "breaker.open",
        "span of time",
        "1s",
        "how long it is spared the first time; twice as long each further time in a row",
    ),
    key(
        "breaker.open_max",
        "span of time",
        "10s",
        "how long it is spared at most",
    ),
    key(
        "state_dir",
        "path",
        "$XDG_STATE_HOME/durward",
        "where journal and keys are kept",
    ),
    key(
        "confine",
        "auto, require or off",
        "auto",
        "whether servers that are started are kept off Durward's own files by the kernel: where it can be done, or else they are not started, or not at all",
    ),
    key(
        "tls.cert",
        "path",
        "none",
        "certificate that `durward serve` shows (PEM), with `tls.key`",
    ),
    key("tls.key", "path", "none", "its private key (PEM)"),
    key(
        "allowed_hosts",
        "a list of texts",
        "loopback names",
        "values of `Host` that `durward serve` answers to",
    ),
    key(
        "allowed_origins",
        "a list of texts",
        "loopback names",
        "values of `Origin` that `durward serve` answers to",
    ),
    key(
        "descriptions.links",
        "keep or strip",
        "keep",
        "links in tool descriptions",
    ),
    key(
        "descriptions.length_max",
        "number",
        "no limit",
        "longest description in characters; the rest is cut",
    ),
    key(
        "pin",
        "off, warn or enforce",
        "warn",
        "what a tool's changed definition leads to",
    ),
];

/// The names that may stand directly below `path` (empty for the top), each once.
pub fn names(path: &str) -> Vec<&'static str> {
    let below = |key: &'static str| -> Option<&'static str> {
        let rest = if path.is_empty() {
            key
        } else {
            key.strip_prefix(path)?.strip_prefix('.')?
        };
        rest.split('.').next()
    };
    let mut out: Vec<&'static str> = Vec::new();
    for name in KEYS.iter().filter_map(|key| below(key.path)) {
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

/// What a key of a part to come is for.
pub fn later(path: &str) -> Option<&'static str> {
    LATER
        .iter()
        .find(|(key, _)| *key == path)
        .map(|(_, about)| *about)
}

/// Prints the reference page.
pub fn page(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "# Keys of `durward.yaml`\n\nGenerated from the code (`cargo xtask docs`).\n"
    )?;
    writeln!(out, "{INTRODUCTION}")?;
    writeln!(
        out,
        "| key | takes | without it | what it is for | reload |\n|---|---|---|---|---|"
    )?;
    for key in KEYS {
        writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            key.path.replace('*', "NAME"),
            key.form,
            key.default,
            key.about,
            if key.live { "yes" } else { "restart" }
        )?;
    }
    writeln!(
        out,
        "\n## Built-in servers\n\n| `builtin` | what it does |\n|---|---|"
    )?;
    for wired in builtin::ALL {
        writeln!(out, "| `{}` | {} |", wired.name, wired.about)?;
    }
    builtin::ALL
        .iter()
        .try_for_each(|wired| options(wired, out))?;
    writeln!(
        out,
        "\n## Kinds of secrets\n\n| `secrets` | what is looked for |\n|---|---|"
    )?;
    for kind in gate::inspect::secrets::SECRETS {
        writeln!(out, "| `{}` | {} |", kind.name, kind.about)?;
    }
    writeln!(
        out,
        "\n## Not built yet\n\nRefused by name, so that a file written for them is not misread.\n"
    )?;
    for (path, about) in LATER {
        writeln!(out, "- `{}`: {about}", path.replace('*', "NAME"))?;
    }
    writeln!(out, "\n## Example\n\n```yaml\n{EXAMPLE}```")
}

/// The keys that a built-in server takes beside `builtin`.
fn options(wired: &builtin::Wired, out: &mut dyn Write) -> io::Result<()> {
    if wired.options.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n### `builtin: {}`\n\n| key | takes | without it | what it is for |\n|---|---|---|---|",
        wired.name
    )?;
    for option in wired.options {
        let default = if option.required {
            "it has to be given"
        } else {
            option.default
        };
        writeln!(
            out,
            "| `servers.NAME.{}` | {} | {default} | {} |",
            option.name, option.kind, option.about
        )?;
    }
    Ok(())
}

const INTRODUCTION: &str = "\
A flag outranks a variable of the environment, that outranks the file, that outranks the default. Every key is optional;
a key that is not listed here is refused. `durward check` prints what would apply, and where each value comes from.

The file is `--config FILE`, else `$DURWARD_CONFIG`, else `durward.yaml` in `$XDG_CONFIG_HOME/durward`; never one in the
current directory, which an agent may be able to write to. `--no-config` reads none. It has to belong to you or to root,
must not be writable for everybody, and has at most 1 MiB.

- Span of time: `500ms`, `60s`, `10m`, `2h`. Rate: `10/s`, `600/m`, `5000/h`. Size: `4096`, `64KiB`, `1MiB`.
- Path: relative to the file's own directory; `~/` is the home.
- `${NAME}` in any value is a variable of the environment; one that is not set is an error. `$${` stands for `${`.
";

/// A file that shows the shape; a test reads it.
pub const EXAMPLE: &str = "\
servers:
  files: { command: npx, args: [-y, \"@modelcontextprotocol/server-filesystem\", /tmp] }
  docs: { url: \"http://127.0.0.1:3010/mcp\", api_key: \"${DOCS_KEY}\" }
  echo: { builtin: echo }
models:
  providers:
    openai: { kind: openai, api_key: \"${OPENAI_API_KEY}\" }
    local: { kind: mock }
  aliases:
    smart: { tiers: [openai/gpt-5, local/plain], deadline: 60s }
policy: policy.json
limits:
  requests: { rate: 50/s, burst: 200 }
  per_tool: { calls: 600, window: 60s, then: hitl }
approval: { timeout: 50s, remember: 10m }
";
