//! The binary: wiring, configuration, exit codes. Nothing is decided here.
//!
//! This is the table of contents: what each command does is in the module of its name.

mod agents;
mod agents_command;
mod approvals;
mod audit;
mod budgets;
mod builtin;
mod certificates;
mod check;
mod checker;
mod classes;
mod cli;
mod completions;
mod config;
mod control;
mod demo;
mod directories;
mod disk;
mod failure;
mod flags;
mod help;
mod init;
mod install;
mod instance;
mod instance_state;
mod interrupt;
mod journal_check;
mod keys;
mod lab;
mod launch;
mod layout;
mod limits;
mod local;
mod log;
mod logs;
mod names;
mod notices;
mod notify;
mod otel;
mod pins;
mod places;
mod plural;
mod policy;
mod policy_source;
mod program;
mod providers;
mod reference;
mod reload;
mod route;
mod run;
mod runs;
mod sandbox;
mod screening;
mod serve;
mod servers;
mod sign_in;
mod signed;
mod sim;
mod spend;
mod ssh;
mod status;
mod tools;
mod verify;
mod wrap;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use cli::{Cli, Command};
use config::Settings;
use failure::EXIT_CONFIGURATION;
use layout::fold::Folded;
use places::Places;
use toolkit::files::GuardedFiles;

/// Small blocks are mimalloc's, large ones the system's.
#[global_allocator]
static ALLOCATOR: allocator::ProgramAllocator = allocator::ProgramAllocator;

/// The command line cannot be understood; clap ends with the same.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let own_binary = places::own_binary();
    if let Some(code) = work_for_another(&args, &own_binary) {
        return code;
    }
    let Some((cli, given)) = Cli::read() else {
        return ExitCode::from(EXIT_USAGE);
    };
    // For the test that shows that `make differential` would find a hole in the reader.
    #[cfg(debug_assertions)]
    if let Some(syntax) = places::variable("DURWARD_BLIND_READER")
        && !syntax
            .to_str()
            .is_some_and(gate::paths::reach::blind::stop_reading)
    {
        return ExitCode::from(EXIT_USAGE);
    }
    match &cli.command {
        Command::Ssh(args) => log::start_at(args.level(), cli.verbose),
        _ => log::start(cli.verbose),
    }
    state::directory::tell_of_waits(|held| tracing::warn!("{held}"));
    let source = cli.config_source();
    let mut places = Places::find(cli.state_dir, own_binary);
    let (mut out, mut err) = folded(&cli.command, &args);
    if holds_secrets(&cli.command) {
        sandbox::hide_this_process();
    }
    let settings = match settle(&cli.command, &source, &given, &mut places) {
        Ok(settings) => settings,
        Err(message) => {
            let _ = writeln!(err, "error: {message}");
            return ExitCode::from(EXIT_CONFIGURATION);
        }
    };
    let kept = || install::Kept::of(&given, &source, &places);
    let code = match cli.command {
        Command::Run(args) => run::run(&args, &given, source, settings, &places, &mut err),
        Command::Serve(args) => {
            serve::run(&args, &given, source, settings, &places, &mut out, &mut err)
        }
        Command::Keys(args) => keys::run(&args, &settings, &places, &mut out, &mut err),
        Command::Budgets(args) => budgets::run(&args, &settings, &mut out, &mut err),
        Command::Models(args) => {
            route::run(&args, &settings, &journal_of(&places), &mut out, &mut err)
        }
        Command::Login(args) => sign_in::login(&args, &settings, &places, &mut out, &mut err),
        Command::Logout(args) => sign_in::logout(&args, &settings, &places, &mut out, &mut err),
        Command::Whoami(args) => sign_in::whoami(&args, &places, &mut out, &mut err),
        Command::Agents(args) => {
            let written = (&mut out as &mut dyn Write, &mut err as &mut dyn Write);
            agents_command::run(&args, (&given, source), settings, &places, written)
        }
        Command::Runs(args) => runs::run(&args, &journal_of(&places), &mut out, &mut err),
        Command::Check(args) => check::run(&args, &given, settings, &places, &mut out, &mut err),
        Command::Demo => demo::run(&places, &mut out, &mut err),
        Command::Policy(args) => policy::run(&args, &settings, &places, &mut out, &mut err),
        Command::Audit(args) => audit::run(&args, &journal_of(&places), &mut out, &mut err),
        Command::Logs(args) => logs::run(&args, &journal_of(&places), &mut out, &mut err),
        Command::Reload(args) => control::reload::run(&args, &places, &mut out, &mut err),
        Command::Init(args) => init::run(&args, &source, &places, &mut out, &mut err),
        Command::Servers(args) => {
            servers::run(&args, &source, &settings, &places, &mut out, &mut err)
        }
        Command::Pins(args) => pins::run(&args, &settings, &places, &mut out, &mut err),
        Command::Approvals(args) => approvals::run(&args, &places, &mut out, &mut err),
        Command::Sim(args) => sim::run(args, &mut out, &mut err),
        Command::Ssh(args) => ssh::run(&args, &places, &mut out, &mut err),
        Command::Install(args) => {
            install::run(&args, (&kept(), &settings), &places, &mut out, &mut err)
        }
        Command::Tools(args) => tools::run(&args, &settings, &places, &mut out, &mut err),
        Command::Call(args) => tools::call::run(&args, &settings, &places, &mut out, &mut err),
        Command::Wrap(args) => wrap::wrap(&args, (&kept(), &settings), &places, &mut out, &mut err),
        Command::Unwrap(args) => wrap::unwrap(&args, &places, &mut out, &mut err),
        Command::Status(args) => status::run(&args, &places, &mut out, &mut err),
        Command::Completions(args) => {
            let pages = reference::TOPICS.map(|topic| topic.name);
            completions::completions(&args, (&Cli::line(), &pages), &mut out, &mut err)
        }
        Command::Man(args) => completions::man(&args, Cli::line(), &mut out, &mut err),
        Command::Help(args) => {
            reference::lookup::run(&args, &places.own_binary, &mut out, &mut err)
        }
        Command::Docs { page } => reference::print(&page, &mut out, &mut err),
        Command::Lab(args) => lab::run(&args, &places.own_binary, &mut err),
    };
    // A reader that has seen enough closes the pipe; there is nobody left to tell.
    let _ = out.flush().and(err.flush());
    ExitCode::from(code)
}

/// Standard output and standard error. At a terminal long lines are folded, but for what a program reads and what is
/// copied as it is: JSON, entries of files, results, measurements.
fn folded(
    command: &Command,
    args: &[OsString],
) -> (impl io::Write + use<>, impl io::Write + use<>) {
    let is_json = args.iter().any(|arg| arg == "--json");
    let is_prose = matches!(
        command,
        Command::Check(_)
            | Command::Models(_)
            | Command::Agents(_)
            | Command::Runs(_)
            | Command::Demo
            | Command::Policy(_)
            | Command::Audit(_)
            | Command::Reload(_)
            | Command::Pins(_)
            | Command::Approvals(_)
            | Command::Keys(_)
            | Command::Servers(_)
            | Command::Budgets(_)
            | Command::Status(_)
            | Command::Wrap(_)
            | Command::Unwrap(_)
    );
    let out = layout::screen_width().filter(|_| is_prose && !is_json);
    // Runs report their progress there.
    let is_progress = matches!(command, Command::Sim(_));
    let err = layout::error_width().filter(|_| !is_progress);
    (
        Folded::new(io::stdout(), out),
        Folded::new(log::Tolerant, err),
    )
}

/// Reads the configuration where a command is about it, and settles where things are kept.
fn settle(
    command: &Command,
    source: &config::Source,
    given: &flags::Given,
    places: &mut Places,
) -> Result<Settings, String> {
    let settings = match needs_settings(command) {
        true => config::load(source, places)?,
        false => Settings::default(),
    };
    settings.lay_out(places, given.state_dir);
    places.guarded.merge(wrap::guarded(&places.state));
    places.guarded.merge(named_by(command, places));
    if places.is_homeless && keeps_state(command) {
        return Err("there is nowhere to keep the journal and the keys: HOME is not set\n  hint: set HOME, or give --state-dir DIR".into());
    }
    if keeps_state(command)
        && let Some(file) = places.file_in_the_way()
    {
        return Err(format!(
            "the state directory cannot be {}: {} is a file\n  hint: name a directory with --state-dir DIR; it is created if it does not exist",
            places.state.display(),
            file.display()
        ));
    }
    Ok(settings)
}

/// Returns the files that the command line names or runs.
fn named_by(command: &Command, places: &Places) -> GuardedFiles {
    match command {
        Command::Run(args) => args.guarded(places),
        Command::Serve(args) => args.guarded(places),
        _ => GuardedFiles::default(),
    }
}

/// Does what this program has started itself for: watches a child, runs a model, or serves the files of the tour.
fn work_for_another(args: &[OsString], own_binary: &Path) -> Option<ExitCode> {
    if let Some(code) = net::watcher::intercept(args, own_binary) {
        return Some(ExitCode::from(code));
    }
    let command = args.first()?;
    if command == demo::SERVER_COMMAND {
        // The tour has ended, or it reads no longer.
        let _ = demo::serve();
        return Some(ExitCode::SUCCESS);
    }
    let is_worker = command == simulation::WORKER_COMMAND;
    is_worker.then(|| {
        // Whoever started it has gone, or does not read it: there is nobody to tell.
        let _ = simulation::work_for_another(io::stdin(), &mut io::stdout());
        ExitCode::SUCCESS
    })
}

/// The journal that reading commands are about.
fn journal_of(places: &Places) -> audit::Context {
    audit::Context {
        paths: places.paths(),
        journal: places.journal(),
        now_ms: local::now_ms(),
    }
}

/// Whether a command reads or writes what is kept below the home.
fn keeps_state(command: &Command) -> bool {
    needs_settings(command) || matches!(command, Command::Init(_))
}

/// Whether a command may have keys or passwords in its memory: those of the state, of a configuration or of SSH hosts.
fn holds_secrets(command: &Command) -> bool {
    keeps_state(command) || matches!(command, Command::Ssh(_))
}

/// Whether a command looks at the state, or at what the configuration says.
fn needs_settings(command: &Command) -> bool {
    match command {
        Command::Run(_)
        | Command::Serve(_)
        | Command::Keys(_)
        | Command::Login(_)
        | Command::Logout(_)
        | Command::Whoami(_)
        | Command::Budgets(_)
        | Command::Check(_)
        | Command::Models(_)
        | Command::Agents(_)
        | Command::Runs(_)
        | Command::Policy(_)
        | Command::Pins(_)
        | Command::Audit(_)
        | Command::Logs(_)
        | Command::Reload(_)
        | Command::Install(_)
        | Command::Tools(_)
        | Command::Call(_)
        | Command::Wrap(_)
        | Command::Unwrap(_)
        | Command::Approvals(_)
        | Command::Servers(_)
        | Command::Status(_) => true,
        Command::Demo
        | Command::Init(_)
        | Command::Sim(_)
        | Command::Ssh(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Help(_)
        | Command::Docs { .. }
        | Command::Lab(_) => false,
    }
}
