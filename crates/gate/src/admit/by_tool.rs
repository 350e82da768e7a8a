//! How often each tool of each server was called, by how that ended. For metrics: names are bounded.
//!
//! A caller chooses the names of the tools that it asks for. So a name that was only ever refused takes one of few
//! places; those beyond are counted together as [`OTHER_TOOL`].

use std::sync::{Mutex, PoisonError};

use ahash::AHashMap;

use crate::journal::Status;

use super::observer::{End, Observed, REFUSED};

/// Most servers that are counted apart.
pub const SERVERS_MAX: usize = 512;
/// Most tools of one server that are counted apart.
pub const TOOLS_MAX: usize = 256;
/// Of those, the most that have not yet been let through.
const REFUSED_TOOLS_MAX: usize = 64;
/// Longest name that is counted apart, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Stands for the servers and tools beyond.
pub const OTHER_TOOL: &str = "other";

/// The outcomes, with the refused at the end.
const OUTCOMES: usize = Status::ALL.len() + 1;

type Counts = [u64; OUTCOMES];

#[derive(Default)]
pub(super) struct ByTool(Mutex<AHashMap<Box<str>, Server>>);

#[derive(Default)]
struct Server {
    tools: AHashMap<Box<str>, Counts>,
    other: Counts,
}

/// How often a tool was called with one outcome.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToolCount {
    /// The server.
    pub server: String,
    /// The tool; empty where the calls named none.
    pub tool: String,
    /// `Success`, `Failure`, `Cancelled`, `Aborted` or `Refused`.
    pub outcome: &'static str,
    /// How often; never 0.
    pub count: u64,
}

impl ByTool {
    /// Counts a call that is over.
    pub fn count(&self, call: &Observed<'_>) {
        let tool = call.facts.tool_name.known().map_or("", String::as_str);
        let outcome = match call.end {
            End::Refused(_) => OUTCOMES - 1,
            End::Operation(operation) => Status::ALL
                .iter()
                .position(|status| *status == operation.status)
                .unwrap_or_default(),
        };
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = call.facts.backend_id.as_str();
        if let Some(server) = servers.get_mut(name) {
            return server.add(tool, outcome);
        }
        let name = if servers.len() < SERVERS_MAX {
            name
        } else {
            OTHER_TOOL
        };
        servers.entry(name.into()).or_default().add(tool, outcome);
    }

    pub fn read(&self) -> Vec<ToolCount> {
        let servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = Vec::new();
        for (name, server) in &*servers {
            let tools = server.tools.iter().map(|(tool, counts)| (&**tool, counts));
            for (tool, counts) in tools.chain([(OTHER_TOOL, &server.other)]) {
                let labels = Status::ALL.iter().map(|status| status.name());
                for (outcome, count) in labels.chain([REFUSED]).zip(counts) {
                    if *count > 0 {
                        out.push(ToolCount {
                            server: name.to_string(),
                            tool: tool.to_owned(),
                            outcome,
                            count: *count,
                        });
                    }
                }
            }
        }
        drop(servers);
        out.sort();
        out
    }
}

impl Server {
    /// Counts one. Nothing is allocated for a tool that is known.
    fn add(&mut self, tool: &str, outcome: usize) {
        let counts = if let Some(counts) = self.tools.get_mut(tool) {
            counts
        } else if self.has_place(tool, outcome) {
            self.tools.entry(tool.into()).or_default()
        } else {
            &mut self.other
        };
        if let Some(count) = counts.get_mut(outcome) {
            *count = count.saturating_add(1);
        }
    }

    /// Whether a tool that is not known yet is counted apart.
    fn has_place(&self, tool: &str, outcome: usize) -> bool {
        let is_refused = outcome == OUTCOMES - 1;
        let places = if is_refused {
            REFUSED_TOOLS_MAX
        } else {
            TOOLS_MAX
        };
        tool.len() <= NAME_BYTES_MAX && tool != OTHER_TOOL && self.tools.len() < places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admit::Origin;
    use crate::facts::{Fact, Facts};
    use crate::journal::{Micros, OpId, Operation};
    use crate::reason::Reason;

    fn call(by_tool: &ByTool, server: &str, tool: &str, status: Option<Status>) {
        let facts = Facts {
            backend_id: server.into(),
            tool_name: Fact::Known(tool.into()),
            ..Facts::default()
        };
        let operation = Operation {
            status: status.unwrap_or_default(),
            ..Operation::default()
        };
        by_tool.count(&Observed {
            op: OpId(1),
            facts: &facts,
            origin: &Origin::default(),
            rule: "r",
            approval: Micros::default(),
            duration: Micros::default(),
            end: match status {
                Some(_) => End::Operation(&operation),
                None => End::Refused(Reason::NoRule),
            },
        });
    }

    #[test]
    fn names_that_callers_invent_take_few_places() {
        let by_tool = ByTool::default();
        for invented in 0..10_000 {
            call(&by_tool, "a", &format!("invented-{invented}"), None);
        }
        call(&by_tool, "a", "real", Some(Status::Success));
        call(&by_tool, "a", "real", None);
        call(&by_tool, "a", &"x".repeat(NAME_BYTES_MAX + 1), None);
        let read = by_tool.read();
        let of = |tool: &str| -> Vec<(&str, u64)> {
            let rows = read.iter().filter(|row| row.tool == tool);
            rows.map(|row| (row.outcome, row.count)).collect()
        };
        assert_eq!(of("real"), [(REFUSED, 1), ("Success", 1)]);
        let kept = REFUSED_TOOLS_MAX as u64;
        assert_eq!(of(OTHER_TOOL), [(REFUSED, 10_000 - kept + 1)]);
        assert_eq!(read.iter().map(|row| row.count).sum::<u64>(), 10_003);
    }

    #[test]
    fn servers_and_tools_are_bounded() {
        let by_tool = ByTool::default();
        for server in 0..SERVERS_MAX + 10 {
            call(&by_tool, &format!("s{server}"), "t", Some(Status::Failure));
        }
        for tool in 0..TOOLS_MAX + 10 {
            call(&by_tool, "s0", &format!("t{tool}"), Some(Status::Success));
        }
        let read = by_tool.read();
        let mut servers: Vec<&str> = read.iter().map(|row| row.server.as_str()).collect();
        servers.dedup();
        assert_eq!(servers.len(), SERVERS_MAX + 1);
        let tools = read.iter().filter(|row| row.server == "s0").count();
        assert_eq!(tools, TOOLS_MAX + 1);
    }
}
