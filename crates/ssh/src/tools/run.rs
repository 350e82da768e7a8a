//! What is ordered of a host, and how it is answered.

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolkit::outputs::shown;
use toolkit::server::{Answer, Args, Content, Failure};

use crate::command::{Context, is_of, quoted};
use crate::end::End;
use crate::hosts::{Host, Limits};
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
    let asked = args.get("timeout_ms").and_then(Value::as_u64);
    let time_ms = asked
        .unwrap_or(limits.command_ms_default)
        .min(limits.command_ms_max);
    let stdin = args.get("stdin").and_then(Value::as_str).unwrap_or("");
    Ok(Order {
        line,
        stdin: stdin.as_bytes().to_vec(),
        secret: None,
        by_sudo,
        bounds: Bounds {
            time: Duration::from_millis(time_ms),
            stream_bytes_max: limits.answer_bytes_max,
        },
        spill: None,
        terminal: None,
        mark,
        begin: None,
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
    let seen = |seen: bool| {
        if seen {
            "it was killed, and its end was seen"
        } else {
            "it was told to end, and its end was not seen: it may still run"
        }
    };
    match &ended.end {
        End::Exited(_) | End::Signalled(_) | End::Untold => {}
        End::TimedOut { seen: was } => {
            let wrong = format!(
                "the command was stopped after {} ms: {}",
                ended.time.as_millis(),
                seen(*was)
            );
            return failed("timed_out", wrong).map_err(|failure| failure.with("seen_dead", *was));
        }
        End::Cancelled { seen: was } => {
            let wrong = format!("the command was cancelled: {}", seen(*was));
            return failed("cancelled", wrong).map_err(|failure| failure.with("seen_dead", *was));
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
        "duration_ms": (ended.time.as_secs_f64() * 1e6).round() / 1e3,
    });
    match members {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
