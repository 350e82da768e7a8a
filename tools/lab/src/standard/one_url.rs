//! All servers at one URL: the time of their one list, and the cost of a call there beside the same call at its
//! server's own URL. Nothing is pinned; one thread serves both, so that the placement of a connection does not matter.

use super::budget::word;
use super::workspace::{MockServer, StandardWorkspace};
use crate::driver::{
    CallAnswer, HttpSession, LinkOptions, ListeningServer, ProtocolRevision, RenderedRequest,
    TimedOperation, VariantLink,
};
use crate::error::LabError;
use crate::interrupt::InterruptFlag;
use crate::stats::{SortedSamples, median};
use crate::wall_clock;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::{self, Write as _};
use std::time::Duration;

/// Servers, and the tools of each.
const SERVERS: usize = 100;
const TOOLS: usize = 50;
/// Lists that count; from 368 on they have a 99th percentile.
const LISTS: usize = 400;
/// Turns of calls at each URL, and the calls of one.
const TURNS: usize = 20;
const CALLS: usize = 50;
/// How often the list is asked for until all servers are there, and the pause between.
const STARTS_MAX: usize = 100;
const START_PAUSE: Duration = Duration::from_millis(250);
const TIMEOUT_MS: u64 = 60_000;

/// The 99th percentile of a list, in milliseconds.
const LIST_P99_MS_MAX: f64 = 5.0;
/// Most cost of a call beyond the server itself, over the same at its server's own URL.
const RATIO_MAX: f64 = 1.1;

/// Lists and calls at one URL.
#[derive(Debug, Serialize)]
pub(super) struct OneUrl {
    pub(super) servers: usize,
    pub(super) tools: usize,
    /// The answer, in bytes.
    pub(super) list_bytes: usize,
    /// Of a list after the servers have listed once, in milliseconds.
    pub(super) list_p50_ms: f64,
    pub(super) list_p99_ms: f64,
    /// Medians of a call: at the server itself over pipes, at its own URL, at the one URL; in microseconds.
    pub(super) direct_us: f64,
    pub(super) own_url_us: f64,
    pub(super) one_url_us: f64,
}

impl OneUrl {
    /// Returns the cost of a call at the one URL beyond the server itself, over its cost at the server's own.
    pub(super) fn ratio(&self) -> f64 {
        let added = |us: f64| (us - self.direct_us).max(0.0);
        added(self.one_url_us) / added(self.own_url_us).max(1e-9)
    }

    /// Returns whether both budgets are kept.
    pub(super) fn is_kept(&self) -> bool {
        self.rows().iter().all(|row| row.is_kept)
    }

    /// Returns the figures with a budget.
    pub(super) fn rows(&self) -> [BudgetFigure; 2] {
        let (servers, tools) = (self.servers, self.tools);
        [
            BudgetFigure {
                what: format!("one URL, list of {servers} servers × {tools} tools, warm, p99"),
                budget: format!("≤ {LIST_P99_MS_MAX:.0} ms"),
                measured: format!("{:.1} ms (p50 {:.1})", self.list_p99_ms, self.list_p50_ms),
                is_kept: self.list_p99_ms <= LIST_P99_MS_MAX,
                cause: format!(
                    "{} entries, {} KB in all: what each part rests on is compared, and the parts are put together (crates/mcp/src/http/federated/lists.rs)",
                    servers * tools,
                    self.list_bytes / 1_000
                ),
            },
            BudgetFigure {
                what: "one URL, added p50 of a call over the same at its server's own URL".into(),
                budget: format!("≤ {RATIO_MAX:.2}"),
                measured: format!("{:.2}", self.ratio()),
                is_kept: self.ratio() <= RATIO_MAX,
                cause: format!(
                    "p50 {:.0} µs at the one URL, {:.0} at its own, {:.0} at the server itself (crates/mcp/src/http/federated)",
                    self.one_url_us, self.own_url_us, self.direct_us
                ),
            },
        ]
    }

    /// The section of the page.
    pub(super) fn write(&self, page: &mut String) -> fmt::Result {
        writeln!(page, "\n## All servers at one URL\n")?;
        writeln!(
            page,
            "`durward serve --threads 1` with {} servers (`mock echo --tools {} --announce-changes`), 50 rules; one client at `/mcp` and one at a \
server's own URL, not pinned. {LISTS} lists after the first whole one, {} bytes each; {} calls at each URL in turns of {CALLS}, and \
at the server itself over pipes.\n",
            self.servers,
            self.tools,
            self.list_bytes,
            TURNS * CALLS
        )?;
        writeln!(page, "| what | measured | budget | |\n|---|--:|--:|---|")?;
        for row in self.rows() {
            let BudgetFigure {
                what,
                budget,
                measured,
                ..
            } = &row;
            let verdict = word(row.is_kept);
            writeln!(page, "| {what} | {measured} | {budget} | {verdict} |")?;
        }
        writeln!(
            page,
            "| p50 of a call: one URL, own URL, the server itself | {:.0}, {:.0}, {:.0} µs | - | |",
            self.one_url_us, self.own_url_us, self.direct_us
        )
    }
}

/// A figure and its budget.
#[derive(Debug)]
pub(super) struct BudgetFigure {
    pub(super) what: String,
    pub(super) budget: String,
    pub(super) measured: String,
    pub(super) is_kept: bool,
    pub(super) cause: String,
}

/// Measures with one start.
pub(super) fn measure(
    workspace: &StandardWorkspace,
    interrupt: &InterruptFlag,
) -> Result<OneUrl, LabError> {
    let mut served = ListeningServer::start(&workspace.served_all(SERVERS, TOOLS)?, TIMEOUT_MS)?;
    let done = measure_variant(workspace, &mut served, interrupt);
    served.close();
    done
}

fn measure_variant(
    workspace: &StandardWorkspace,
    served: &mut ListeningServer,
    interrupt: &InterruptFlag,
) -> Result<OneUrl, LabError> {
    let call = |tool: &str| TimedOperation::call(tool, json!({ "text": "hello" }));
    let (bare, prefixed) = (call("echo")?, call("s0__echo")?);
    let mut at_all = opened(served, "", &prefixed)?;
    let mut at_one = opened(served, "/s0", &bare)?;
    let manner = LinkOptions {
        operation: &bare,
        protocol: ProtocolRevision::Legacy,
        width: 1,
        timeout_ms: TIMEOUT_MS,
    };
    let (mut direct, _) = VariantLink::open(&workspace.direct(MockServer::Echo), manner)?;
    let question = |operation: &TimedOperation| operation.question(ProtocolRevision::Legacy);
    let (list, bare, prefixed) = (
        question(&TimedOperation::List),
        question(&bare),
        question(&prefixed),
    );

    let list_bytes = whole_list(served, &mut at_all, &list, interrupt)?;
    let mut lists = Vec::with_capacity(LISTS);
    for _ in 0..LISTS {
        lists.push(time_request(served, &mut at_all, &list)? / 1e3);
        stop_if_asked(interrupt)?;
    }
    let [mut own, mut one, mut itself] = [Vec::new(), Vec::new(), Vec::new()];
    for turn in 0..=TURNS {
        stop_if_asked(interrupt)?;
        for _ in 0..CALLS {
            own.push(time_request(served, &mut at_one, &bare)?);
        }
        for _ in 0..CALLS {
            one.push(time_request(served, &mut at_all, &prefixed)?);
        }
        for _ in 0..CALLS {
            itself.push(direct.ask(&bare)? as f64 / 1e3);
        }
        if turn == 0 {
            // The first turn warms up.
            for warm in [&mut own, &mut one, &mut itself] {
                warm.clear();
            }
        }
    }
    direct.close();
    at_all.close();
    at_one.close();
    let lists = SortedSamples::new(lists);
    Ok(OneUrl {
        servers: SERVERS,
        tools: TOOLS,
        list_bytes,
        list_p50_ms: lists.at(0.5).unwrap_or_default(),
        list_p99_ms: lists.at_supported(0.99).unwrap_or(f64::INFINITY),
        direct_us: median(&itself),
        own_url_us: median(&own),
        one_url_us: median(&one),
    })
}

fn stop_if_asked(interrupt: &InterruptFlag) -> Result<(), LabError> {
    match interrupt.is_set() {
        true => Err(LabError::Aborted),
        false => Ok(()),
    }
}

/// Returns a session at the served URL with this behind it.
fn opened(
    served: &mut ListeningServer,
    below: &str,
    operation: &TimedOperation,
) -> Result<HttpSession, LabError> {
    let url = format!("{}{below}", served.url()).parse()?;
    let opened = HttpSession::open(&url, &[], operation, ProtocolRevision::Legacy, TIMEOUT_MS);
    opened.map_err(|what| served.broken_error(what))
}

/// One timed request, in microseconds; its answer is a result.
fn time_request(
    served: &mut ListeningServer,
    session: &mut HttpSession,
    question: &RenderedRequest,
) -> Result<f64, LabError> {
    let reply = session.ask(question);
    let reply = reply.map_err(|(_, error)| served.fault(question.name(), &error))?;
    if !session.is_known() {
        match session.answer().map_err(|what| served.invalid(what))? {
            CallAnswer::Result(_) => {}
            CallAnswer::Refused { code, message } => {
                return Err(served.invalid(format!("refused: {code} {message}")));
            }
        }
        session.confirm();
    }
    Ok(reply.elapsed_ns as f64 / 1e3)
}

/// Asks until every server has listed all of its tools; gives the size of that list.
fn whole_list(
    served: &mut ListeningServer,
    session: &mut HttpSession,
    list: &RenderedRequest,
    interrupt: &InterruptFlag,
) -> Result<usize, LabError> {
    let mut found = 0;
    for _ in 0..STARTS_MAX {
        stop_if_asked(interrupt)?;
        time_request(served, session, list)?;
        if let Ok(CallAnswer::Result(raw)) = session.answer() {
            let result: Value = serde_json::from_str(raw).unwrap_or_default();
            let tools = result.get("tools").and_then(Value::as_array);
            found = tools.map_or(0, Vec::len);
        }
        if found == SERVERS * TOOLS {
            return Ok(session.last().1);
        }
        wall_clock::pause(START_PAUSE);
    }
    let whole = SERVERS * TOOLS;
    Err(served.invalid(format!("it lists {found} tools of {whole}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_of_what_is_added() {
        let found = |one_url_us, list_p99_ms| OneUrl {
            servers: 2,
            tools: 3,
            list_bytes: 1_000,
            list_p50_ms: 1.0,
            list_p99_ms,
            direct_us: 20.0,
            own_url_us: 120.0,
            one_url_us,
        };
        assert!((found(130.0, 1.0).ratio() - 1.1).abs() < 1e-9);
        assert!(found(129.0, 5.0).is_kept());
        assert!(!found(131.0, 5.0).is_kept() && !found(120.0, 5.1).is_kept());
        let mut page = String::new();
        found(131.0, 1.0).write(&mut page).unwrap();
        assert!(
            page.contains("SHORT") && page.contains("| 1.11 |"),
            "{page}"
        );
    }
}
