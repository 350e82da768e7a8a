//! The standard set: the hop over stdio beside a bare relay, against the budget. `make bench` runs it.

mod approval;
mod budget;
mod check;
mod idle;
mod journal_rate;
mod markdown;
mod own_cost;
mod plans;
mod scene;
mod web;

use crate::compare::EXIT_REGRESSED;
use crate::driver::Protocol;
use crate::error::LabError;
use crate::interrupt::Interrupt;
use crate::overhead::{self, Analysis, Monitor};
use crate::profile::{Calls, Way};
use crate::progress::{Kind, Progress};
use crate::{Context, host, profile};
use idle::Idle;
use journal_rate::JournalRate;
use own_cost::OwnCost;
use scene::{Rules, Scene, Server};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use web::{Peer, Web};

/// Measure the standard set: echo and files, direct, behind a bare relay, behind `durward run`
#[derive(Debug, clap::Args)]
pub struct StandardArgs {
    /// Write the tables to this file, and a profile beside it where a budget is missed
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Three short launches: indicative
    #[arg(long)]
    quick: bool,
    /// Keep client, arms and servers on this core [default: the last one]
    #[arg(long, value_name = "CORE")]
    pin: Option<usize>,
    /// What the order of the turns is drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A peer to stand beside: its command, to which the server's command or URL is added; repeatable
    #[arg(long, value_name = "NAME=CMD")]
    peer: Vec<String>,
    /// Write the profile whether a budget is missed or not
    #[arg(long, value_name = "WAY", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "auto", requires = "write")]
    profile: Option<Way>,
    /// The official filesystem server: its command, to which the directory that it may see is added
    #[arg(long, value_name = "CMD")]
    filesystem_server: Option<String>,
    /// A peer over HTTP: what stands before its tools' names, its address and its command, to which `-- CMD` or `--url URL`
    /// of the server is added; repeatable
    #[arg(long, value_name = "NAME[:PREFIX]=URL -- CMD")]
    http_peer: Vec<Peer>,
    /// Print the budgets row by row instead of the tables; exit 99 where one is missed
    #[arg(long, conflicts_with_all = ["json", "write"])]
    check: bool,
    /// Print one JSON document instead of the tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// One comparison of the set.
#[derive(Debug, Serialize)]
struct Group {
    title: &'static str,
    /// Whether the budget of the hop is held against its guarded arms.
    budgeted: bool,
    #[serde(flatten)]
    analysis: Analysis,
}

/// All that was measured.
#[derive(Debug, Serialize)]
struct Standard {
    format: &'static str,
    quick: bool,
    groups: Vec<Group>,
    idle: Idle,
    own_cost: OwnCost,
    web: Web,
    journal_rate: JournalRate,
    /// What `durward audit verify` said of the journal written meanwhile.
    journal: String,
    /// The name of the profile's file, or why there is none; nothing where none was asked for or due.
    profile: Option<String>,
}

struct Size {
    launches: u32,
    runs: u32,
    warmup: u32,
}

/// Runs `lab standard`.
pub(crate) fn run(
    args: &StandardArgs,
    context: &Context,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, LabError> {
    let scene = Scene::set(&context.own_binary, args.filesystem_server.as_deref())?;
    let size = match args.quick {
        true => Size {
            launches: 3,
            runs: 500,
            warmup: 100,
        },
        false => Size {
            launches: 10,
            runs: 4_000,
            warmup: 400,
        },
    };
    let interrupt = Interrupt::listen()?;
    let mut groups = Vec::new();
    for (title, budgeted, plan) in plans::plans(args, &scene, &size)? {
        // Progress that nobody reads is not missed.
        let _ = writeln!(err, "{title}");
        let load = host::load_average();
        let progress = Progress::new(&mut *err, Kind::Quiet);
        let mut monitor = Monitor::new(progress, interrupt.clone());
        let measured = overhead::measure(&plan, &mut monitor)?;
        if measured.aborted {
            return Err(LabError::Aborted);
        }
        groups.push(Group {
            title,
            budgeted,
            analysis: Analysis::of(&plan, &measured, load, context),
        });
    }
    let web = web::measure(args, &scene, &size, context, &interrupt, err)?;
    let _ = writeln!(err, "start and rest");
    let idle = idle::measure(&scene, size.launches, 0.95)?;
    let own_cost = own_cost::measure(&scene)?;
    let journal_rate = journal_rate::measure(&scene, context, size.launches, 0.95)?;
    let state = scene.state(Server::Files, Rules::Mixed(50));
    let journal = verify(&state.join("journal"), "durward, 50 rules", context)?;
    let mut standard = Standard {
        format: "durward-lab-standard/1",
        quick: args.quick,
        groups,
        idle,
        own_cost,
        web,
        journal_rate,
        journal,
        profile: None,
    };
    if args.check {
        let kept = check::write(&standard, out).map_err(|source| LabError::System {
            what: "write the result",
            source,
        })?;
        return Ok(if kept { 0 } else { EXIT_REGRESSED });
    }
    if budget::short(&standard) || args.profile.is_some() {
        let way = args.profile.unwrap_or(Way::Auto);
        standard.profile = Some(profile_beside(args.write.as_deref(), &scene, way)?);
    }
    finish(args, &standard, out)?;
    Ok(0)
}

/// Asks our own binary whether an arm's journal is what was written.
fn verify(journal: &Path, arm: &str, context: &Context) -> Result<String, LabError> {
    let state = journal.parent().unwrap_or(journal);
    let output = std::process::Command::new(&context.own_binary)
        .args(["--no-config", "--state-dir"])
        .arg(state)
        .args(["audit", "verify"])
        .output()
        .map_err(|source| LabError::path(&context.own_binary, source))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default().to_owned();
    if output.status.success() {
        return Ok(last);
    }
    Err(LabError::Invalid {
        arm: arm.into(),
        what: format!("its journal does not verify: {last}"),
    })
}

/// Profiles the arm with 50 rules; gives the name of the file, or why there is none.
fn profile_beside(beside: Option<&Path>, scene: &Scene, way: Way) -> Result<String, LabError> {
    let Some(beside) = beside else {
        return Ok("none: --write names the place for it".into());
    };
    let arm = scene.guarded(Server::Files, Rules::Mixed(50))?;
    let operation = scene.read();
    let calls = Calls {
        operation: &operation,
        protocol: Protocol::Legacy,
        person: None,
    };
    let text = match profile::of_arm(&arm, calls, way, &scene.file("perf.data"))? {
        Ok(text) => text,
        Err(why) => return Ok(format!("none: {why}")),
    };
    let stem = beside.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}-profile.txt");
    let file = beside.with_file_name(&name);
    // The directory's name changes with every run and tells nothing.
    let text = text.replace(&*scene.file("").to_string_lossy(), "/tmp/");
    std::fs::write(&file, text).map_err(|source| LabError::path(&file, source))?;
    Ok(name)
}

fn finish(args: &StandardArgs, standard: &Standard, out: &mut dyn Write) -> Result<(), LabError> {
    let tables = markdown::render(standard);
    if let Some(file) = &args.write {
        std::fs::write(file, &tables).map_err(|source| LabError::path(file, source))?;
    }
    let written = if args.json {
        serde_json::to_writer_pretty(&mut *out, standard)
            .map_err(std::io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        out.write_all(tables.as_bytes())
    };
    written.map_err(|source| LabError::System {
        what: "write the result",
        source,
    })
}
