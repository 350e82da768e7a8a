//! Probable causes and remedies: the guide's troubleshooting, from the figures of the run itself.

use serde::Serialize;

use super::args::SshPlan;
use super::figures::PhaseReport;
use super::scrape::ServerLimits;
use crate::error::LabError;

/// A diagnosis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Diagnosis {
    /// Its name, as the guide has it.
    pub entry: &'static str,
    pub found: String,
    pub advice: String,
}

/// Returns the error of a server that does not answer.
pub(super) fn unreachable(plan: &SshPlan, wrong: &str) -> LabError {
    let port = plan.server.authority().rsplit(':').next().unwrap_or("3000");
    LabError::Broken {
        arm: "server".into(),
        what: format!(
            "MCP server not reachable: {wrong}; start it with `durward ssh serve --port {port} --hosts FILE`, and look with `curl -sf http://{}/health`",
            plan.server.authority()
        ),
    }
}

/// The codes of failures, and what they mean together.
struct DiagnosisRule {
    entry: &'static str,
    codes: &'static [&'static str],
    advice: &'static str,
}

const ENTRIES: &[DiagnosisRule] = &[
    DiagnosisRule {
        entry: "Connection timeouts",
        codes: &[
            "unreachable",
            "connect_timed_out",
            "timeout",
            "timed_out",
            "connection_lost",
        ],
        advice: "the target did not answer in time: is its sshd running? `durward ssh hosts check FILE` lists the hosts, `durward-lab mock ssh-target` starts some",
    },
    DiagnosisRule {
        entry: "Rate limit errors",
        codes: &[
            "status_429",
            "rate_limited",
            "tool_rate_limited",
            "too_many_under_way",
        ],
        advice: "wait 60 seconds, or serve with --profile loadtest or --calls-per-minute",
    },
    DiagnosisRule {
        entry: "Connection pool saturation",
        codes: &["too_many_connections", "queue_full", "queue_timed_out"],
        advice: "use fewer workers, or raise connections_max of the server",
    },
    DiagnosisRule {
        entry: "MCP session limits",
        codes: &["too_many_sessions", "no_session"],
        advice: "use fewer workers, or raise sessions_max in the file of hosts",
    },
    DiagnosisRule {
        entry: "SSH target overload",
        codes: &["refused_by_server", "login_refused", "protocol"],
        advice: "the target takes no more: look at MaxSessions and MaxStartups in its sshd_config, and at the credential of the host",
    },
    DiagnosisRule {
        entry: "Commands being blocked",
        codes: &[
            "denied_by_rule",
            "no_rule_allows",
            "protected_path",
            "approval_denied",
            "refused",
            "unfit_arguments",
        ],
        advice: "a rule refuses the command: `durward ssh check 'COMMAND'` names it; pipes, redirections and the like are no part of a command",
    },
];

/// Returns the diagnoses of a run's failures; `is_there` is true if the server answered at the end.
pub(super) fn of(phases: &[PhaseReport], limits: &ServerLimits, is_there: bool) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    for entry in ENTRIES {
        let codes = phases.iter().flat_map(|phase| &phase.errors);
        let of_entry = codes.filter(|(code, _)| entry.codes.contains(&code.as_str()));
        let count: usize = of_entry.map(|(_, count)| count).sum();
        if count == 0 {
            continue;
        }
        let limit = match entry.entry {
            "Rate limit errors" => limits
                .calls_of_a_tool_per_minute
                .map(|n| format!("; in force: {n} calls of a tool a minute")),
            "Connection pool saturation" => limits
                .connections_to_a_host
                .map(|n| format!("; in force: {n} connections to a host")),
            "MCP session limits" => limits.sessions.map(|n| format!("; in force: {n} sessions")),
            _ => None,
        };
        found.push(Diagnosis {
            entry: entry.entry,
            found: format!("{count} calls{}", limit.unwrap_or_default()),
            advice: entry.advice.into(),
        });
    }
    let lost: usize = phases
        .iter()
        .map(|of| of.asked.saturating_sub(of.running))
        .sum();
    if lost > 0 {
        found.push(Diagnosis {
            entry: "Multiple workers failing to connect",
            found: format!("{lost} workers had no connection"),
            advice:
                "begin with 2 workers and add more; the entries above say what stood in the way"
                    .into(),
        });
    }
    if !is_there {
        found.push(Diagnosis {
            entry: "Out of memory",
            found: "the server answered at the beginning and does not at the end".into(),
            advice: "look at its log and at `dmesg`; where the kernel killed it for its memory, use fewer workers".into(),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(code: &str) -> PhaseReport {
        PhaseReport {
            asked: 3,
            running: 3,
            errors: [(code.to_owned(), 4)].into(),
            ..PhaseReport::default()
        }
    }

    #[test]
    fn each_entry_of_the_guide_is_told_where_its_signs_are_seen() {
        let limits = ServerLimits {
            connections_to_a_host: Some(10.0),
            ..ServerLimits::default()
        };
        for (code, entry) in [
            ("timeout", "Connection timeouts"),
            ("status_429", "Rate limit errors"),
            ("tool_rate_limited", "Rate limit errors"),
            ("too_many_connections", "Connection pool saturation"),
            ("too_many_sessions", "MCP session limits"),
            ("refused_by_server", "SSH target overload"),
            ("denied_by_rule", "Commands being blocked"),
        ] {
            let told = of(&[failing(code)], &limits, true);
            assert_eq!(told.len(), 1, "{code}: {told:?}");
            assert_eq!(told[0].entry, entry);
            assert!(told[0].found.starts_with("4 calls"), "{told:?}");
        }
        assert!(
            of(&[failing("too_many_connections")], &limits, true)[0]
                .found
                .contains("10 connections")
        );
        let lost = PhaseReport {
            asked: 5,
            running: 3,
            ..PhaseReport::default()
        };
        assert_eq!(
            of(&[lost], &limits, true)[0].entry,
            "Multiple workers failing to connect"
        );
        assert_eq!(
            of(&[PhaseReport::default()], &limits, false)[0].entry,
            "Out of memory"
        );
        assert!(of(&[PhaseReport::default()], &limits, true).is_empty());
    }
}
