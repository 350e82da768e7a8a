//! What a process in the middle costs: the same calls to the same server, direct and through each variant.
//!
//! Design: a launch starts every variant afresh. Within it the variants take turns; the order of the turns is
//! random for each launch and reversed in every second round (ABBA), so that drift and warmth fall on
//! all variants alike. Call i of a variant is paired with call i of the baseline in the same launch; the launch's
//! estimate is the median of these differences; the interval is Student's t over launches, from 20 launches
//! on a bootstrap over them.

mod analysis;
mod approval;
mod args;
mod measure;
mod monitor;
mod report;
mod stages;
mod store;
mod summary;
mod usage;

#[cfg(test)]
mod proofs;

pub(crate) use analysis::{Analysis, ArmFigures, Comparison, FORMAT};
use args::BARE_BRIDGE;
pub use args::OverheadArgs;
use measure::Measured;
pub(crate) use measure::{Plan, measure};
pub(crate) use monitor::Monitor;
pub(crate) use report::{loads, point, text, whole};
use store::Store;

use crate::driver::Link;
use crate::error::{EXIT_ABORTED, EXIT_FAILED, LabError};
use crate::guarded::{Behind, Workshop, slug};
use crate::interrupt::Interrupt;
use crate::profile::{Calls, Way};
use crate::progress::Progress;
use crate::run::{Manifest, RunDirectory, Sampler, write_document, write_whole};
use crate::variant::{Transport, Variant};
use crate::{Context, host, policies, profile, wall_clock};
use std::io::Write;

/// Runs `lab overhead`.
pub(crate) fn run(
    args: &OverheadArgs,
    context: &Context,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, LabError> {
    let workshop = (!args.rules.is_empty() || args.is_bridge())
        .then(|| Workshop::set(context))
        .transpose()?;
    let plan = args.plan(made(args, workshop.as_ref())?)?;
    let (interrupt, load_before) = (Interrupt::listen()?, host::load_average());
    let place = args.out.as_deref();
    let run = place
        .map(|place| RunDirectory::create(place, "overhead"))
        .transpose()?;
    let manifest = Manifest::of("overhead", &format!("{plan:?}"), plan.seed, context);
    let sampler = run.as_ref().map(Sampler::start).transpose()?;
    let started_ms = wall_clock::now_ms();
    let store = run.map(|run| Store::begin(run, manifest, started_ms));
    let progress = Progress::new(&mut *err, args.progress.kind(context));
    let mut monitor = Monitor::new(progress, interrupt);
    monitor.sampler = sampler;
    monitor.store = store.transpose()?;
    let measured = measure(&plan, &mut monitor)?;
    let (sampler, store) = (monitor.sampler.take(), monitor.store.take());
    let unkept = monitor.unkept.take();
    drop(monitor);
    let analysis = Analysis::of(&plan, &measured, load_before, context);
    let mut kept = unkept.map_or(Ok(()), Err);
    if let (Some(store), Ok(())) = (store, &kept) {
        let place = store.run().path().to_path_buf();
        kept = finish(
            store,
            sampler,
            &plan,
            &analysis,
            &measured,
            args.profile,
            err,
        );
        if kept.is_ok() {
            // Whoever does not read it finds the directory all the same.
            let _ = writeln!(err, "stored in {}", place.display());
        }
    }
    if let Some(error) = measured.failure {
        return Err(error);
    }
    if let (Some(file), Ok(())) = (&args.output, &kept) {
        kept = write_document(file, &analysis);
    }
    let written = if args.json {
        report::json(&analysis, out)
    } else {
        report::text(&analysis, out)
    };
    written.map_err(|source| LabError::System {
        what: "write the result",
        source,
    })?;
    if let Err(error) = kept {
        // The figures were told; that they were not kept is said beside them.
        let _ = writeln!(err, "error: not stored: {error}");
        return Ok(EXIT_FAILED);
    }
    Ok(if measured.aborted { EXIT_ABORTED } else { 0 })
}

/// Keeps the figures, and the profiles where they were asked for.
fn finish(
    store: Store,
    sampler: Option<Sampler>,
    plan: &Plan,
    analysis: &Analysis,
    measured: &Measured,
    way: Option<Way>,
    err: &mut dyn Write,
) -> Result<(), LabError> {
    sampler.map(Sampler::finish).transpose()?;
    let run = store.finish(plan, analysis, measured)?;
    match way {
        Some(way) if !measured.aborted && measured.failure.is_none() => {
            profiles(plan, way, &run, err)
        }
        _ => Ok(()),
    }
}

/// Profiles every variant, one after the other; a profile that cannot be made is told of, and no failure.
fn profiles(
    plan: &Plan,
    way: Way,
    run: &RunDirectory,
    err: &mut dyn Write,
) -> Result<(), LabError> {
    let alone = Calls {
        operation: &plan.operation,
        protocol: plan.protocol,
        person: None,
    };
    // Arms that stand before the first one need it while they are called.
    let first = plan
        .arms
        .first()
        .filter(|_| plan.arms.iter().any(Variant::wants_direct));
    let first = first.map(|arm| profile::open(arm, alone)).transpose()?;
    let direct = first.as_ref().and_then(Link::url);
    for (at, arm) in plan.arms.iter().enumerate() {
        let placed = direct.as_deref().map(|direct| arm.behind(direct));
        let arm = placed.as_ref().unwrap_or(arm);
        let calls = Calls {
            person: plan.person.as_ref().filter(|_| at >= plan.references),
            ..alone
        };
        let name = slug(&arm.name);
        let data = run.file(&format!("perf-{name}.data"));
        match profile::of_arm(arm, calls, way, &data)? {
            Ok(page) => write_whole(&run.file(&format!("profile-{name}.txt")), page.as_bytes())?,
            Err(why) => {
                // Who does not read it misses a page and nothing else.
                let _ = writeln!(err, "warning: no profile of variant {}: {why}", arm.name);
            }
        }
    }
    if let Some(first) = first {
        first.close();
    }
    Ok(())
}

/// The variants of `--rules` and `--topology`.
fn made(args: &OverheadArgs, workshop: Option<&Workshop>) -> Result<Vec<Variant>, LabError> {
    let (Some(workshop), Some(direct)) = (workshop, args.direct()?) else {
        return Ok(Vec::new());
    };
    let mut arms = Vec::new();
    if args.is_bridge() {
        arms.push(workshop.bridge().named(BARE_BRIDGE.into()));
    }
    for count in &args.rules {
        let rules = policies::mixed_for(args.tool_of_rules(), args.effect(), *count as usize);
        let name = match count {
            1 => "durward, 1 rule".to_owned(),
            more => format!("durward, {more} rules"),
        };
        arms.push(match (args.is_bridge(), direct.transport()) {
            (true, _) => workshop.guard(&name, &rules, Behind::Url("{direct}"))?,
            (false, Transport::Stdio) => {
                workshop.guard(&name, &rules, Behind::Command(direct.command()))?
            }
            (false, Transport::Http) => workshop.serve(&name, &rules, Behind::Url("{direct}"))?,
        });
    }
    Ok(arms)
}
