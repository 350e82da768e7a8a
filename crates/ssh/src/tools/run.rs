//! What is ordered of a host, and how it is answered.

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolkit::outputs::shown;
use toolkit::server::{Answer, Args, Content, Failure};

use crate::command::{Context, is_of, quoted};
use crate::end::{End, Missing};
use crate::hosts::{Host, Limits};
use crate::processes::{Aftermath, Whose};
use crate::sudo;
use crate::upstream::{Bounds, Ended, Mark, Marked, Order};

/// The user whose processes sshd passes no signals to.
const ROOT: &str = "root";

/// The words before a command's own, where the host takes its variables.
pub(crate) fn before(context: &Context, host: &Host) -> Result<Vec<String>, Failure> {
    let allowed = |name: &str| host.env.iter().any(|pattern| is_of(pattern, name));
    if let Some((name, _)) = context.env.iter().find(|(name, _)| !allowed(name)) {
        let listed = host.env.join(", ");
        let wrong = match listed.as_str() {
            "" => format!(
                "{} takes no variables from callers; its env in the file of hosts would list them",
                host.name
            ),
            listed => format!("{} takes {listed}, and not {name}", host.name),
        };
        return Err(Failure::new("env_not_allowed", wrong));
    }
    Ok(context.before())
}

/// The time of a call's commands: from the call to the end of each of them.
pub(crate) fn time(args: Args<'_>, limits: &Limits) -> Duration {
    let asked = args.get("timeout_ms").and_then(Value::as_u64);
    let time_ms = asked.unwrap_or(limits.command_ms_default);
    Duration::from_millis(time_ms.min(limits.command_ms_max))
}

/// The order for a command where it runs, on behalf of a call.
pub(crate) fn order(
    (argv, context): (&[String], &Context),
    args: Args<'_>,
    host: &Host,
    limits: &Limits,
) -> Result<Order, Failure> {
    let unfit =
        |fault: crate::command::QuoteFault| Failure::new("unfit_arguments", fault.to_string());
    let before = before(context, host)?;
    let by_sudo = sudo::is(argv);
    if by_sudo && !context.env.is_empty() {
        let wrong = "sudo passes no variables on: leave env out";
        return Err(Failure::new("env_not_allowed", wrong));
    }
    let whose = Whose::of(argv);
    let words;
    let argv = if by_sudo {
        words = sudo::words(argv, host)?;
        &words
    } else {
        argv
    };
    let argv = &[before.as_slice(), argv].concat();
    let line = quoted(argv).map_err(unfit)?;
    let mark = match Mark::new().filter(|_| host.credential.user == ROOT) {
        Some(mark) => Some(Marked {
            line: quoted(&mark.before(argv)).map_err(unfit)?,
            mark,
            by_request: false,
        }),
        None => None,
    };
    let stdin = args.get("stdin").and_then(Value::as_str).unwrap_or("");
    let bounds = Bounds {
        time: time(args, limits),
        stream_bytes_max: limits.answer_bytes_max,
    };
    Ok(Order {
        whose,
        stdin: stdin.as_bytes().to_vec(),
        by_sudo,
        mark,
        ..Order::new(line, bounds)
    })
}

/// The answer for a command that ended, or why it did not.
pub(crate) fn answer(ended: &Ended) -> Result<Answer, Failure> {
    let members = members(ended);
    let failed = |code: &'static str, wrong: String| {
        let mut failure = Failure::new(code, wrong);
        failure.details.extend(members.clone());
        Err(failure)
    };
    let stopped = |code: &'static str, wrong: String, left: &Aftermath| {
        let (seen, pids, told) = match left {
            Aftermath::Dead => (
                Some(true),
                &[][..],
                "it was killed, and its end was seen".to_owned(),
            ),
            Aftermath::Unknown { pids, why } => {
                let list: Vec<String> = pids.iter().map(u32::to_string).collect();
                let list = match list.as_slice() {
                    [] => String::new(),
                    list => format!(" ({})", list.join(", ")),
                };
                let told = format!(
                    "it was told to end, and whether all of it has is not known: {why}{list}"
                );
                (None, pids.as_slice(), told)
            }
        };
        let failed = failed(code, format!("{wrong}: {told}"));
        failed.map_err(|failure| failure.with("seen_dead", seen).with("pids", pids))
    };
    match &ended.end {
        End::Exited(_) | End::Signalled(_) | End::Untold => {}
        End::TimedOut(left) => {
            let wrong = format!(
                "the command was stopped after {} ms",
                ended.time.as_millis()
            );
            return stopped("timed_out", wrong, left);
        }
        End::Cancelled(left) => {
            return stopped("cancelled", "the command was cancelled".to_owned(), left);
        }
        End::Refused => {
            return failed(
                "refused_by_server",
                "the server refused to run a command on this login".into(),
            );
        }
        End::Unsent => {
            return failed(
                "connection_lost",
                "the connection was lost before the command was sent; it did not run".into(),
            )
            .map_err(|failure| failure.with("may_have_run", false).retryable());
        }
        End::Lost => {
            return failed(
                "connection_lost",
                "the connection was lost while the command ran; it may have run, and may still run"
                    .into(),
            )
            .map_err(|failure| failure.with("may_have_run", true));
        }
    }
    Ok(Answer {
        content: vec![Content::Text(text(ended))],
        structured: Some(members),
    })
}

/// What the model reads: the output, then the errors, then how it ended where that was not well.
fn text(ended: &Ended) -> String {
    let mut text = shown(&ended.stdout.bytes).data;
    let mut add = |more: &str| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(more);
    };
    if ended.stderr.length > 0 {
        add("[stderr]\n");
        add(&shown(&ended.stderr.bytes).data);
    }
    if let Some(spilled) = &ended.spilled {
        add(&format!(
            "[cut: {} bytes of output, {} of errors in all; ssh_read_output reads them as {}]",
            ended.stdout.length, ended.stderr.length, spilled.handle
        ));
    } else if is_cut(ended) {
        add(&format!(
            "[cut: {} bytes of output, {} of errors in all]",
            ended.stdout.length, ended.stderr.length
        ));
    }
    if let Some(missing) = ended.missing {
        add(&format!(
            "[incomplete: {}; {} bytes of output and {} of errors have come]",
            missing.about(),
            ended.stdout.length,
            ended.stderr.length
        ));
    }
    match &ended.end {
        End::Exited(0) => {}
        End::Exited(code) => add(&format!("[exit code {code}]")),
        End::Signalled(signal) => add(&format!("[ended by signal {signal}]")),
        _ => add("[the server did not say how it ended]"),
    }
    text
}

fn is_cut(ended: &Ended) -> bool {
    let cut = |kept: &crate::upstream::Kept| kept.length > kept.bytes.len() as u64;
    cut(&ended.stdout) || cut(&ended.stderr)
}

/// Returns why bytes that the command wrote are neither in the answer nor kept beside it.
fn missing(ended: &Ended) -> Option<Missing> {
    let is_over = match &ended.spilled {
        Some(spilled) => spilled.dropped > 0,
        None => is_cut(ended),
    };
    ended.missing.or(is_over.then_some(Missing::OverBound))
}

/// The result as data.
pub(crate) fn members(ended: &Ended) -> Map<String, Value> {
    let (exit_code, signal) = match &ended.end {
        End::Exited(code) => (json!(code), Value::Null),
        End::Signalled(signal) => (Value::Null, json!(signal)),
        _ => (Value::Null, Value::Null),
    };
    let (stdout, stderr) = (shown(&ended.stdout.bytes), shown(&ended.stderr.bytes));
    let output = ended
        .spilled
        .as_ref()
        .map(|spilled| json!({"output": spilled.handle, "dropped_bytes": spilled.dropped}));
    let missing = missing(ended);
    let members = json!({
        "exit_code": exit_code,
        "signal": signal,
        "stdout": stdout.data,
        "stdout_encoding": stdout.encoding,
        "stdout_bytes": ended.stdout.length,
        "stderr": stderr.data,
        "stderr_encoding": stderr.encoding,
        "stderr_bytes": ended.stderr.length,
        "truncated": is_cut(ended),
        "whole": output,
        "output_incomplete": missing.is_some(),
        "output_incomplete_reason": missing.map(Missing::label),
        "duration_ms": (ended.time.as_secs_f64() * 1e6).round() / 1e3,
    });
    match members {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
