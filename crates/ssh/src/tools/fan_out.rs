//! One command at many hosts: what the tool takes, and its results folded.

use gate::Outcome;
use gate::journal::Status;
use serde_json::{Map, Value, json};
use toolkit::schema::SchemaFault;
use toolkit::server::{Answer, Args, Failure, ToolDef, Unfit};

use super::context::with_context;
use super::definitions::{command, object, runs, timeout};
use super::run::{answer, members};
use crate::end::End;
use crate::hosts::Hosts;
use crate::upstream::Ended;

/// Most hosts of one call.
pub(crate) const HOSTS_MAX: usize = 500;
/// Most names and patterns that say which.
const NAMES_MAX: usize = 500;
/// Most hosts at a time.
const AT_ONCE_MAX: u64 = 100;
/// Fewest bytes of each stream that are kept of one host.
const STREAM_BYTES_MIN: usize = 1024;
/// How many answers' worth of output is kept of all hosts together.
const ANSWERS_MAX: usize = 4;

/// How a command goes round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rolling {
    /// So many hosts run first; all have to succeed.
    pub canary: usize,
    pub at_once: usize,
    /// No further host begins once more than so many have failed.
    pub failures_max: usize,
}

impl Rolling {
    pub fn read(args: Args<'_>) -> Result<Self, Unfit> {
        let count = |name: &str| {
            let count = args.count(name)?;
            Ok::<_, Unfit>(usize::try_from(count).unwrap_or(usize::MAX))
        };
        Ok(Self {
            canary: count("canary")?,
            at_once: count("at_once")?.max(1),
            failures_max: count("failures_max")?,
        })
    }
}

/// The hosts that a call names, each once, in its order; those of a pattern by name.
pub(crate) fn hosts<'a>(all: &'a Hosts, args: Args<'_>) -> Result<Vec<&'a str>, Unfit> {
    let names = args.get("hosts").and_then(Value::as_array);
    let mut found: Vec<&str> = Vec::new();
    for name in names.into_iter().flatten().filter_map(Value::as_str) {
        let mut is_known = false;
        for host in all.all().map(|host| host.name.as_str()) {
            if fits(name, host) {
                is_known = true;
                if !found.contains(&host) {
                    found.push(host);
                }
            }
        }
        if !is_known {
            let wrong = format!("no host of the operator's list is called \"{name}\"");
            return Err(Unfit::member("hosts", wrong));
        }
    }
    if found.len() > HOSTS_MAX {
        let wrong = format!(
            "are {} hosts; at most {HOSTS_MAX} go in one call",
            found.len()
        );
        return Err(Unfit::member("hosts", wrong));
    }
    Ok(found)
}

/// Whether a name is of this pattern: `*` is any run of characters, all else is itself.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, mut rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(head) else {
        return false;
    };
    while let Some((part, after)) = rest.split_once('*') {
        let Some(at) = name.find(part) else {
            return false;
        };
        name = name.get(at + part.len()..).unwrap_or_default();
        rest = after;
    }
    name.ends_with(rest)
}

/// How much of each stream is kept of one of so many hosts.
pub(crate) fn stream_bytes_max(answer_bytes_max: usize, hosts: usize) -> usize {
    let share = answer_bytes_max.saturating_mul(ANSWERS_MAX) / hosts.max(1);
    share.clamp(STREAM_BYTES_MIN.min(answer_bytes_max), answer_bytes_max)
}

pub(super) fn definition() -> Result<ToolDef, SchemaFault> {
    let count = |min: u64, max: u64, default: u64, about: &str| json!({"type": "integer", "minimum": min, "maximum": max, "default": default, "description": about});
    let tool = ToolDef::new(
        "ssh_fan_out",
        "Run a command on many hosts",
        "Runs one program on many hosts: first on a few (the canary), then on the rest, some at a time; it stops when too many fail. Hosts that say the same are told together. Every host is judged before the first one runs.",
        object(
            with_context(json!({
                "hosts": {"type": "array", "minItems": 1, "maxItems": NAMES_MAX, "items": {"type": "string", "minLength": 1, "maxLength": 253}, "description": "Names of the operator's list; * stands for any characters."},
                "command": command(),
                "canary": count(0, HOSTS_MAX as u64, 1, "So many hosts run first; unless all of them succeed, no other does."),
                "at_once": count(1, AT_ONCE_MAX, 10, "Hosts at a time."),
                "failures_max": count(0, HOSTS_MAX as u64, 0, "No further host begins once more than so many have failed."),
                "stdin": {"type": "string", "maxLength": 1_000_000, "description": "What the program reads, the same on every host."},
                "timeout_ms": timeout()
            })),
            &["hosts", "command"],
        ),
    )?
    .with_output(json!({
        "type": "object",
        "properties": {
            "total": {"type": "integer"}, "succeeded": {"type": "integer"}, "failed": {"type": "integer"}, "not_run": {"type": "integer"},
            "stopped": {"type": ["string", "null"], "description": "Why the rest was not run."},
            "hosts": {"type": "array", "items": {"type": "object", "properties": {
                "host": {"type": "string"}, "state": {"enum": ["succeeded", "failed", "not_run"]},
                "group": {"type": ["integer", "null"], "description": "Which of the groups has what it said."}, "duration_ms": {"type": ["number", "null"]}
            }, "required": ["host", "state"]}},
            "groups": {"type": "array", "items": {"type": "object"}, "description": "What hosts said, once for all that said the same; the largest group first."}
        },
        "required": ["total", "succeeded", "failed", "not_run", "stopped", "hosts", "groups"]
    }))?;
    Ok(runs(tool))
}

/// What became of one host.
pub(crate) struct Round {
    host: String,
    state: &'static str,
    duration_ms: Option<Value>,
    /// What it said; hosts of which this is the same are told together.
    said: Option<Map<String, Value>>,
}

impl Round {
    /// A host on which the command ran, or could not.
    pub fn of(host: &str, ended: Result<Ended, Failure>) -> Self {
        let failed = |failure: &Failure| {
            // Its own name would keep it from being told with others.
            let message = failure.message.replace(host, "the host");
            let said = json!({"error": message, "code": failure.code, "exit_code": null});
            Self {
                host: host.to_owned(),
                state: "failed",
                duration_ms: None,
                said: said.as_object().cloned(),
            }
        };
        let ended = match ended {
            Ok(ended) => ended,
            Err(failure) => return failed(&failure),
        };
        if let Err(failure) = answer(&ended) {
            return failed(&failure);
        }
        let mut said = members(&ended);
        let duration_ms = said.remove("duration_ms");
        said.remove("whole");
        let is_well = ended.end == End::Exited(0);
        Self {
            host: host.to_owned(),
            state: if is_well { "succeeded" } else { "failed" },
            duration_ms,
            said: Some(said),
        }
    }

    /// A host on which nothing was begun.
    pub fn not_run(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            state: "not_run",
            duration_ms: None,
            said: None,
        }
    }

    pub fn has_failed(&self) -> bool {
        self.state == "failed"
    }

    /// The same for the journal, with the exit code as the error's number.
    pub fn outcome(&self) -> Outcome {
        let status = match self.state {
            "succeeded" => Status::Success,
            "not_run" => Status::Aborted,
            _ => Status::Failure,
        };
        let code = self.said.as_ref().and_then(|said| said.get("exit_code"));
        Outcome {
            status,
            error_code: code.and_then(Value::as_i64).filter(|code| *code != 0),
            ..Outcome::default()
        }
    }
}

/// The answer: every host, and what they said without repeating it.
pub(crate) fn of_fan_out(rounds: Vec<Round>, stopped: Option<String>) -> Answer {
    let count = |state: &str| rounds.iter().filter(|round| round.state == state).count();
    let (total, succeeded, failed, not_run) = (
        rounds.len(),
        count("succeeded"),
        count("failed"),
        count("not_run"),
    );
    let mut groups: Vec<(Map<String, Value>, Vec<String>)> = Vec::new();
    for round in &rounds {
        let Some(said) = &round.said else { continue };
        match groups.iter_mut().find(|(of, _)| of == said) {
            Some((_, hosts)) => hosts.push(round.host.clone()),
            None => groups.push((said.clone(), vec![round.host.clone()])),
        }
    }
    groups.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
    let of = |host: &String| groups.iter().position(|(_, hosts)| hosts.contains(host));
    let hosts: Vec<Value> = rounds
        .iter()
        .map(|round| {
            json!({"host": round.host, "state": round.state, "group": of(&round.host), "duration_ms": round.duration_ms})
        })
        .collect();
    let groups: Vec<Value> = groups
        .into_iter()
        .map(|(mut said, hosts)| {
            said.insert("count".into(), hosts.len().into());
            said.insert("hosts".into(), hosts.into());
            Value::Object(said)
        })
        .collect();
    Answer::data(json!({
        "total": total, "succeeded": succeeded, "failed": failed, "not_run": not_run,
        "stopped": stopped, "hosts": hosts, "groups": groups,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_run_of_characters_and_nothing_else_is_special() {
        for (pattern, name, is) in [
            ("web1", "web1", true),
            ("web1", "web10", false),
            ("*", "anything", true),
            ("web*", "web", true),
            ("web*", "db", false),
            ("*-eu", "web-eu", true),
            ("*-eu", "web-eu2", false),
            ("w*-*1", "web-eu-1", true),
            ("w*-*1", "web-eu-2", false),
            ("a*a", "a", false),
            ("w?b", "web", false),
            ("", "", true),
        ] {
            assert_eq!(fits(pattern, name), is, "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_kept_of_a_host_shrinks_with_their_number() {
        assert_eq!(stream_bytes_max(4096, 1), 4096);
        assert_eq!(stream_bytes_max(256 * 1024, 64), 16 * 1024);
        assert_eq!(stream_bytes_max(256 * 1024, 10_000), STREAM_BYTES_MIN);
        assert_eq!(stream_bytes_max(100, 10_000), 100);
    }

    #[test]
    fn hosts_that_say_the_same_are_told_together() {
        let failure = |host: &str| Failure::new("unreachable", format!("{host} is not there"));
        let rounds = ["a", "b", "c"].map(|host| Round::of(host, Err(failure(host))));
        let mut rounds = Vec::from(rounds);
        rounds.push(Round::not_run("d"));
        let answer = of_fan_out(rounds, Some("too many".into()));
        let told = Value::Object(answer.structured.unwrap());
        assert_eq!(told["groups"].as_array().unwrap().len(), 1, "{told}");
        assert_eq!(told["groups"][0]["hosts"], json!(["a", "b", "c"]));
        assert_eq!((&told["failed"], &told["not_run"]), (&json!(3), &json!(1)));
        assert_eq!(
            told["hosts"][3],
            json!({"host": "d", "state": "not_run", "group": null, "duration_ms": null})
        );
    }
}
