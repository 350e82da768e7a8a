//! `durward check`

use std::io::{self, Write};
use std::path::PathBuf;

use admin::policy::{unknown_tool_warnings, warnings as policy_warnings};
use clap::Args;
use models::Most;
use serde_json::{Value, json};
use stores::redis::StoreFacts;

use crate::builtin::Configured;
use crate::config::rows::{Row, spans};
use crate::config::server::Server;
use crate::config::settings::Origin;
use crate::config::values::Span;
use crate::config::{self, Settings};
use crate::failure::EXIT_CONFIGURATION;
use crate::flags::Given;
use crate::layout;
use crate::layout::table::{Column, Long, Table};
use crate::places::Places;
use crate::plural::count;
use crate::policy::listed_servers;
use crate::policy::source::{PolicySource, Protected, ShippedPolicy};
use crate::providers::shared_store;
use crate::serve::{NOTHING_TO_SERVE, Ready, ServeArgs};
use crate::tools::start::start;

pub const HELP: &str = "\
Examples:
  durward check
  durward check --config durward.yaml --json
  durward check --start                 start the servers, and show what happens to each tool

Reads the configuration and every policy that it names, and refuses what `durward serve` would refuse at its start.
A configuration without servers is only a warning, because `durward run -- CMD` and `durward serve --server` bring
their own.

Prints the effective settings, each with its origin: a flag, a variable, a line of the file, or the default. Values of
${NAME} are not shown.

Without --start nothing is started and no connection is made. With it, every server is started and its tools are
listed, each with what happens to a call and by which rules: passes, asks (a person), depends (on the arguments) or
hidden. No tool is called. The store of `state:` is reached, and its version, latency, eviction policy and
persistence are printed.

Exit codes: 0 valid; 16 invalid, a server could not be started or the store not be reached (--start), or there are warnings and --strict was
given.";

/// Arguments of `durward check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The rules, as JSON, as for `durward run`
    #[arg(
        long,
        value_name = "FILE",
        env = "DURWARD_POLICY",
        hide_env_values = true
    )]
    policy: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Start every server and list its tools with the policy's decision on each
    #[arg(long)]
    start: bool,
    /// Exit with 16 on a warning too
    #[arg(long)]
    strict: bool,
}

/// Difference of clocks that is worth a warning, in milliseconds.
const CLOCK_OFFSET_MS_MAX: u64 = 5_000;

/// A policy that applies to some server, or to all.
struct Rules {
    source: PolicySource,
    rules: usize,
    digest: String,
}

/// Prints what would apply; gives the exit code.
pub fn run(
    args: &CheckArgs,
    given: &Given,
    mut settings: Settings,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    settings.set_policy(args.policy.as_deref(), given.policy);
    let checked = check(args, &settings, given, places, out);
    let message = match checked {
        Ok(Ok(())) => return 0,
        Ok(Err(message)) => message,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return 0,
        Err(error) => format!("cannot write: {error}"),
    };
    let _ = writeln!(err, "error: {message}");
    EXIT_CONFIGURATION
}

fn check(
    args: &CheckArgs,
    settings: &Settings,
    given: &Given,
    places: &Places,
    out: &mut dyn Write,
) -> io::Result<Result<(), String>> {
    let mut warnings: Vec<String> = settings.warnings.iter().map(ToString::to_string).collect();
    let mut rules = Vec::with_capacity(settings.servers.len() + 1);
    for server in std::iter::once(None).chain(settings.servers.iter().map(Some)) {
        match compiled(settings, server, places, &mut warnings) {
            Ok(found) => rules.push(found),
            Err(message) => return Ok(Err(message)),
        }
    }
    for server in &settings.servers {
        warnings.extend(missing(server));
    }
    match Ready::even_without_servers(&ServeArgs::default(), settings, places) {
        Ok(ready) => {
            if ready.plan.is_empty() {
                warnings.push(NOTHING_TO_SERVE.replace("\n  hint:", ";"));
            }
            warnings.extend(ready.certificates.warnings());
        }
        Err(failure) => return Ok(Err(failure.message)),
    }
    let mut rows = settings.rows();
    if settings.state_dir.is_none() || given.state_dir != Origin::Default {
        rows.retain(|row| row.key != "state_dir");
        rows.push(Row {
            key: "state_dir",
            value: places.state.display().to_string(),
            origin: given.state_dir,
        });
    }
    let told = Told {
        settings,
        places,
        rows: &rows,
        rules: &rules,
        warnings: &warnings,
    };
    let failed = match told.tell(args, out)? {
        Ok(failed) => failed,
        Err(message) => return Ok(Err(message)),
    };
    out.flush()?;
    if !failed.is_empty() {
        return Ok(Err(failed.join("\nerror: ")));
    }
    if args.strict && !warnings.is_empty() {
        return Ok(Err(format!(
            "{}, and --strict was given",
            count(warnings.len(), "warning")
        )));
    }
    Ok(Ok(()))
}

/// What is printed.
struct Told<'a> {
    settings: &'a Settings,
    places: &'a Places,
    rows: &'a [Row],
    rules: &'a [Rules],
    warnings: &'a [String],
}

impl Told<'_> {
    /// Prints it, and with `--start` what the servers' tools would meet; gives the servers that could not be started.
    fn tell(
        &self,
        args: &CheckArgs,
        out: &mut dyn Write,
    ) -> io::Result<Result<Vec<String>, String>> {
        let Self {
            settings,
            places,
            rows,
            rules,
            warnings,
        } = self;
        let policy = args.policy.as_deref();
        if !args.json {
            print(settings, places, rows, rules, warnings, out)?;
            if args.start
                && let Some(store) = &settings.state
            {
                match shared_store::facts(store) {
                    Ok(facts) => print_store(&facts, out)?,
                    Err(failure) => return Ok(Err(failure.message)),
                }
            }
            if !args.start || settings.servers.is_empty() {
                return Ok(Ok(Vec::new()));
            }
            writeln!(out, "\ntools")?;
            out.flush()?;
            let started = start(settings, policy, places, Some(out));
            return Ok(started.map(|started| started.failed));
        }
        let mut object = object(settings, rows, rules, warnings);
        let mut failed = Vec::new();
        if args.start
            && let Some(store) = &settings.state
        {
            match (shared_store::facts(store), object.as_object_mut()) {
                (Ok(facts), Some(members)) => {
                    members.insert("state".into(), store_object(&facts));
                }
                (Ok(_), None) => {}
                (Err(failure), _) => return Ok(Err(failure.message)),
            }
        }
        if args.start {
            let started = match start(settings, policy, places, None) {
                Ok(started) => started,
                Err(message) => return Ok(Err(message)),
            };
            failed = started.failed;
            if let Some(members) = object.as_object_mut() {
                members.insert("tools".into(), Value::Array(started.servers));
            }
        }
        writeln!(out, "{object:#}")?;
        Ok(Ok(failed))
    }
}

/// Returns what is wrong with a store for budgets.
fn store_warnings(facts: &StoreFacts) -> Vec<String> {
    let mut warnings = Vec::new();
    let policy = facts.eviction_policy.as_deref();
    if let Some(policy) = policy.filter(|policy| *policy != "noeviction") {
        warnings.push(format!(
            "it deletes keys when its memory is full ({policy}), and budgets with them; set maxmemory-policy noeviction"
        ));
    }
    if !facts.has_append_file && facts.has_snapshots != Some(true) {
        warnings.push(
            "it keeps nothing over a restart: budgets are frozen then until all replicas have reported; set appendonly yes"
                .to_owned(),
        );
    }
    if facts.clock_offset_ms.unsigned_abs() > CLOCK_OFFSET_MS_MAX {
        warnings.push(format!(
            "its clock differs by {} ms; windows of budgets follow the store's clock",
            facts.clock_offset_ms
        ));
    }
    warnings
}

fn print_store(facts: &StoreFacts, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nstate")?;
    writeln!(
        out,
        "  redis {}, answers in {} us, eviction {}, append file {}, snapshots {}",
        facts.version.escape_debug(),
        facts.latency_us,
        facts
            .eviction_policy
            .as_deref()
            .unwrap_or("unknown")
            .escape_debug(),
        if facts.has_append_file { "on" } else { "off" },
        match facts.has_snapshots {
            Some(true) => "on",
            Some(false) => "off",
            None => "unknown",
        },
    )?;
    for warning in store_warnings(facts) {
        writeln!(out, "  warning: {}", warning.escape_debug())?;
    }
    Ok(())
}

fn store_object(facts: &StoreFacts) -> Value {
    json!({
        "kind": "redis",
        "version": facts.version,
        "latency_us": facts.latency_us,
        "eviction_policy": facts.eviction_policy,
        "append_file": facts.has_append_file,
        "snapshots": facts.has_snapshots,
        "clock_offset_ms": facts.clock_offset_ms,
        "warnings": store_warnings(facts),
    })
}

fn compiled(
    settings: &Settings,
    server: Option<&Server>,
    places: &Places,
    warnings: &mut Vec<String>,
) -> Result<Rules, String> {
    let (source, _) = settings.policy_of(server);
    let policy = source.load(Protected::AsRun, places)?;
    let own = server.is_none_or(|server| server.policy.is_some());
    if let (PolicySource::File(file), true) = (&source, own) {
        let mut found = policy_warnings(&policy);
        let listed = listed_servers(&source, false, settings);
        found.extend(unknown_tool_warnings(&policy, &listed, &places.pins()));
        for warning in found {
            warnings.push(format!(
                "{}: rule {} \"{}\": {}",
                file.display(),
                warning.number,
                warning.id.escape_debug(),
                warning.message.escape_debug()
            ));
        }
    }
    Ok(Rules {
        rules: policy.rules().len(),
        digest: policy.digest().to_owned(),
        source,
    })
}

/// Files that a server names and that are not there.
fn missing(server: &Server) -> Vec<String> {
    let line = server.at.line;
    let mut out = Vec::new();
    for (option, path) in server.builtin.iter().flat_map(Configured::missing) {
        out.push(format!(
            "line {line}: {option} of \"{}\" names a file that does not exist: {}",
            server.name,
            path.display()
        ));
    }
    if let Some(command) = &server.command {
        let program = std::path::Path::new(&command.program.value);
        if program.is_absolute() && !program.is_file() {
            out.push(format!(
                "line {line}: the program of \"{}\" does not exist: {}",
                server.name, command.program
            ));
        }
        if command.directory.as_ref().is_some_and(|dir| !dir.is_dir()) {
            out.push(format!(
                "line {line}: the directory of \"{}\" does not exist",
                server.name
            ));
        }
    }
    if let Some(http) = &server.http {
        for file in [&http.client_cert, &http.client_key, &http.ca]
            .into_iter()
            .flatten()
        {
            if !file.is_file() {
                out.push(format!(
                    "line {line}: a file of \"{}\" does not exist: {}",
                    server.name,
                    file.display()
                ));
            }
        }
    }
    out
}

/// Key, value and origin.
const SETTINGS: [Column; 3] = [
    Column::new("", 0, Long::Whole),
    Column::new("", 10, Long::Wrap),
    Column::new("", 0, Long::Whole),
];

fn print(
    settings: &Settings,
    places: &Places,
    rows: &[Row],
    rules: &[Rules],
    warnings: &[String],
    out: &mut dyn Write,
) -> io::Result<()> {
    match &settings.file {
        Some(file) => writeln!(out, "file  {}", file.display())?,
        None => writeln!(
            out,
            "file  none; {} would be read",
            places.config.join(config::FILE_NAME).display()
        )?,
    }
    writeln!(out, "\nsettings")?;
    let mut rules = rules.iter();
    let general = rules.next();
    let cells = rows.iter().map(|row| {
        let Row { key, value, origin } = row;
        vec![(*key).into(), value.clone(), origin.to_string()]
    });
    let cells: Vec<Vec<String>> = cells.collect();
    let table = Table::of(&SETTINGS, &cells, layout::screen_width(), 2);
    let keys = rows.iter().map(|row| row.key.chars().count()).max();
    let keys = keys.unwrap_or_default();
    for (row, cells) in rows.iter().zip(&cells) {
        table.row(cells, out)?;
        if let (Some(rules), "policy") = (general, row.key) {
            let number = count(rules.rules, "rule");
            writeln!(out, "  {:<keys$}  {number}, digest {}", "", rules.digest)?;
        }
    }
    writeln!(out, "\nservers  {}", settings.servers.len())?;
    for (server, found) in settings.servers.iter().zip(rules) {
        print_server(server, found, out)?;
    }
    print_models(settings, out)?;
    writeln!(out, "\nwarnings  {}", warnings.len())?;
    for warning in warnings {
        writeln!(out, "  {warning}")?;
    }
    Ok(())
}

fn print_models(settings: &Settings, out: &mut dyn Write) -> io::Result<()> {
    let models = &settings.models;
    if models.providers.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nmodels  {}",
        count(models.providers.len(), "provider")
    )?;
    for own in &models.providers {
        let summary = own.summary();
        writeln!(
            out,
            "  {:<16} {}  line {}",
            own.name,
            summary.escape_debug(),
            own.at.line
        )?;
    }
    for alias in &models.aliases {
        let tiers = alias.tiers.iter().map(|tier| tier.join(", "));
        let tiers = tiers.collect::<Vec<_>>().join(", then ");
        writeln!(out, "  {:<16} -> {}", alias.name, tiers.escape_debug())?;
    }
    for budget in &models.budgets {
        match budget.most {
            Most::Tokens(most) => writeln!(out, "  {:<16} {most} tokens", budget.name)?,
            Most::Micros(most) => {
                let (whole, part) = (most / 1_000_000, most % 1_000_000);
                writeln!(out, "  {:<16} {whole}.{part:06} dollars", budget.name)?;
            }
            Most::Requests(most) => writeln!(out, "  {:<16} {most} requests", budget.name)?,
        }
    }
    Ok(())
}

fn print_server(server: &Server, found: &Rules, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "  {:<16} {:<6} {}  line {}",
        server.name,
        server.transport,
        server.summary().escape_debug(),
        server.at.line
    )?;
    if let Some(own) = &server.policy {
        writeln!(
            out,
            "  {:<16} policy {}  {}, digest {}  {}",
            "",
            own.value.display(),
            count(found.rules, "rule"),
            found.digest,
            own.origin
        )?;
    }
    if let PolicySource::Shipped(shipped @ ShippedPolicy::Ssh) = found.source {
        writeln!(
            out,
            "  {:<16} policy {} (durward ssh rules)  {}, digest {}  default",
            "",
            shipped.name(),
            count(found.rules, "rule"),
            found.digest
        )?;
    }
    if let Some(own) = &server.call_timeout {
        writeln!(
            out,
            "  {:<16} call_timeout {}  {}",
            "", own.value, own.origin
        )?;
    }
    if !server.tool_timeout.is_empty() {
        let times = spans(&server.tool_timeout);
        writeln!(out, "  {:<16} tool_timeout {times}", "")?;
    }
    if let Some(own) = &server.pin {
        writeln!(out, "  {:<16} pin {}  {}", "", own.value, own.origin)?;
    }
    Ok(())
}

fn object(settings: &Settings, rows: &[Row], rules: &[Rules], warnings: &[String]) -> Value {
    let mut all = serde_json::Map::new();
    for row in rows {
        all.insert(row.key.into(), with_origin(json!(row.value), row.origin));
    }
    let mut rules = rules.iter();
    let general = rules.next().map(digest);
    let servers: Vec<Value> = settings
        .servers
        .iter()
        .zip(rules)
        .map(|(server, found)| {
            json!({
                "name": server.name,
                "line": server.at.line,
                "transport": server.transport.to_string(),
                "reached_by": server.summary(),
                "policy": found.source.file().map(|file| file.display().to_string()),
                "policy_source": found.source.label(),
                "policy_digest": found.digest,
                "rules": found.rules,
                "call_timeout": settings.call_timeout_of(Some(server)).to_string(),
                "tool_timeout": settings
                    .tool_timeouts_of(Some(server), &[])
                    .into_iter()
                    .map(|(tool, ms)| (tool, json!(Span(ms).to_string())))
                    .collect::<serde_json::Map<_, _>>(),
                "pin": server.pin.as_ref().map_or(settings.pin.value, |own| own.value).to_string(),
            })
        })
        .collect();
    json!({
        "file": settings.file.as_ref().map(|file| file.display().to_string()),
        "checksum": settings.checksum,
        "settings": all,
        "policy": general,
        "servers": servers,
        "models": models(settings),
        "warnings": warnings,
    })
}

fn models(settings: &Settings) -> Value {
    let models = &settings.models;
    let providers = models.providers.iter().map(|own| {
        json!({ "name": own.name, "line": own.at.line, "reached_by": own.summary(), "keys": own.keys.len(), "models": own.models })
    });
    let aliases = models.aliases.iter().map(|alias| {
        json!({ "name": alias.name, "tiers": alias.tiers, "deadline_ms": alias.deadline_ms })
    });
    let budgets = models.budgets.iter().map(|budget| {
        let (tokens, cost_micros, requests) = match budget.most {
            Most::Tokens(most) => (Some(most), None, None),
            Most::Micros(most) => (None, Some(most), None),
            Most::Requests(most) => (None, None, Some(most)),
        };
        json!({ "name": budget.name, "tokens": tokens, "cost_micros": cost_micros, "requests": requests, "window_ms": budget.window_ms })
    });
    json!({
        "providers": providers.collect::<Vec<_>>(),
        "aliases": aliases.collect::<Vec<_>>(),
        "budgets": budgets.collect::<Vec<_>>(),
    })
}

fn digest(rules: &Rules) -> Value {
    json!({ "rules": rules.rules, "digest": rules.digest })
}

fn with_origin(value: Value, origin: Origin) -> Value {
    match origin {
        Origin::Flag(name) => json!({ "value": value, "from": "flag", "name": name }),
        Origin::Environment(name) => json!({ "value": value, "from": "environment", "name": name }),
        Origin::File(at) => {
            json!({ "value": value, "from": "file", "line": at.line, "column": at.column })
        }
        Origin::Default => json!({ "value": value, "from": "default" }),
    }
}
