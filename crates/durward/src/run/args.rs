//! The command line of `durward run`.

use std::path::PathBuf;

use crate::flags::{
    ApprovalArgs, PrefixArgs, RefusalArgs, RunTransport, ScreeningArgs, Sync, tool_timeout,
};
use crate::names::server_name;

pub const HELP: &str = "\
Examples:
  durward run -- npx -y @modelcontextprotocol/server-filesystem /tmp
  durward run files                                   the server \"files\" of durward.yaml
  durward run                                         all servers of durward.yaml (SERVER__TOOL)
  durward run --url https://mcp.example/mcp           a server over Streamable HTTP

Without a policy the starter policy applies: tools that are known to only read pass, every other tool waits for a
person. `durward approvals watch` shows the waiting calls and takes answers. A call that nobody answers in time is
refused.

Limits cannot be switched off, only raised. A tool that is called too often waits for a person
(--limit-then hitl); calls beyond --limit-requests are refused, with data.retry_after_ms.

Exit codes: 0 the client closed its side; 1 the server ended by itself; 10 the journal failed, or the state directory
cannot be used; 12 the issuer of the sign-in cannot be reached; 13 nobody is signed in, or the sign-in has ended; 15 another
person has signed in; 16 wrong configuration.";

/// Arguments of `durward run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The policy, as JSON [default: the starter policy, or that of durward.yaml]
    #[arg(
        long,
        value_name = "FILE",
        env = "DURWARD_POLICY",
        hide_env_values = true
    )]
    pub policy: Option<PathBuf>,
    /// The server's name in rules (`backend_id`) and in the journal [default: from the command]
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    pub name: Option<String>,
    /// Pass this variable of the environment on to the server; NAME=VALUE sets it, and VALUE is in the list of
    /// processes; repeatable
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub environment: Vec<net::environment::Extra>,
    /// Keep the server off Durward's own files by the kernel: if possible, or else do not start it, or not
    /// at all [default: auto]
    #[arg(long, value_name = "auto|require|off", value_parser = crate::sandbox::confine)]
    pub confine: Option<net::confine::Confine>,
    /// Limit what the server can reach to these directories (and the system's own); repeatable
    #[arg(long, value_name = "read=DIR,write=DIR,exec=DIR,network=none")]
    pub sandbox: Vec<crate::sandbox::SandboxFlag>,
    /// How long the server may take to answer a call, in seconds [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub call_timeout: Option<u64>,
    /// The same for one tool; repeatable
    #[arg(long, value_name = "TOOL=SECONDS", value_parser = tool_timeout)]
    pub tool_timeout: Vec<(String, u64)>,
    #[command(flatten)]
    pub approval: ApprovalArgs,
    /// When journal records are forced to the disk [default: interval]
    #[arg(long, value_enum)]
    pub sync: Option<Sync>,
    /// Do not reload the configuration and the policy when the files change; SIGHUP still does
    #[arg(long)]
    pub no_watch: bool,
    /// The URL of the server (Streamable HTTP); if a command is given too, it is started when the URL does not answer
    #[arg(long, value_name = "URL", conflicts_with = "server")]
    pub url: Option<String>,
    /// How to reach the server [default: auto]
    #[arg(long, value_enum)]
    pub transport: Option<RunTransport>,
    /// Send the key in this variable of the environment to the server, as a bearer token
    #[arg(long, value_name = "NAME")]
    pub api_key_env: Option<String>,
    /// Our certificate for the server, with its chain, as PEM
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub client_cert: Option<PathBuf>,
    /// The private key of --client-cert, as PEM
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub client_key: Option<PathBuf>,
    /// Certificate authorities to trust instead of the system's, as PEM
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Allow an http:// URL to another machine; anyone on the network path can read and change calls
    #[arg(long)]
    pub insecure_http: bool,
    /// What is done about what servers say of themselves
    #[command(flatten)]
    pub screening: ScreeningArgs,
    /// How refused calls are answered
    #[command(flatten)]
    pub refusals: RefusalArgs,
    /// How much callers may
    #[command(flatten)]
    pub limits: crate::limits::LimitArgs,
    #[command(flatten)]
    pub prefix: PrefixArgs,
    /// A server of durward.yaml [default: all of them]
    #[arg(value_name = "SERVER")]
    pub server: Option<String>,
    /// The server's command
    #[arg(last = true, conflicts_with = "server", value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}
