//! The table of keys, and the flags of `durward run` and `durward serve` that say the same.

use super::{Key, key, live};

/// All keys but those of the export, in the order of the reference page.
pub(super) const GENERAL: &[Key] = &[
    key(
        "listen",
        "address:port, or unix:PATH",
        "127.0.0.1:8765",
        "where `durward serve` listens",
    )
    .flag("listen"),
    key(
        "root",
        "the name of a server",
        "none",
        "the server that is also at `/` of `durward serve`, and at `/mcp` instead of all servers",
    )
    .flag("root"),
    key(
        "prefix",
        "auto or always",
        "auto",
        "whether tools in front of all servers have their server's name as a prefix: `auto` if there is more than one server; `always` also with one",
    )
    .flag("prefix"),
    key(
        "search_above",
        "whole number",
        "never",
        "in front of all servers: above how many tools a client is shown two tools instead, one to search them and one to call what was found",
    ),
    key(
        "require_key",
        "true or false",
        "false",
        "refuse requests to `durward serve` without a key, even if no key has been created yet",
    )
    .flag("require-key"),
    key(
        "share",
        "session, caller or all",
        "session",
        "who shares a server's process, or the session with a server over HTTP, under `durward serve`",
    )
    .flag("share"),
    key(
        "session_idle",
        "span of time",
        "30m",
        "how long a session of `durward serve` may be unused before it ends",
    )
    .flag("session-idle"),
    key(
        "lenient",
        "true or false",
        "false",
        "repair requests of clients that write `\"jsonrpc\": 2.0` as a number or send `initialize` without `protocolVersion`",
    ),
    key(
        "threads",
        "1 to 64",
        "one for each processor up to 16",
        "threads that serve connections; with `journal.sync: every` 16, because each waits for the disk",
    )
    .flag("threads"),
    key(
        "servers",
        "a map of servers by name",
        "",
        "the servers that `durward run NAME` and `durward serve` guard; also written `mcpServers`",
    )
    .flag("server"),
    key("servers.*.command", "text", "", "the program to start").flag("command"),
    key("servers.*.args", "a list of texts", "none", "its arguments").flag("command"),
    key(
        "servers.*.env",
        "a map of texts",
        "none",
        "variables that it gets in addition to the usual ones; a value may be `${NAME}`",
    )
    .flag("env"),
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
    )
    .flag("url"),
    key(
        "servers.*.builtin",
        "the name of a built-in server",
        "",
        "a server inside Durward, without a process or an address; see below",
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
    )
    .flag("api-key-env"),
    key(
        "servers.*.client_cert",
        "path",
        "none",
        "certificate shown to the server (PEM), with `client_key`",
    )
    .flag("client-cert"),
    key(
        "servers.*.client_key",
        "path",
        "none",
        "its private key (PEM)",
    )
    .flag("client-key"),
    key(
        "servers.*.ca",
        "path",
        "the system's",
        "authorities that the server's certificate is checked against (PEM)",
    )
    .flag("ca"),
    key(
        "servers.*.insecure_http",
        "true or false",
        "that of `insecure_http`",
        "for this server alone",
    ),
    key(
        "servers.*.transport",
        "auto, stdio, http or builtin",
        "by what is given",
        "how the server is reached; `auto` tries `url` first, then `command`",
    )
    .flag("transport"),
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
        "most processes of it at once under `durward serve`; for a further one, the one that was idle longest is ended",
    ),
    key(
        "servers.*.arguments",
        "a map of path, source, destination or content by argument, or by `TOOL.ARGUMENT`",
        "by names and schemas",
        "what the server's arguments are, if neither their names nor the tools' schemas say so",
    ),
    key(
        "servers.*.tools",
        "a map of read, write, delete, execute or send by tool, several with commas",
        "by exact names that are well known, else unknown",
        "what the server's tools do: it outranks their annotations and names, and lets rules on operations and the starter policy know them. An entry with `tools` and without `command` and `url` is about a server that a client's entry starts with `durward run --name NAME`",
    ),
    key(
        "servers.*.relative_to",
        "path",
        "any directory",
        "the directory that the server resolves relative paths against; without it a relative path could be below any directory",
    ),
    key(
        "servers.*.sandbox.read",
        "a list of paths",
        "none",
        "directories that the server can read; with any key of `sandbox` it can reach nothing else except the system's directories",
    )
    .flag("sandbox"),
    key(
        "servers.*.sandbox.write",
        "a list of paths",
        "none",
        "directories that it can read and write, and sockets that it can connect to",
    )
    .flag("sandbox"),
    key(
        "servers.*.sandbox.exec",
        "a list of paths",
        "none",
        "directories that it can start programs from, in addition to the system's",
    )
    .flag("sandbox"),
    key(
        "servers.*.sandbox.network",
        "none or all",
        "all",
        "whether it has a network",
    )
    .flag("sandbox"),
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
        "labels that a caller's session gets from this server's results: rules see them as `session_labels`",
    ),
    live(
        "servers.*.tool_labels",
        "a map of untrusted, private, untrusted+private or none by tool",
        "those of `labels`",
        "the same for the results of single tools",
    ),
    key(
        "identity.issuers.*.issuer",
        "https URL",
        "",
        "an issuer at which people sign in, written exactly as its metadata document names it",
    ),
    key(
        "identity.issuers.*.audiences",
        "a list of texts",
        "the resource of the path, with `public_url`",
        "audiences of access tokens that are for this server, whatever path they are sent to; never `account`",
    ),
    key(
        "identity.issuers.*.algorithms",
        "a list of RS256, PS256, ES256, EdDSA",
        "all four",
        "signature algorithms that count",
    ),
    key(
        "identity.issuers.*.subject_claim",
        "text",
        "sub",
        "the claim that names the caller: in rules and records the caller is `ISSUER#CLAIM`",
    ),
    key(
        "identity.issuers.*.groups_claim",
        "text",
        "groups",
        "the claim that lists the caller's groups; dots lead into objects, as in `realm_access.roles`",
    ),
    key(
        "identity.issuers.*.client_id",
        "text",
        "none",
        "the public client that `durward login` signs in with, and that back-channel logout is for",
    ),
    key(
        "identity.issuers.*.scopes",
        "a list of texts",
        "openid",
        "scopes that `durward login` requests",
    ),
    key(
        "identity.issuers.*.ca",
        "path",
        "the system's",
        "certificate authorities (PEM) of the issuer",
    ),
    key(
        "identity.public_url",
        "https URL",
        "none",
        "the URL at which clients reach `durward serve`: each path has its own audience below it, and clients are led by it",
    ),
    key(
        "identity.required",
        "true or false",
        "false",
        "refuse `durward run` and `durward call` while nobody is signed in (exit code 13)",
    ),
    key(
        "identity.scopes",
        "a list of texts",
        "none",
        "scopes that clients are asked to request",
    ),
    key(
        "identity.skew",
        "span of time, at most 5m",
        "60s",
        "tolerated difference between the clocks of issuer and server",
    ),
    key(
        "identity.lifetime_max",
        "span of time",
        "24h",
        "longest lifetime of an access token that is accepted",
    ),
    key(
        "identity.keys_max",
        "span of time",
        "24h",
        "how long the keys of an issuer count while it cannot be reached",
    ),
    key(
        "models.providers.*.kind",
        "openai, anthropic, google, azure, bedrock, vertex, mistral, deepseek, groq, cerebras, sambanova, cohere, local or mock",
        "",
        "whose API it is; `openai` with a `base_url` is any API like OpenAI's, `local` is one on this machine, and `mock` answers by a script, without a network",
    ),
    key(
        "models.providers.*.base_url",
        "http or https URL",
        "the API's own; `azure` has none",
        "the part of the URL before `/chat/completions`, `/messages`, `/models/NAME:generateContent`, `/openai/deployments` or `/model/NAME/invoke`",
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
        "the key that is sent to the provider; write `${NAME}`, not the key itself",
    ),
    key(
        "models.providers.*.api_keys",
        "a list of texts",
        "none",
        "several keys, used in turn; a key that the provider refuses rests, is probed and comes back",
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
        "its models: these are listed, and no other name is passed on",
    ),
    key(
        "models.providers.*.unsupported",
        "refuse or drop",
        "drop",
        "what becomes of wishes of a request that the provider's dialect has no word for: refused by name, or left out and named in `x-durward-left-out`",
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
        "where the name leads: PROVIDER/MODEL or another alias; the next tier is tried when all targets of one have failed",
    ),
    key(
        "models.aliases.*.overflow",
        "a list of targets",
        "none",
        "models with a larger context: asked, instead of the other targets, after one has said that the request is too long",
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
        "of `rotate: weighted`: each target's share of the calls; 0 if it is only for when others fail",
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
        "how long all attempts of a call together may take until a stream begins or the whole reply has arrived",
    ),
    key(
        "models.stall",
        "span of time",
        "120s",
        "how long a stream that has begun may be silent",
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
        "tokens that may be read and written within a window; a call reserves the most that it may use, and returns the rest",
    ),
    key(
        "models.budgets.*.requests",
        "number",
        "",
        "instead of `tokens`: how many calls may be made within a window",
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
        "whether each caller has the whole budget, or the callers of a group, or all callers, share it",
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
        "who may create an account: administrators only (at /admin/users), or everybody (at /v1/auth/register)",
    ),
    key(
        "models.accounts.requests",
        "number",
        "60",
        "calls to models that a user may make in a minute if the account has no budget of requests; 0: no limit",
    ),
    key(
        "models.accounts.admin_group",
        "text",
        "admin",
        "keys of this group (`durward keys create NAME --group GROUP`) may manage accounts unless they have a scope, as users with the role admin may",
    ),
    key(
        "models.accounts.servers",
        "a list of servers",
        "none",
        "servers that the tokens of accounts can use as well",
    ),
    key(
        "models.cache.ttl",
        "span of time",
        "1h",
        "how long a whole reply is remembered and repeated for the same request of the same caller; without `models.cache` none is",
    ),
    key(
        "models.cache.bytes",
        "size",
        "64MiB",
        "how much is remembered; then the oldest is dropped",
    ),
    key(
        "models.cache.per",
        "caller or tenant",
        "caller",
        "who shares remembered replies: nobody, or the users of one tenant of `models.accounts`",
    ),
    key(
        "models.reserve",
        "number",
        "16384",
        "tokens that are reserved for a reply if the request gives no maximum",
    ),
    live(
        "inspect",
        "a map of rules by name",
        "nothing is looked for",
        "what to look for in requests and results, and what to do when it is found; masked text is replaced by the rule's name",
    ),
    live(
        "inspect.*.secrets",
        "all, or a list of kinds",
        "",
        "secrets of these kinds; see below",
    ),
    live(
        "inspect.*.patterns",
        "a list of regular expressions",
        "",
        "matches of any of these; at most 64, of 1024 bytes each",
    ),
    live(
        "inspect.*.checker.url",
        "https URL, or http to this machine",
        "",
        "a program of yours that is asked about each message (docs/what_is_looked_for.md)",
    ),
    live(
        "inspect.*.checker.secret",
        "text of at least 16 bytes",
        "",
        "questions to it are signed with this (HMAC-SHA-256); never shown",
    ),
    live(
        "inspect.*.checker.deadline",
        "duration, 10ms to 30s",
        "2s",
        "how long it may take to answer",
    ),
    live(
        "inspect.*.checker.unchecked",
        "deny or allow",
        "deny",
        "what happens to a message that it did not answer for",
    ),
    live(
        "inspect.*.on",
        "requests, results or both",
        "both",
        "which messages are inspected; `results` includes everything else that a server sends",
    ),
    live(
        "inspect.*.servers",
        "a list of servers and providers of models",
        "all",
        "for these only",
    ),
    live(
        "inspect.*.action",
        "mask, deny, ask or label",
        "",
        "replace the match, refuse the message, ask a person, or only label the session",
    ),
    live(
        "inspect.*.labels",
        "a list of untrusted and private",
        "none",
        "labels that the session gets when something is found",
    ),
    live("policy", "path", "the starter policy", "the rules").flag("policy"),
    live(
        "limits.requests.rate",
        "rate",
        "50/s",
        "calls and lists of one caller, over all sessions",
    )
    .flag("limit-requests"),
    live(
        "limits.requests.burst",
        "number",
        "200",
        "how many may come at once",
    )
    .flag("limit-burst"),
    live(
        "limits.per_tool.calls",
        "number",
        "600",
        "calls of one tool by one caller within `window`, over all sessions",
    )
    .flag("limit-tool-calls"),
    live(
        "limits.per_tool.window",
        "span of time",
        "60s",
        "the window of `calls`",
    )
    .flag("limit-tool-window"),
    live(
        "limits.per_tool.then",
        "hitl or refuse",
        "hitl",
        "what happens beyond that: a person is asked, or the call is refused",
    )
    .flag("limit-then"),
    live(
        "limits.per_tool.concurrency",
        "number",
        "no bound of its own",
        "calls of one tool by one caller under way at once",
    )
    .flag("limit-tool-concurrency"),
    live(
        "limits.concurrency",
        "number",
        "256",
        "calls of one caller under way at once, over all sessions",
    )
    .flag("limit-concurrency"),
    live(
        "limits.response_bytes",
        "size",
        "16MiB",
        "longest reply that is passed on",
    )
    .flag("limit-response-bytes"),
    live(
        "limits.request_bytes",
        "size",
        "16MiB",
        "longest message of a client that is accepted, 64KiB to 128MiB",
    )
    .flag("limit-request-bytes"),
    live(
        "limits.journal_bytes",
        "size",
        "16MiB",
        "journal records that one caller may cause in a minute, 256KiB to 1024GiB; the default is 4KiB for each call that `limits.requests.rate` allows in a minute if that is more",
    )
    .flag("limit-journal-bytes"),
    live(
        "approval.timeout",
        "span of time",
        "50s",
        "how long a call waits for a person's answer before it is refused",
    )
    .flag("approval-timeout"),
    live(
        "approval.remember",
        "span of time",
        "10m",
        "how long \"allow\" holds",
    )
    .flag("approval-remember"),
    live(
        "approval.pending_max",
        "number",
        "1000",
        "calls that may wait at once",
    )
    .flag("approval-pending-max"),
    live(
        "approval.waiting_max",
        "number",
        "20",
        "calls of one caller that may wait at once",
    )
    .flag("approval-waiting-max"),
    live(
        "approval.per_minute",
        "number",
        "60",
        "questions of one caller per minute",
    )
    .flag("approval-per-minute"),
    key(
        "approval.notify.bell",
        "true or false",
        "true",
        "ring the bell when a call waits, where standard error is a terminal",
    ),
    key(
        "approval.notify.desktop",
        "true or false",
        "false",
        "show a desktop notification for each waiting call (notify-send or osascript)",
    ),
    key(
        "approval.notify.command",
        "a list of texts",
        "none",
        "run this program for each waiting call, with the call as JSON on its standard input",
    ),
    key(
        "approval.notify.webhook.url",
        "URL",
        "none",
        "post each waiting call to this URL, as JSON",
    ),
    key(
        "approval.notify.webhook.secret",
        "text",
        "none",
        "the key that signs the messages (HMAC-SHA-256), at least 16 bytes",
    ),
    key(
        "approval.notify.arguments",
        "true or false",
        "false",
        "give the command and the webhook the call's arguments, paths and changes too",
    ),
    key(
        "journal.sync",
        "interval, every or never",
        "interval",
        "when records are forced to the disk: once a second, before each call is sent, or when the system decides",
    )
    .flag("sync"),
    key(
        "journal.verify",
        "stop, report or off",
        "stop",
        "what a start does about closed segments of the journal: verify them and end with exit code 10 if one was changed, report it and go on, or verify nothing; what a quarter of a second or 32 MiB do not suffice for is verified beside the calls",
    ),
    key(
        "journal.witness",
        "path",
        "none",
        "a file that receives each head of the journal, best on another volume and append-only",
    ),
    key(
        "journal.warn_below",
        "size",
        "1GiB",
        "warn in the log and in `durward status` when the journal's disk has less room left; 0: never",
    ),
    key(
        "journal.retain",
        "size from 8MiB",
        "none: all records are kept",
        "how large the journal may become: beyond it the oldest records are deleted, and a signed record names what went",
    ),
    key(
        "call_timeout",
        "span of time",
        "300s",
        "how long a server may take to answer a call",
    )
    .flag("call-timeout"),
    key(
        "tool_timeout",
        "a map of spans of time by tool",
        "none",
        "the same for single tools of any server",
    )
    .flag("tool-timeout"),
    key(
        "refusals",
        "result or error",
        "result",
        "how a refused tool call is answered: with a tool result with `isError`, after which agents go on, or with a JSON-RPC error",
    )
    .flag("refusals"),
    key(
        "insecure_http",
        "true or false",
        "false",
        "allow http:// URLs to other machines; anyone on the network path can read and change calls",
    )
    .flag("insecure-http"),
    key(
        "breaker.failures",
        "1 to 1000000",
        "20",
        "after so many calls in a row, over a second or more, that a server did not answer, nothing is sent to it for a while, then one call tries; a client's own errors and cancelled calls do not count, nor do errors that the server answers",
    ),
    key(
        "breaker.open",
        "span of time",
        "1s",
        "how long nothing is sent the first time; twice as long each further time in a row",
    ),
    key(
        "breaker.open_max",
        "span of time",
        "10s",
        "longest time that nothing is sent",
    ),
    key(
        "state_dir",
        "path",
        "$XDG_STATE_HOME/durward",
        "where journal and keys are kept",
    )
    .flag("state-dir"),
    key(
        "confine",
        "auto, require or off",
        "auto",
        "whether the kernel keeps servers off Durward's own files: `auto` if possible, `require` or else do not start them, `off` not at all",
    )
    .flag("confine"),
    key(
        "tls.cert",
        "path",
        "none",
        "certificate that `durward serve` shows (PEM), with `tls.key`",
    )
    .flag("tls-cert"),
    key("tls.key", "path", "none", "its private key (PEM)").flag("tls-key"),
    key(
        "allowed_hosts",
        "a list of texts",
        "loopback names",
        "values of `Host` that `durward serve` answers to",
    )
    .flag("allow-host"),
    key(
        "allowed_origins",
        "a list of texts",
        "none",
        "origins (`https://app.example`, `http://localhost:*`) whose web pages may call `durward serve`, in addition to its own",
    )
    .flag("allow-origin"),
    key(
        "descriptions.links",
        "keep or strip",
        "keep",
        "links in tool descriptions",
    )
    .flag("strip-links"),
    key(
        "descriptions.length_max",
        "number",
        "no limit",
        "longest description in characters; the rest is cut",
    )
    .flag("description-length"),
    key(
        "pin",
        "off, warn or enforce",
        "warn",
        "what to do with a tool whose definition has changed",
    )
    .flag("pin"),
    key(
        "watch",
        "true or false",
        "true",
        "reload this file and the policy when they change; SIGHUP and `durward reload` always work",
    )
    .flag("no-watch"),
];
