//! The scenarios of a load-testing guide for SSH tool servers: connection rate, command throughput, sustained load,
//! latency over bad lines, and a pool that is used up.
//!
//! The server and its hosts run already. A call counts as done only with the right answer: a refusal, `isError`, 429 or
//! another output than the first one's is a failure. Percentiles of the report interpolate linearly between samples, as
//! the guide's do; those of the summary do not.

mod args;
mod client;
mod diagnosis;
mod figures;
mod phase;
mod report;
mod scenario;
mod scrape;
mod steps;
mod store;
mod verdict;

use std::io::Write;

use crate::error::{EXIT_ABORTED, EXIT_FAILED, LabError};
use crate::host::HostInfo;
use crate::interrupt::InterruptFlag;
use crate::{LabContext, wall_clock};
pub use args::SshLoadArgs;
use args::{SshPlan, SshRequest};
use figures::SshRun;
use scrape::{MetricsScrape, ScrapeSampler};

/// Runs `lab load ssh`.
pub(crate) fn run(
    args: &SshLoadArgs,
    context: &LabContext,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, LabError> {
    let told = |source| LabError::System {
        what: "write the result",
        source,
    };
    match args.parse_request()? {
        SshRequest::List => report::list(out).map(|()| 0).map_err(told),
        SshRequest::Metrics(url) => {
            let text = scrape::text(&url)?;
            out.write_all(text.as_bytes()).map(|()| 0).map_err(told)
        }
        SshRequest::Run(plans) => {
            let interrupt = InterruptFlag::listen()?;
            let mut worst = 0;
            for plan in plans {
                if interrupt.is_set() {
                    return Ok(EXIT_ABORTED);
                }
                worst = worst.max(one(&plan, args, context, &interrupt, out, err)?);
            }
            Ok(worst)
        }
    }
}

/// One scenario, from its first connection to its report.
fn one(
    plan: &SshPlan,
    args: &SshLoadArgs,
    context: &LabContext,
    interrupt: &InterruptFlag,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, LabError> {
    let place = store::create(&args.results_dir)?;
    let started_ms = wall_clock::now_ms();
    let before =
        MetricsScrape::take(&plan.server).map_err(|wrong| diagnosis::unreachable(plan, &wrong))?;
    let sampler = ScrapeSampler::start(plan.server.clone(), plan.scenario.sample_every());
    let phases = steps::all(plan, interrupt, &mut |text| {
        // A failed write loses nothing else.
        let _ = writeln!(err, "{text}");
    });
    let samples = sampler.finish();
    // A server that is gone by now shows in its calls.
    let after = MetricsScrape::take(&plan.server).ok();
    let run = SshRun {
        test_id: place.id.clone(),
        version: context.version.to_owned(),
        build: crate::run::build().to_owned(),
        started_ms,
        scenario: plan.scenario,
        target: plan.server.authority().to_owned(),
        target_cpus: plan.target_cpus,
        server_cpus: plan.server_cpus,
        host: HostInfo::read(),
        aborted: interrupt.is_set(),
        phases,
        before,
        after,
        samples,
    };
    let told = run.report();
    store::write(&place, &run, &told)?;
    let written = if args.json {
        report::json(&told, out)
    } else {
        report::text(&told, out)
    };
    written.map_err(|source| LabError::System {
        what: "write the result",
        source,
    })?;
    // The directory is there even if this line cannot be written.
    let _ = writeln!(err, "stored in {}", place.path.display());
    Ok(match (run.aborted, told.is_good) {
        (true, _) => EXIT_ABORTED,
        (false, true) => 0,
        (false, false) => EXIT_FAILED,
    })
}
