//! `durward servers`: the servers of the configuration, added, archived and restored in place.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use admin::servers::{
    self, ArchivedServer, ConfigurationFile, ConfiguredServer, ServerEntry, add_server,
    archive_server, list_archived, restore_server,
};
use admin::{AdminError, status};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::config::server::Server;
use crate::config::{self, Settings, Source};
use crate::failure::{self, CommandFamily};
use crate::layout;
use crate::layout::table::{Column, Long, Table};
use crate::local;
use crate::names::server_name;
use crate::places::Places;

pub const HELP: &str = "\
Examples:
  durward servers list
  durward servers add files -- npx -y @modelcontextprotocol/server-filesystem ~/work
  durward servers add docs --url https://example.org/mcp --policy docs.json
  durward servers show files
  durward servers archive docs            take it out of the configuration, and keep its lines
  durward servers restore docs            put the same lines back

The configuration is edited in place: other lines keep their bytes, comments included. An edit that would leave a
configuration that cannot be used is refused before anything is written. A running durward serve takes up the change
within a second, unless --no-watch was given; pins and journal of an archived server stay.

Exit codes: 0 done; 1 there is no such server, or there is one already, or an instance of durward run guards it; 2 a file
cannot be read or written; 16 the configuration could not be used.";

/// Arguments of `durward servers`.
#[derive(Debug, Args)]
pub struct ServersArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the servers of the configuration, with their pins and running instances
    List {
        /// List archived servers instead
        #[arg(long)]
        archived: bool,
        /// Print one JSON object for each server
        #[arg(long)]
        json: bool,
    },
    /// Show one server
    Show {
        /// The server
        #[arg(value_name = "NAME")]
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Add a server to the configuration
    Add(AddArgs),
    /// Take a server out of the configuration and keep its lines
    Archive {
        /// The server
        #[arg(value_name = "NAME")]
        name: String,
        /// Archive it although an instance of `durward run` guards it
        #[arg(long)]
        force: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Put an archived server back
    Restore {
        /// The server
        #[arg(value_name = "NAME")]
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Its name in rules, logs and commands
    #[arg(value_name = "NAME", value_parser = server_name)]
    name: String,
    /// URL of a server over HTTP
    #[arg(
        long,
        value_name = "URL",
        conflicts_with = "start",
        required_unless_present = "start"
    )]
    url: Option<String>,
    /// A header of each request, as `NAME: VALUE`; `${VARIABLE}` is replaced at the start; repeatable
    #[arg(long = "header", value_name = "HEADER", requires = "url", value_parser = header)]
    headers: Vec<(String, String)>,
    /// A variable of the server's environment, as NAME=VALUE; `${VARIABLE}` is replaced at the start; repeatable
    #[arg(long = "env", value_name = "NAME=VALUE", conflicts_with = "url", value_parser = variable)]
    environment: Vec<(String, String)>,
    /// Rules of this server [default: those of the configuration]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Command that starts a server over stdio
    #[arg(last = true, value_name = "CMD")]
    start: Vec<String>,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write NAME: VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl AddArgs {
    /// Returns the entry of the configuration.
    fn entry(&self) -> Value {
        let table = |pairs: &[(String, String)]| {
            let pairs = pairs.iter().cloned();
            Value::Object(pairs.map(|(name, value)| (name, json!(value))).collect())
        };
        let mut entry = Map::new();
        if let Some(url) = &self.url {
            entry.insert("url".into(), json!(url));
        }
        if let Some((command, args)) = self.start.split_first() {
            entry.insert("command".into(), json!(command));
            if !args.is_empty() {
                entry.insert("args".into(), json!(args));
            }
        }
        if !self.headers.is_empty() {
            entry.insert("headers".into(), table(&self.headers));
        }
        if !self.environment.is_empty() {
            entry.insert("env".into(), table(&self.environment));
        }
        if let Some(policy) = &self.policy {
            entry.insert("policy".into(), json!(policy));
        }
        Value::Object(entry)
    }
}

/// Why a command could not do its work.
enum Failure {
    Admin(AdminError),
    Write(io::Error),
}

impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Self {
        Self::Admin(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// What the commands are about.
struct Context<'c> {
    settings: &'c Settings,
    places: &'c Places,
    /// The configuration file; absent if none is to be read.
    file: Option<PathBuf>,
}

/// Runs the command and returns its exit code.
pub fn run(
    args: &ServersArgs,
    source: &Source,
    settings: &Settings,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let context = Context {
        settings,
        places,
        file: config::file_of(source, places),
    };
    let done = match &args.command {
        Command::List {
            archived: false,
            json,
        } => context.list(*json, out, err),
        Command::List {
            archived: true,
            json,
        } => context.list_archived(*json, out),
        Command::Show { name, json } => context.show(name, *json, out, err),
        Command::Add(args) => context.add(args, out),
        Command::Archive { name, force, json } => context.archive(name, *force, *json, out),
        Command::Restore { name, json } => context.restore(name, *json, out),
    };
    match done.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => 0,
        Err(Failure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(Failure::Write(error)) => {
            let _ = writeln!(err, "error: cannot write: {error}");
            2
        }
        Err(Failure::Admin(error)) => {
            let _ = writeln!(err, "error: {error}");
            failure::exit_code(CommandFamily::Servers, error.kind())
        }
    }
}

/// The columns of `servers list`.
const COLUMNS: [Column; 5] = [
    Column::new("server", 8, Long::Cut),
    Column::new("kind", 0, Long::Whole),
    Column::new("command or URL", 16, Long::Cut),
    Column::new("pinned", 0, Long::Whole).of_rank(1),
    Column::new("running", 0, Long::Whole).of_rank(2),
];
/// The columns of `servers list --archived`.
const ARCHIVED: [Column; 3] = [
    Column::new("server", 8, Long::Cut),
    Column::new("archived", 0, Long::Whole),
    Column::new("from", 12, Long::CutFront).of_rank(1),
];

impl Context<'_> {
    fn with_file<T>(
        &self,
        edit: impl FnOnce(&ConfigurationFile<'_>) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        let path = self.file.as_deref().ok_or_else(|| AdminError::Refused {
            label: "no_configuration".into(),
            message: "--no-config was given, so that there is no configuration to edit".into(),
        })?;
        let validate = |text: &str| config::check_text(text, path, self.places);
        edit(&ConfigurationFile {
            path,
            validate: &validate,
        })
    }

    fn entries(&self, err: &mut dyn Write) -> Vec<ServerEntry> {
        let configured = self.settings.servers.iter();
        let configured = configured.map(|server| self.configured(server)).collect();
        let listed = servers::list(configured, &self.places.paths());
        for warning in &listed.warnings {
            let _ = writeln!(err, "warning: {warning}");
        }
        listed.servers
    }

    fn configured(&self, server: &Server) -> ConfiguredServer {
        ConfiguredServer {
            name: server.name.clone(),
            transport: server.transport.to_string(),
            target: server.summary(),
            policy: self.settings.policy_of(Some(server)).0.to_string(),
        }
    }

    fn list(&self, json: bool, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Failure> {
        let entries = self.entries(err);
        if json {
            for entry in &entries {
                layout::json_line(entry, out)?;
            }
            return Ok(());
        }
        if entries.is_empty() {
            writeln!(
                out,
                "no server is configured; add one with: durward servers add NAME -- CMD"
            )?;
            return Ok(());
        }
        let row = |entry: &ServerEntry| {
            let pinned = match (entry.waiting_tools, &entry.pins_error) {
                (_, Some(_)) => "damaged".to_owned(),
                (0, None) => entry.pinned_tools.to_string(),
                (waiting, None) => format!("{}, {waiting} waiting", entry.pinned_tools),
            };
            vec![
                entry.server.name.clone(),
                entry.server.transport.clone(),
                entry.server.target.escape_debug().to_string(),
                pinned,
                entry.instances.len().to_string(),
            ]
        };
        print_table(&COLUMNS, entries.iter().map(row).collect(), out)?;
        Ok(())
    }

    fn list_archived(&self, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
        let is_configured = |name: &str| self.settings.server(name).is_some();
        let archived = list_archived(&self.places.paths(), &is_configured)?;
        if json {
            for server in &archived {
                layout::json_line(server, out)?;
            }
            return Ok(());
        }
        if archived.is_empty() {
            writeln!(out, "no server is archived")?;
            return Ok(());
        }
        let row = |server: &ArchivedServer| {
            vec![
                server.name.escape_debug().to_string(),
                server.time.escape_debug().to_string(),
                server.file.display().to_string(),
            ]
        };
        print_table(&ARCHIVED, archived.iter().map(row).collect(), out)?;
        Ok(())
    }

    fn show(
        &self,
        name: &str,
        json: bool,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<(), Failure> {
        let entries = self.entries(err);
        let mut found = entries.iter();
        let entry = found.find(|entry| entry.server.name == name);
        let entry = entry.ok_or_else(|| AdminError::NoServer(name.to_owned()))?;
        if json {
            layout::json(entry, out)?;
            return Ok(());
        }
        let server = &entry.server;
        writeln!(out, "server   {}", server.name)?;
        writeln!(
            out,
            "{:8} {}",
            server.transport,
            server.target.escape_debug()
        )?;
        writeln!(out, "policy   {}", server.policy)?;
        match &entry.pins_error {
            Some(error) => writeln!(out, "pins     {error}")?,
            None => writeln!(
                out,
                "pins     {}, {} waiting",
                entry.pinned_tools, entry.waiting_tools
            )?,
        }
        match entry.instances.as_slice() {
            [] => writeln!(out, "running  no")?,
            sockets => {
                for socket in sockets {
                    writeln!(out, "running  {socket}")?;
                }
            }
        }
        Ok(())
    }

    fn add(&self, args: &AddArgs, out: &mut dyn Write) -> Result<(), Failure> {
        let entry = args.entry();
        self.with_file(|file| add_server(file, &self.places.paths(), &args.name, &entry))?;
        writeln!(out, "{}: added {}", self.shown(), args.name)?;
        writeln!(
            out,
            "next: durward tools {0}, or durward run {0}",
            args.name
        )?;
        Ok(())
    }

    fn archive(
        &self,
        name: &str,
        force: bool,
        json: bool,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let paths = self.places.paths();
        let running = status::list_instances(&paths, false).instances;
        let guards = running.iter().find(|instance| {
            instance.status.serving.is_none() && instance.status.server.as_deref() == Some(name)
        });
        if let Some(instance) = guards.filter(|_| !force) {
            let error = AdminError::InUse(format!(
                "durward run guards {name} (process {}); end it first, or give --force",
                instance.status.pid
            ));
            return Err(error.into());
        }
        let archived =
            self.with_file(|file| archive_server(file, &paths, name, local::now_ms()))?;
        match json {
            true => layout::json(&archived, out)?,
            false => writeln!(
                out,
                "{}: archived {name}; durward servers restore {name} puts it back",
                self.shown()
            )?,
        }
        Ok(())
    }

    fn restore(&self, name: &str, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
        let paths = self.places.paths();
        let restored = self.with_file(|file| restore_server(file, &paths, name))?;
        match (json, restored.exact) {
            (true, _) => layout::json(&restored, out)?,
            (false, true) => writeln!(out, "{}: restored {name}", self.shown())?,
            (false, false) => writeln!(
                out,
                "{}: restored {name} behind the other servers, because the file was changed meanwhile",
                self.shown()
            )?,
        }
        Ok(())
    }

    fn shown(&self) -> String {
        let path = self.file.as_deref().unwrap_or(Path::new("durward.yaml"));
        path.display().to_string()
    }
}

fn print_table(columns: &[Column], rows: Vec<Vec<String>>, out: &mut dyn Write) -> io::Result<()> {
    let table = Table::of(columns, &rows, layout::screen_width(), 0);
    table.heading(out)?;
    rows.iter().try_for_each(|row| table.row(row, out))
}
