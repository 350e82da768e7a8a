//! Cost of a process in the middle: the same calls to the same server, direct and through each variant.
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

pub(crate) use analysis::{ArmFigures, FORMAT, OverheadAnalysis, VariantComparison};
use args::BARE_BRIDGE;
pub use args::OverheadArgs;
use measure::OverheadMeasurement;
pub(crate) use measure::{OverheadPlan, measure};
pub(crate) use monitor::RunMonitor;
pub(crate) use report::{loads, point, text, whole};
use store::OverheadStore;

use crate::driver::VariantLink;
use crate::error::{EXIT_ABORTED, EXIT_FAILED, LabError};
use crate::guarded::{GuardedBackend, GuardedDirectory, slug};
use crate::interrupt::InterruptFlag;
use crate::profile::{ProfileMethod, ProfiledCalls};
use crate::progress::ProgressOutput;
use crate::run::{ResourceSampler, RunDirectory, RunManifest, write_document, write_whole};
use crate::variant::{Variant, VariantTransport};
use crate::{LabContext, host, policies, profile, wall_clock};
use std::io::Write;

/// Runs `lab overhead`.
pub(crate) fn run(
    args: &OverheadArgs,
    context: &LabContext,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, LabError> {
    let workshop = (!args.rules.is_empty() || args.is_bridge())
        .then(|| GuardedDirectory::set(context))
        .transpose()?;
    let plan = args.plan(make_variants(args, workshop.as_ref())?)?;
    let (interrupt, load_before) = (InterruptFlag::listen()?, host::load_average());
    let place = args.out.as_deref();
    let run = place
        .map(|place| RunDirectory::create(place, "overhead"))
        .transpose()?;
    let manifest = RunManifest::of("overhead", &format!("{plan:?}"), plan.seed, context);
    let sampler = run.as_ref().map(ResourceSampler::start).transpose()?;
    let started_ms = wall_clock::now_ms();
    let store = run.map(|run| OverheadStore::begin(run, manifest, started_ms));
    let progress = ProgressOutput::new(&mut *err, args.progress.kind(context));
    let mut monitor = RunMonitor::new(progress, interrupt);
    monitor.sampler = sampler;
    monitor.store = store.transpose()?;
    let measured = measure(&plan, &mut monitor)?;
    let (sampler, store) = (monitor.sampler.take(), monitor.store.take());
    let unkept = monitor.unkept.take();
    drop(monitor);
    let analysis = OverheadAnalysis::of(&plan, &measured, load_before, context);
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
            // The directory is there even if this line cannot be written.
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
        // The figures are printed already; this adds that they were not stored.
        let _ = writeln!(err, "error: not stored: {error}");
        return Ok(EXIT_FAILED);
    }
    Ok(if measured.aborted { EXIT_ABORTED } else { 0 })
}

/// Keeps the figures, and the profiles if they were requested.
fn finish(
    store: OverheadStore,
    sampler: Option<ResourceSampler>,
    plan: &OverheadPlan,
    analysis: &OverheadAnalysis,
    measured: &OverheadMeasurement,
    way: Option<ProfileMethod>,
    err: &mut dyn Write,
) -> Result<(), LabError> {
    sampler.map(ResourceSampler::finish).transpose()?;
    let run = store.finish(plan, analysis, measured)?;
    match way {
        Some(way) if !measured.aborted && measured.failure.is_none() => {
            profiles(plan, way, &run, err)
        }
        _ => Ok(()),
    }
}

/// Profiles every variant, one after the other; a failed profile is reported and does not fail the run.
fn profiles(
    plan: &OverheadPlan,
    way: ProfileMethod,
    run: &RunDirectory,
    err: &mut dyn Write,
) -> Result<(), LabError> {
    let alone = ProfiledCalls {
        operation: &plan.operation,
        protocol: plan.protocol,
        person: None,
    };
    // Variants in front of the first one need it while they are called.
    let first = plan
        .arms
        .first()
        .filter(|_| plan.arms.iter().any(Variant::wants_direct));
    let first = first.map(|arm| profile::open(arm, alone)).transpose()?;
    let direct = first.as_ref().and_then(VariantLink::url);
    for (at, arm) in plan.arms.iter().enumerate() {
        let placed = direct.as_deref().map(|direct| arm.behind(direct));
        let arm = placed.as_ref().unwrap_or(arm);
        let calls = ProfiledCalls {
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

/// Returns the variants of `--rules` and `--topology`.
fn make_variants(
    args: &OverheadArgs,
    workshop: Option<&GuardedDirectory>,
) -> Result<Vec<Variant>, LabError> {
    let (Some(workshop), Some(direct)) = (workshop, args.direct()?) else {
        return Ok(Vec::new());
    };
    let mut arms = Vec::new();
    if args.is_bridge() {
        arms.push(workshop.bridge().with_name(BARE_BRIDGE.into()));
    }
    for count in &args.rules {
        let rules = policies::mixed_for(args.tool_of_rules(), args.effect(), *count as usize);
        let name = match count {
            1 => "durward, 1 rule".to_owned(),
            more => format!("durward, {more} rules"),
        };
        arms.push(match (args.is_bridge(), direct.transport()) {
            (true, _) => workshop.guard(&name, &rules, GuardedBackend::Url("{direct}"))?,
            (false, VariantTransport::Stdio) => {
                workshop.guard(&name, &rules, GuardedBackend::Command(direct.command()))?
            }
            (false, VariantTransport::Http) => {
                workshop.serve(&name, &rules, GuardedBackend::Url("{direct}"))?
            }
        });
    }
    Ok(arms)
}
