//! The standard set: the hop over stdio beside a bare relay, against the budget. `make bench` runs it.

mod approval;
mod budget;
mod causes;
mod check;
mod earlier;
mod features;
mod idle;
mod journal_rate;
mod markdown;
mod one_url;
mod own_cost;
mod peers;
mod plans;
mod ratio;
mod stdio_rate;
mod web;
mod workspace;

use crate::driver::ProtocolRevision;
use crate::error::LabError;
use crate::interrupt::InterruptFlag;
use crate::judge::{EXIT_REGRESSED, MeasuredQuantities};
use crate::overhead::{self, OverheadAnalysis, OverheadPlan, RunMonitor};
use crate::profile::{ProfileMethod, ProfiledCalls};
use crate::progress::{ProgressKind, ProgressOutput};
use crate::run::write_whole;
use crate::summary::{MeasurementSummary, SummaryDocument, SummarySource};
use crate::{LabContext, host, profile};
use earlier::HeadlineFigures;
use idle::IdleFigures;
use journal_rate::JournalRate;
use one_url::OneUrl;
use own_cost::OwnCost;
use peers::{MissingRow, forgiving};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use stdio_rate::StdioRate;
use web::{WebPeer, WebResults};
use workspace::{MockServer, RuleSet, StandardWorkspace};

/// Measure the standard set: echo and files, direct, behind a bare relay, behind `durward run`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  durward-lab standard --quick                a first look, three short launches
  durward-lab standard --check                every budget, what is SHORT and where its time goes
  durward-lab standard --write BENCHMARKS.md  the page; it keeps the figures of earlier runs

A peer that fails is left out and named; a table of ours that cannot be measured is SHORT.
Exit codes: 0 measured, with --check all budgets kept; 1 failed; 2 wrong usage; 97 stopped by Ctrl-C, what there is is
printed and the page left alone; 99 with --check, a budget is missed.")]
pub struct StandardArgs {
    /// Write the tables to this file, and a profile beside it where a budget is missed
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Three short launches: indicative
    #[arg(long)]
    quick: bool,
    /// Keep client, variants and servers on this core [default: the last one]
    #[arg(long, value_name = "CORE")]
    pin: Option<usize>,
    /// Seed of the random order of the turns
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// A peer to measure beside it: its command, to which the server's command or URL is added; repeatable
    #[arg(long, value_name = "NAME=CMD")]
    peer: Vec<String>,
    /// Write the profile whether a budget is missed or not
    #[arg(long, value_name = "WAY", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "auto", requires = "write")]
    profile: Option<ProfileMethod>,
    /// The official filesystem server: its command, to which the directory that it may see is added
    #[arg(long, value_name = "CMD")]
    filesystem_server: Option<String>,
    /// A peer over HTTP: the prefix of its tools' names, its address and its command, to which `-- CMD` or `--url URL`
    /// of the server is added; repeatable
    #[arg(long, value_name = "NAME[:PREFIX]=URL -- CMD")]
    http_peer: Vec<WebPeer>,
    /// Print the budgets row by row instead of the tables; exit 99 where one is missed
    #[arg(long, conflicts_with_all = ["json", "write"])]
    check: bool,
    /// Print one JSON document instead of the tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// One comparison of the set.
#[derive(Debug, Serialize)]
struct ComparisonGroup {
    title: &'static str,
    /// Whether the budget of the hop is compared with its guarded variants.
    budgeted: bool,
    #[serde(flatten)]
    analysis: OverheadAnalysis,
}

/// All that was measured.
#[derive(Debug, Serialize)]
struct StandardResults {
    format: &'static str,
    quick: bool,
    groups: Vec<ComparisonGroup>,
    idle: IdleFigures,
    own_cost: OwnCost,
    web: WebResults,
    stdio_rates: Vec<StdioRate>,
    /// `None` if it could not be measured.
    one_url: Option<OneUrl>,
    journal_rate: JournalRate,
    /// What could not be measured.
    absent: Vec<MissingRow>,
    /// What `durward audit verify` said of the journal written meanwhile.
    journal: String,
    /// The name of the profile's file, or why there is none; `None` if none was due.
    profile: Option<String>,
    /// The headline figures of this run and of the page that it replaces.
    #[serde(skip)]
    runs: Vec<HeadlineFigures>,
}

/// Results of a standard run that ended early.
#[derive(Debug, Serialize)]
struct PartialResults<'a> {
    format: &'static str,
    quick: bool,
    aborted: bool,
    error: String,
    groups: &'a [ComparisonGroup],
    web: &'a WebResults,
    absent: &'a [MissingRow],
}

/// State of a standard run.
struct StandardSession<'a> {
    context: &'a LabContext,
    interrupt: InterruptFlag,
    err: &'a mut dyn Write,
    absent: Vec<MissingRow>,
}

impl StandardSession<'_> {
    /// Writes the title of the present measurement. A failed write of progress is no loss.
    fn say(&mut self, title: &str) {
        let _ = writeln!(self.err, "{title}");
    }

    /// Measures lists and calls at the one URL; returns `None` if that failed.
    fn one_url(
        &mut self,
        args: &StandardArgs,
        workspace: &StandardWorkspace,
    ) -> Result<Option<OneUrl>, LabError> {
        const TITLE: &str = "all servers at one URL";
        self.say(TITLE);
        let interrupt = &self.interrupt;
        forgiving(TITLE, args, &mut Vec::new(), &mut self.absent, |_| {
            one_url::measure(workspace, interrupt)
        })
    }

    /// Measures a comparison, without peers that fail; returns `None` if it cannot be measured at all.
    fn compare_variants(
        &mut self,
        title: &str,
        args: &StandardArgs,
        plan: &mut OverheadPlan,
    ) -> Result<Option<OverheadAnalysis>, LabError> {
        self.say(title);
        let (context, load) = (self.context, host::load_average());
        let mut arms = std::mem::take(&mut plan.arms);
        let found = forgiving(title, args, &mut arms, &mut self.absent, |arms| {
            let plan = OverheadPlan {
                arms: arms.to_vec(),
                ..plan.clone()
            };
            let progress = ProgressOutput::new(&mut *self.err, ProgressKind::Quiet);
            let mut monitor = RunMonitor::new(progress, self.interrupt.clone());
            let measured = overhead::measure(&plan, &mut monitor)?;
            match measured.failure {
                _ if measured.aborted => Err(LabError::Aborted),
                Some(error) => Err(error),
                None => Ok(OverheadAnalysis::of(&plan, &measured, load, context)),
            }
        });
        plan.arms = arms;
        found
    }
}

struct RunSize {
    launches: u32,
    runs: u32,
    warmup: u32,
}

/// Runs `lab standard`.
pub(crate) fn run(
    args: &StandardArgs,
    context: &LabContext,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, LabError> {
    let workspace = StandardWorkspace::set(context, args.filesystem_server.as_deref())?;
    let mut session = StandardSession {
        context,
        interrupt: InterruptFlag::listen()?,
        err,
        absent: Vec::new(),
    };
    let (mut groups, mut web) = (Vec::new(), WebResults::default());
    let rest = measure(args, &workspace, &mut session, &mut groups, &mut web);
    let rest = match rest {
        Ok(rest) => rest,
        Err(error) if groups.is_empty() => return Err(error),
        Err(error) => {
            let torn = PartialResults {
                format: "durward-lab-standard-torn/1",
                quick: args.quick,
                aborted: matches!(error, LabError::Aborted),
                error: error.to_string(),
                groups: &groups,
                web: &web,
                absent: &session.absent,
            };
            torn.tell(args, session.err, out)?;
            return Ok(error.exit_code());
        }
    };
    let mut standard = StandardResults {
        format: "durward-lab-standard/1",
        quick: args.quick,
        groups,
        web,
        absent: session.absent,
        profile: None,
        runs: Vec::new(),
        ..rest
    };
    if args.check {
        let kept = check::write(&standard, out).map_err(|source| LabError::System {
            what: "write the result",
            source,
        })?;
        return Ok(if kept { 0 } else { EXIT_REGRESSED });
    }
    if budget::short(&standard) || args.profile.is_some() {
        let way = args.profile.unwrap_or(ProfileMethod::Auto);
        standard.profile = Some(profile_beside(args.write.as_deref(), &workspace, way)?);
    }
    let before = args
        .write
        .as_deref()
        .map_or(Ok(Vec::new()), earlier::of_page);
    let before = before.unwrap_or_else(|why| {
        let _ = writeln!(err, "warning: the page before has no earlier runs: {why}");
        Vec::new()
    });
    standard.runs = earlier::with(&standard, before);
    finish(args, &standard, out)?;
    Ok(0)
}

/// Measures all of it. The comparisons are in `groups` and `web` even on a failure; the rest is in the result.
fn measure(
    args: &StandardArgs,
    workspace: &StandardWorkspace,
    session: &mut StandardSession<'_>,
    groups: &mut Vec<ComparisonGroup>,
    web: &mut WebResults,
) -> Result<StandardResults, LabError> {
    let size = match args.quick {
        true => RunSize {
            launches: 3,
            runs: 500,
            warmup: 100,
        },
        false => RunSize {
            launches: 10,
            runs: 4_000,
            warmup: 400,
        },
    };
    for (title, budgeted, mut plan) in plans::plans(args, workspace, &size)? {
        let analysis = session.compare_variants(title, args, &mut plan)?;
        groups.extend(analysis.map(|analysis| ComparisonGroup {
            title,
            budgeted,
            analysis,
        }));
    }
    web::measure(args, workspace, &size, session, web)?;
    session.say("calls a second over stdio");
    let interrupt = session.interrupt.clone();
    let stdio_rates = stdio_rate::measure(args, workspace, &interrupt, &mut session.absent)?;
    let one_url = session.one_url(args, workspace)?;
    session.say("start and rest");
    let state = workspace.state(MockServer::Files, RuleSet::Mixed(50));
    Ok(StandardResults {
        stdio_rates,
        one_url,
        idle: idle::measure(workspace, size.launches, 0.95)?,
        own_cost: own_cost::measure(workspace)?,
        journal_rate: journal_rate::measure(workspace, session.context, size.launches, 0.95)?,
        journal: verify(&state.join("journal"), "durward, 50 rules", session.context)?,
        format: "",
        quick: args.quick,
        groups: Vec::new(),
        web: WebResults::default(),
        absent: Vec::new(),
        profile: None,
        runs: Vec::new(),
    })
}

/// Returns the variants of all comparisons, each behind the title of its own.
fn summary(groups: &[ComparisonGroup], web: &WebResults, quick: bool) -> MeasurementSummary {
    let titled = groups.iter().map(|group| (group.title, &group.analysis));
    let web = web
        .groups
        .iter()
        .map(|group| (group.hop.title(), &group.analysis));
    let all: Vec<_> = titled.chain(web).collect();
    let first = all.first().map(|(_, analysis)| analysis);
    let likeness = [
        ("quick", quick.to_string()),
        ("build", first.map_or_else(String::new, |a| a.build.clone())),
        (
            "processor",
            first.map_or_else(String::new, |a| a.host.processor.clone()),
        ),
        (
            "cores",
            first.map_or_else(String::new, |a| a.host.cores.to_string()),
        ),
    ];
    let arms = all
        .iter()
        .flat_map(|(title, analysis)| analysis.measurement(&format!("{title}: ")).arms);
    let measurement = MeasuredQuantities {
        confidence: first.map_or(0.95, |a| a.confidence),
        arms: arms.collect(),
    };
    MeasurementSummary::of("standard", likeness, measurement)
}

impl SummarySource for StandardResults {
    fn summary(&self) -> MeasurementSummary {
        summary(&self.groups, &self.web, self.quick)
    }
}

impl SummarySource for PartialResults<'_> {
    fn summary(&self) -> MeasurementSummary {
        MeasurementSummary {
            torn: Some(self.error.clone()),
            ..summary(self.groups, self.web, self.quick)
        }
    }
}

impl PartialResults<'_> {
    /// Reports the partial results; an earlier page stays unchanged.
    fn tell(
        &self,
        args: &StandardArgs,
        err: &mut dyn Write,
        out: &mut dyn Write,
    ) -> Result<(), LabError> {
        let kept = args
            .write
            .as_ref()
            .map_or("", |_| "; the page was not written");
        // A closed standard error is the caller's choice.
        let _ = writeln!(err, "error: {}{kept}", self.error);
        let written = if args.json {
            SummaryDocument::of(self).print(out)
        } else {
            let web = self.web.groups.iter();
            let titled = self
                .groups
                .iter()
                .map(|group| (group.title, &group.analysis));
            let mut all = titled.chain(web.map(|group| (group.hop.title(), &group.analysis)));
            all.try_for_each(|(title, analysis)| {
                writeln!(out, "# {title}\n")?;
                overhead::text(analysis, out)?;
                writeln!(out)
            })
        };
        written.map_err(|source| LabError::System {
            what: "write the result",
            source,
        })
    }
}

/// Asks the guard whether a variant's journal is what was written.
fn verify(journal: &Path, arm: &str, context: &LabContext) -> Result<String, LabError> {
    let state = journal.parent().unwrap_or(journal);
    let output = std::process::Command::new(&context.guard_binary)
        .args(["--no-config", "--state-dir"])
        .arg(state)
        .args(["audit", "verify"])
        .output()
        .map_err(|source| LabError::path(&context.guard_binary, source))?;
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

/// Profiles the variant with 50 rules; gives the name of the file, or why there is none.
fn profile_beside(
    beside: Option<&Path>,
    workspace: &StandardWorkspace,
    way: ProfileMethod,
) -> Result<String, LabError> {
    let Some(beside) = beside else {
        return Ok("none: --write names the place for it".into());
    };
    let arm = workspace.guard_server(MockServer::Files, RuleSet::Mixed(50))?;
    let operation = workspace.read();
    let calls = ProfiledCalls {
        operation: &operation,
        protocol: ProtocolRevision::Legacy,
        person: None,
    };
    let text = match profile::of_arm(&arm, calls, way, &workspace.file("perf.data"))? {
        Ok(text) => text,
        Err(why) => return Ok(format!("none: {why}")),
    };
    let stem = beside.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}-profile.txt");
    let file = beside.with_file_name(&name);
    // The directory's name changes with every run and is of no use.
    let text = text.replace(&*workspace.file("").to_string_lossy(), "/tmp/");
    std::fs::write(&file, text).map_err(|source| LabError::path(&file, source))?;
    Ok(name)
}

fn finish(
    args: &StandardArgs,
    standard: &StandardResults,
    out: &mut dyn Write,
) -> Result<(), LabError> {
    let tables = markdown::render(standard);
    if let Some(file) = &args.write {
        // A concurrent reader sees the old page or the new one.
        write_whole(file, tables.as_bytes())?;
    }
    let written = if args.json {
        SummaryDocument::of(standard).print(out)
    } else {
        out.write_all(tables.as_bytes())
    };
    written.map_err(|source| LabError::System {
        what: "write the result",
        source,
    })
}
