//! Users who talk to models through a gateway, each on a connection of its own, and their times.
//!
//! A time counts only if the whole reply was right. The net time is what is left when the tokens that the scripted
//! model took its time for are taken off: what the gateway, the network and the generator cost together.

mod args;
mod kind;
mod reply;
mod tally;
mod user;

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use args::UsersArgs;
use args::UsersPlan;
use tally::TurnTally;
use user::SimulatedUser;

use crate::error::{EXIT_ABORTED, EXIT_FAILED, LabError};
use crate::interrupt::InterruptFlag;
use crate::wall_clock;

/// The longest sleep between two beginnings.
const NAP_MAX: Duration = Duration::from_millis(50);

/// Runs `lab users`.
pub(crate) fn run(
    args: &UsersArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, LabError> {
    let (plan, interrupt) = (args.plan()?, InterruptFlag::listen()?);
    let began = Instant::now();
    let tally = all(&plan, &interrupt, began);
    let seconds = began.elapsed().as_secs_f64();
    let is_good = tally.is_good();
    let rows = tally.figures(seconds);
    let written = if args.json {
        let document = json!({
            "format": "durward.users.v1",
            "users": plan.users,
            "seconds": seconds,
            "token_ms": plan.token_ms,
            "pauses": plan.pauses,
            "rows": rows,
        });
        writeln!(out, "{document:#}")
    } else {
        text(&plan, seconds, &rows, out)
    };
    written.map_err(|source| LabError::System {
        what: "write the result",
        source,
    })?;
    if interrupt.is_set() {
        return Ok(EXIT_ABORTED);
    }
    if !is_good {
        // The exit code says the same.
        let _ = writeln!(err, "error: some replies were wrong or missing");
        return Ok(EXIT_FAILED);
    }
    Ok(0)
}

/// Starts the users one after the other, and waits for all of them.
fn all(plan: &UsersPlan, interrupt: &InterruptFlag, began: Instant) -> TurnTally {
    let until = began + plan.run_time;
    let salt =
        wall_clock::now_ms().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id());
    let mut kinds = plan.kinds.iter().cycle();
    std::thread::scope(|scope| {
        let mut working = Vec::new();
        for number in 0..plan.users {
            let Some(kind) = kinds.next().copied() else {
                break;
            };
            while Instant::now() < began + plan.spawn_every * number && !interrupt.is_set() {
                let left =
                    (began + plan.spawn_every * number).saturating_duration_since(Instant::now());
                std::thread::park_timeout(left.min(NAP_MAX));
            }
            if interrupt.is_set() || Instant::now() >= until {
                break;
            }
            let user = SimulatedUser {
                plan,
                interrupt,
                kind,
                number,
                until,
                salt,
            };
            working.push(scope.spawn(move || user.work()));
        }
        let mut tally = TurnTally::default();
        for worker in working {
            if let Ok(own) = worker.join() {
                tally.merge(own);
            }
        }
        tally
    })
}

fn text(
    plan: &UsersPlan,
    seconds: f64,
    rows: &[Value],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let paused = if plan.pauses { "" } else { ", without pauses" };
    writeln!(
        out,
        "{} users on {} for {seconds:.1} s{paused}; times in ms, net of {} ms a token",
        plan.users,
        plan.host.authority(),
        plan.token_ms
    )?;
    writeln!(
        out,
        "{:<22} {:>8} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "",
        "requests",
        "failed",
        "req/s",
        "average",
        "median",
        "max",
        "net avg",
        "net med",
        "net p99",
        "first"
    )?;
    for row in rows {
        let number = |at: &str| row.pointer(at).and_then(Value::as_f64);
        let time = |at: &str| number(at).map_or("-".to_owned(), |ms| format!("{ms:.2}"));
        let failures = row.get("failures").and_then(Value::as_object);
        let failed: u64 = failures
            .into_iter()
            .flat_map(serde_json::Map::values)
            .filter_map(Value::as_u64)
            .sum();
        writeln!(
            out,
            "{:<22} {:>8} {failed:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
            row.get("user").and_then(Value::as_str).unwrap_or_default(),
            number("/requests").unwrap_or(0.0),
            time("/rps"),
            time("/total_ms/average"),
            time("/total_ms/median"),
            time("/total_ms/max"),
            time("/net_ms/average"),
            time("/net_ms/median"),
            time("/net_ms/p99"),
            time("/first_ms/median"),
        )?;
        if let Some(note) = row.get("note").and_then(Value::as_str) {
            writeln!(out, "  {note}")?;
        }
        for (name, say) in [("models", "answered by"), ("failures", "failed")] {
            let told = row.get(name).and_then(Value::as_object);
            for (what, count) in told.into_iter().flatten() {
                if name == "failures" || told.is_some_and(|all| all.len() > 1) {
                    writeln!(out, "  {say} {what}: {count}")?;
                }
            }
        }
    }
    Ok(())
}
