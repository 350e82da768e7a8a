//! Every key of `durward.yaml`: what it takes, its default, what it is for. The reader refuses what
//! is not listed here, and the reference page is printed from it.

use std::io::{self, Write};

use crate::builtin;

mod agents;
mod clouds;
mod otel;
mod state_store;
mod table;

use agents::AGENTS;
use clouds::CLOUDS;
use otel::OTEL;
use state_store::STATE;
use table::GENERAL;

/// All keys, in the order of the reference page.
pub const KEYS: &[Key] = &joined::<
    { GENERAL.len() + CLOUDS.len() + AGENTS.len() + OTEL.len() + STATE.len() },
>(BEFORE_STATE, STATE);
const BEFORE_STATE: &[Key] =
    &joined::<{ GENERAL.len() + CLOUDS.len() + AGENTS.len() + OTEL.len() }>(OF_THE_FILE, OTEL);
const OF_THE_FILE: &[Key] =
    &joined::<{ GENERAL.len() + CLOUDS.len() + AGENTS.len() }>(OF_MODELS, AGENTS);
const OF_MODELS: &[Key] = &joined::<{ GENERAL.len() + CLOUDS.len() }>(GENERAL, CLOUDS);

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
    /// The flag of `durward run` or `durward serve` that says the same, without its dashes.
    pub flag: Option<&'static str>,
}

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
        flag: None,
    }
}

const fn live(
    path: &'static str,
    form: &'static str,
    default: &'static str,
    about: &'static str,
) -> Key {
    let mut key = key(path, form, default, about);
    key.live = true;
    key
}

impl Key {
    /// The flag of `durward run` or `durward serve` that says the same and outranks it.
    const fn flag(self, flag: &'static str) -> Self {
        Self {
            flag: Some(flag),
            ..self
        }
    }
}

#[expect(
    clippy::indexing_slicing,
    reason = "in a constant an index beyond the end does not compile"
)]
const fn joined<const N: usize>(first: &[Key], then: &[Key]) -> [Key; N] {
    let mut out = [first[0]; N];
    let mut at = 0;
    while at < N {
        out[at] = if at < first.len() {
            first[at]
        } else {
            then[at - first.len()]
        };
        at += 1;
    }
    out
}

/// The other name of `servers`, as MCP clients have it.
pub const SERVERS_ALIAS: &str = "mcpServers";

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

/// Prints the reference page.
pub fn page(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "# Keys of `durward.yaml`\n\nGenerated from the code (`cargo xtask docs`).\n"
    )?;
    writeln!(out, "{INTRODUCTION}")?;
    writeln!(
        out,
        "| key | takes | without it | what it is for | flag | reload |\n|---|---|---|---|---|---|"
    )?;
    for key in KEYS {
        writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} |",
            key.path.replace('*', "NAME"),
            key.form,
            key.default,
            key.about,
            key.flag.map_or_else(String::new, shown),
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
    writeln!(out, "\n## Example\n\n```yaml\n{EXAMPLE}```")
}

/// A flag as the page has it.
fn shown(flag: &str) -> String {
    match flag {
        "command" => "`-- CMD`".to_owned(),
        flag => format!("`--{flag}`"),
    }
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

- Span of time: `500ms`, `60s`, `10m`, `2h`. Rate: `10/s`, `600/m`, `5000/h`. Size: `4096`, `64KiB`, `1MiB`, `2GiB`.
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
