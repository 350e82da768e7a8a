//! Calls a second over stdio: one connection, so many calls under way on it at any time. Client, variant and
//! server share all cores, nothing is pinned.

use super::StandardArgs;
use super::peers::{MissingRow, forgiving};
use super::plans::{hello, named_peer};
use super::web::decisions;
use super::workspace::{MockServer, StandardWorkspace};
use crate::driver::{
    AnswerEquality, AnswerExpectation, ConcurrentReply, LinkOptions, ProtocolRevision,
    RenderedRequest, TimedOperation, VariantLink,
};
use crate::error::LabError;
use crate::interrupt::InterruptFlag;
use crate::stats::{Interval, SeededRandom, SortedSamples, mean};
use crate::variant::Variant;
use serde::Serialize;
use std::fmt::{self, Write as _};
use std::time::{Duration, Instant};

/// Calls under way at once.
const WIDTHS: [usize; 3] = [1, 8, 32];
/// Calls of the first volley, from which the variant's speed is estimated.
const FEELER_CALLS: u32 = 64;
/// How long a round is made before it counts, and how long it counts.
const WARM: Duration = Duration::from_millis(300);
const SPAN: Duration = Duration::from_millis(1_000);
/// The most calls of one volley.
const CALLS_MAX: u32 = 400_000;
/// Fresh starts of every variant, and fewer for an indicative run.
const LAUNCHES: u32 = 5;
const LAUNCHES_QUICK: u32 = 3;
const TIMEOUT_MS: u64 = 10_000;
const CONFIDENCE: f64 = 0.95;

/// One variant with so many calls under way.
#[derive(Debug, Serialize)]
pub(super) struct StdioRate {
    pub(super) arm: String,
    /// Calls under way at once.
    pub(super) width: usize,
    pub(super) per_second: Interval,
    /// Median and 99th percentile of a call, the mean of launches, in microseconds; the latter with calls enough.
    pub(super) p50_us: f64,
    pub(super) p99_us: Option<f64>,
    /// Calls that were answered, and decisions about calls that its journal holds; nothing without one.
    pub(super) answered: u64,
    pub(super) decided: Option<u64>,
}

struct StdioRound {
    per_second: f64,
    p50_us: f64,
    p99_us: Option<f64>,
    answered: u64,
}

/// Measures all variants with every width, in random order within each launch.
pub(super) fn measure(
    args: &StandardArgs,
    workspace: &StandardWorkspace,
    interrupt: &InterruptFlag,
    absent: &mut Vec<MissingRow>,
) -> Result<Vec<StdioRate>, LabError> {
    let echo = MockServer::Echo;
    let mut arms = vec![
        workspace.direct(echo),
        workspace.relayed(echo),
        workspace.guarded_echo()?,
    ];
    for text in &args.peer {
        arms.push(named_peer(text)?.before(workspace.direct(echo).command()));
    }
    let launches = if args.quick { LAUNCHES_QUICK } else { LAUNCHES };
    let mut all = Vec::new();
    for width in WIDTHS {
        let title = format!("calls a second over stdio, {width} under way");
        let found = forgiving(&title, args, &mut arms, absent, |arms| {
            of_width(arms, width, launches, args, interrupt)
        })?;
        all.extend(found.unwrap_or_default());
    }
    Ok(all)
}

fn of_width(
    arms: &[Variant],
    width: usize,
    launches: u32,
    args: &StandardArgs,
    interrupt: &InterruptFlag,
) -> Result<Vec<StdioRate>, LabError> {
    let mut random = SeededRandom::new(args.seed);
    let mut rounds: Vec<Vec<StdioRound>> = arms.iter().map(|_| Vec::new()).collect();
    let before: Vec<u64> = arms.iter().map(decisions).collect::<Result<_, _>>()?;
    let operation = hello()?;
    for _ in 0..launches {
        let mut order: Vec<usize> = (0..arms.len()).collect();
        random.shuffle(&mut order);
        for at in order {
            if interrupt.is_set() {
                return Err(LabError::Aborted);
            }
            if let (Some(arm), Some(rounds)) = (arms.get(at), rounds.get_mut(at)) {
                rounds.push(round(arm, &operation, width, args.quick)?);
            }
        }
    }
    let arms = arms.iter().zip(&rounds).zip(before);
    arms.map(|((arm, rounds), before)| summarise_rounds(arm, width, rounds, before))
        .collect()
}

fn summarise_rounds(
    arm: &Variant,
    width: usize,
    rounds: &[StdioRound],
    before: u64,
) -> Result<StdioRate, LabError> {
    let all = |of: fn(&StdioRound) -> f64| rounds.iter().map(of).collect::<Vec<f64>>();
    let answered = rounds.iter().map(|round| round.answered).sum();
    let decided = match arm.journal() {
        Some(_) => Some(decisions(arm)? - before),
        None => None,
    };
    if let Some(found) = decided.filter(|found| *found != answered) {
        return Err(LabError::Invalid {
            arm: arm.name.clone(),
            what: format!(
                "{answered} calls were answered, but its journal holds {found} decisions"
            ),
        });
    }
    let tails: Option<Vec<f64>> = rounds.iter().map(|round| round.p99_us).collect();
    Ok(StdioRate {
        arm: arm.name.clone(),
        width,
        per_second: Interval::over_launches(&all(|r| r.per_second), CONFIDENCE),
        p50_us: mean(&all(|r| r.p50_us)),
        p99_us: tails.map(|tails| mean(&tails)),
        answered,
        decided,
    })
}

/// One fresh start of a variant.
fn round(
    arm: &Variant,
    operation: &TimedOperation,
    width: usize,
    quick: bool,
) -> Result<StdioRound, LabError> {
    let manner = LinkOptions {
        operation,
        protocol: ProtocolRevision::Legacy,
        width,
        timeout_ms: TIMEOUT_MS,
    };
    let (mut link, _) = VariantLink::open(arm, manner)?;
    let question = operation.question(ProtocolRevision::Legacy);
    let mut caller = StdioCaller {
        link: &mut link,
        question: &question,
        // Some proxies add members of their own to an answer.
        expectation: AnswerExpectation::new(AnswerEquality::Content, false),
        width,
        answered: 0,
    };
    let (mut rate, warm) = (caller.volley(FEELER_CALLS)?.0, Instant::now());
    while warm.elapsed() < WARM {
        rate = caller.volley(calls_in(rate, WARM / 4, width))?.0;
    }
    let span = if quick { SPAN / 4 } else { SPAN };
    let (per_second, times) = caller.volley(calls_in(rate, span, width))?;
    let answered = caller.answered;
    link.close();
    Ok(StdioRound {
        per_second,
        p50_us: times.at(0.5).unwrap_or_default(),
        p99_us: times.at_supported(0.99),
        answered,
    })
}

/// Returns how many calls take about so long, at least a few for each place.
fn calls_in(per_second: f64, span: Duration, width: usize) -> u32 {
    let least = u32::try_from(width * 4).unwrap_or(CALLS_MAX);
    ((per_second * span.as_secs_f64()) as u32).clamp(least, CALLS_MAX)
}

struct StdioCaller<'a> {
    link: &'a mut VariantLink,
    question: &'a RenderedRequest,
    expectation: AnswerExpectation,
    width: usize,
    answered: u64,
}

impl StdioCaller<'_> {
    /// So many calls; how many a second that were, and their times in microseconds.
    fn volley(&mut self, calls: u32) -> Result<(f64, SortedSamples), LabError> {
        let mut times = Vec::with_capacity(calls as usize);
        let expectation = &mut self.expectation;
        let start = Instant::now();
        let mut each = |reply: &ConcurrentReply<'_>| {
            times.push(reply.elapsed_ns as f64 / 1e3);
            reply
                .answer
                .as_ref()
                .map_or(Ok(()), |answer| expectation.check(answer))
        };
        self.link
            .volley(self.question, calls, self.width, &mut each)?;
        let seconds = start.elapsed().as_secs_f64().max(1e-9);
        self.answered += u64::from(calls);
        Ok((f64::from(calls) / seconds, SortedSamples::new(times)))
    }
}

/// The table of the page.
pub(super) fn write(rates: &[StdioRate], page: &mut String) -> fmt::Result {
    if rates.is_empty() {
        return Ok(());
    }
    writeln!(page, "\n## Calls a second over stdio\n")?;
    writeln!(
        page,
        "`tools/call echo` on one connection, so many calls under way on it at any time; client, variant and server share all cores, \
nothing is pinned. Every id and answer is checked, and the journal of ours holds a decision for every answer.\n"
    )?;
    writeln!(
        page,
        "| under way | variant | calls/s | p50 | p99 | answered | decided |\n|--:|---|--:|--:|--:|--:|--:|"
    )?;
    for rate in rates {
        writeln!(
            page,
            "| {} | {} | {} | {:.1} | {} | {} | {} |",
            rate.width,
            rate.arm,
            super::web::thousands(&rate.per_second),
            rate.p50_us,
            rate.p99_us.map_or("-".into(), |us| format!("{us:.1}")),
            rate.answered,
            rate.decided
                .map_or("-".into(), |decided| decided.to_string())
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volley_is_as_long_as_it_is_to_take_within_its_bounds() {
        let second = Duration::from_secs(1);
        for (per_second, span, width, expect) in [
            (1_000.0, second, 1, 1_000),
            (1_000.0, second / 4, 8, 250),
            (10.0, second / 10, 32, 128),
            (1e9, second, 32, CALLS_MAX),
            (f64::NAN, second, 8, 32),
        ] {
            assert_eq!(calls_in(per_second, span, width), expect);
        }
    }
}
