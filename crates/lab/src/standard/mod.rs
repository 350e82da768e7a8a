//! The standard set: the hop over stdio beside a bare relay, against the budget. `make bench` runs it.

mod budget;
mod idle;
mod markdown;
mod policies;
mod profile;
mod scene;

use crate::driver::{Answers, Operation, Protocol};
use crate::error::LabError;
use crate::overhead::{self, Analysis, Plan};
use crate::{Context, affinity, host};
use idle::Idle;
use scene::{Rules, Scene, Server, path_error};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

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
    /// Print one JSON document instead of the tables
    #[arg(long)]
    json: bool,
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
    /// What `durward audit verify` said of the journal written meanwhile.
    journal: String,
    /// The name of the profile's file, or why there is none; nothing where no budget was missed.
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
    let scene = Scene::set(&context.own_binary)?;
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
    let mut groups = Vec::new();
    for (title, budgeted, plan) in plans(args, &scene, &size)? {
        // Progress that nobody reads is not missed.
        let _ = writeln!(err, "{title}");
        let load = host::load_average();
        let samples = overhead::measure(&plan, err)?;
        groups.push(Group {
            title,
            budgeted,
            analysis: Analysis::of(&plan, &samples, load, context),
        });
    }
    let _ = writeln!(err, "start and rest");
    let idle = idle::measure(&scene, size.launches, 0.95)?;
    let journal = verify(&scene, context)?;
    let mut standard = Standard {
        format: "durward-lab-standard/1",
        quick: args.quick,
        groups,
        idle,
        journal,
        profile: None,
    };
    if budget::short(&standard) {
        standard.profile = Some(profile_beside(args.write.as_deref(), &scene)?);
    }
    finish(args, &standard, out)?;
    Ok(0)
}

fn plans(
    args: &StandardArgs,
    scene: &Scene,
    size: &Size,
) -> Result<Vec<(&'static str, bool, Plan)>, LabError> {
    let plan = |arms, operation, deny| Plan {
        arms,
        operation,
        protocol: Protocol::Legacy,
        launches: size.launches,
        runs: size.runs,
        warmup: size.warmup,
        turn: size.runs.div_ceil(4),
        delay_us: 0,
        pin: args.pin.or_else(affinity::last_core),
        seed: args.seed,
        timeout_ms: 10_000,
        confidence: 0.95,
        answers: Answers::Same,
        deny,
        quiet: true,
    };
    let guarded = |server, rules| scene.guarded(server, rules);
    let hello = Operation::Call {
        tool: "echo".into(),
        arguments: serde_json::json!({ "text": "hello" }),
    };
    let (echo, files) = (Server::Echo, Server::Files);
    let files_arms = vec![
        scene.direct(files),
        scene.relayed(files),
        guarded(files, Rules::AllowAll)?,
        guarded(files, Rules::Four)?,
        guarded(files, Rules::Mixed(50))?,
        guarded(files, Rules::Mixed(1_000))?,
    ];
    let echo_arms = vec![
        scene.direct(echo),
        scene.relayed(echo),
        guarded(echo, Rules::AllowAll)?,
    ];
    let deny_arms = vec![scene.direct(files), guarded(files, Rules::Four)?];
    Ok(vec![
        (
            "`tools/call echo`",
            true,
            plan(echo_arms.clone(), hello, false),
        ),
        (
            "`tools/call read_file`, allowed",
            true,
            plan(files_arms, scene.read(), false),
        ),
        (
            "`tools/list` (echo)",
            false,
            plan(echo_arms, Operation::List, false),
        ),
        (
            "`tools/call read_file`, denied by a rule",
            false,
            plan(deny_arms, scene.read_forbidden(), true),
        ),
    ])
}

/// Asks our own binary whether the journal of the 50-rule arm is what was written.
fn verify(scene: &Scene, context: &Context) -> Result<String, LabError> {
    let state = scene.state(Server::Files, Rules::Mixed(50));
    let output = std::process::Command::new(&context.own_binary)
        .args(["--no-config", "--state-dir"])
        .arg(&state)
        .args(["audit", "verify"])
        .output()
        .map_err(|source| path_error(&context.own_binary, source))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default().to_owned();
    if output.status.success() {
        return Ok(last);
    }
    Err(LabError::Invalid {
        arm: "durward, 50 rules".into(),
        what: format!("its journal does not verify: {last}"),
    })
}

/// Profiles the arm with 50 rules; gives the name of the file, or why there is none.
fn profile_beside(beside: Option<&Path>, scene: &Scene) -> Result<String, LabError> {
    let Some(beside) = beside else {
        return Ok("none: --write names the place for it".into());
    };
    let arm = scene.guarded(Server::Files, Rules::Mixed(50))?;
    let text = match profile::summary(scene, &arm, &scene.read())? {
        Ok(text) => text,
        Err(why) => return Ok(format!("none: {why}")),
    };
    let stem = beside.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}-profile.txt");
    let file = beside.with_file_name(&name);
    // The directory's name changes with every run and tells nothing.
    let text = text.replace(&*scene.file("").to_string_lossy(), "/tmp/");
    std::fs::write(&file, text).map_err(|source| path_error(&file, source))?;
    Ok(name)
}

fn finish(args: &StandardArgs, standard: &Standard, out: &mut dyn Write) -> Result<(), LabError> {
    let tables = markdown::render(standard);
    if let Some(file) = &args.write {
        std::fs::write(file, &tables).map_err(|source| path_error(file, source))?;
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
