//! Strings that servers coerce into lists and maps: no string of what a server makes of them leads where the policy does
//! not, whichever reader the server has.
//!
//! The servers write down each string of the values that their tools receive. The rules refuse a folder, allow a folder,
//! or say nothing about a file that is protected anyway; the server runs inside and outside of the allowed folder.

mod generate;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use mocks::ambiguous::AmbiguousFrame;
use serde_json::{Value, json};
use wire::Revision;

use crate::edge::{Edge, NAME, Transport, Way};
use crate::place::{LIMITS, Place, binary};
use crate::servers::{CoercingServer, coercing};
use crate::written::led;
use crate::{http, lines, number, wanted};
use generate::{Coercions, Folders};

/// The number of the first call.
const FIRST: u64 = 700_000;
/// Calls of one run in the test that belongs to every build.
const FEW: usize = 60;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rules {
    /// One folder is refused.
    Deny,
    /// One folder alone is allowed.
    Allow,
    /// All is allowed but for what is protected.
    Protected,
}

/// One run: rules, working directory, and edge.
#[derive(Clone, Copy)]
struct Setup {
    rules: Rules,
    is_inside: bool,
    edge: Edge,
}

/// What came of a run.
#[derive(Default)]
struct Coerced {
    executed: usize,
    /// Executed calls that lead where the rules of the run do not.
    refused: usize,
    /// The tools of those, executed or not recorded as allowed: differences.
    differences: Vec<String>,
    tools: BTreeSet<String>,
}

impl Setup {
    /// Every combination, by every edge.
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for rules in [Rules::Deny, Rules::Allow, Rules::Protected] {
            for is_inside in [true, false] {
                for edge in [Edge::Run, Edge::Serve, Edge::Together, Edge::ServeAll] {
                    all.push(Self {
                        rules,
                        is_inside,
                        edge,
                    });
                }
            }
        }
        all
    }

    /// Each combination once, by an edge that depends on `turn`.
    fn few(turn: usize) -> Vec<Self> {
        let all = Self::all().into_iter().enumerate();
        let one = all.filter(|(at, _)| (at / 4 + turn) % 4 == at % 4);
        one.map(|(_, setup)| setup).collect()
    }

    fn policy(self, open: &Path, secret: &Path) -> Value {
        let any = json!({"id": "any", "effect": "allow", "conditions": {"tool_name": "*"}});
        let below = |folder: &Path| json!(format!("{}/**", folder.display()));
        let rules = match self.rules {
            Rules::Deny => json!([
                {"id": "secret", "effect": "deny", "conditions": {"path_pattern": below(secret)}},
                any,
            ]),
            Rules::Allow => json!([
                {"id": "open", "effect": "allow", "conditions": {"path_pattern": below(open)}},
            ]),
            Rules::Protected => json!([any]),
        };
        json!({"version": "1", "default_action": "deny", "rules": rules})
    }

    /// Sends so many calls of a seed to a server; `blind` is the syntax that the gate does not read.
    fn drive(
        self,
        server: &CoercingServer,
        seed: u64,
        count: usize,
        blind: Option<&'static str>,
    ) -> Coerced {
        let mut place = Place::new();
        place.blind = blind;
        let root = place.dir.canonicalize().unwrap();
        let (open, secret) = (root.join("open"), root.join("secret"));
        for folder in [&open, &secret] {
            fs::create_dir_all(folder).unwrap();
        }
        let policy = self.policy(&open, &secret).to_string();
        fs::write(place.dir.join("policy.json"), policy).unwrap();
        let is_file = self.rules == Rules::Protected;
        let secret = match is_file {
            true => root.join("policy.json"),
            false => secret,
        };
        let cwd = match self.is_inside {
            true => open.clone(),
            false => root.clone(),
        };
        let folders = Folders {
            open: &open,
            secret: &secret,
            is_file,
            cwd: &cwd,
        };
        let calls = Coercions::new(seed, FIRST, folders);
        let calls = match self.edge {
            Edge::Together | Edge::ServeAll => calls.of_server(NAME),
            _ => calls,
        };
        let calls: Vec<AmbiguousFrame> = calls.take(count).collect();
        self.send(server, &place, &cwd, &calls);
        let leads = |path: &str| match self.rules {
            Rules::Allow => !Path::new(path).starts_with(&open),
            Rules::Deny | Rules::Protected => Path::new(path).starts_with(&secret),
        };
        judge(&place, self.edge, &calls, &cwd, leads)
    }

    fn send(self, server: &CoercingServer, place: &Place, cwd: &Path, calls: &[AmbiguousFrame]) {
        let (program, arguments) = server.command.split_first().unwrap();
        let own = json!({
            "command": program, "args": arguments, "cwd": cwd,
            "env": {"DIFFERENTIAL_LOG": place.book()},
        });
        let way = Way {
            edge: self.edge,
            transport: Transport::Stdio,
            revision: Revision::V2025_06_18,
        };
        match self.edge {
            Edge::Serve => {
                let serving = http::Serving::of(&own, place, &[]);
                http::send_all(way, &serving, calls);
            }
            Edge::ServeAll => {
                let serving = http::Serving::of_all(&own, place);
                http::send_all(way, &serving, calls);
            }
            Edge::Direct => {
                let mut words = vec!["env".to_owned(), format!("--chdir={}", cwd.display())];
                words.extend(server.command.iter().cloned());
                lines::drive(way, &words, place, calls);
            }
            _ => {
                let configuration = json!({
                    "servers": {NAME: own, "absent": {"command": "false"}},
                    "policy": place.dir.join("policy.json"),
                });
                let file = place.dir.join("durward.yaml");
                fs::write(file, configuration.to_string()).unwrap();
                let words = ["--config", "durward.yaml", "--state-dir", "state", "run"];
                let name: &[&str] = match self.edge {
                    Edge::Run => &[NAME],
                    _ => &[],
                };
                let words = [&words[..], &LIMITS, name].concat();
                let own = std::iter::once(binary()).chain(words);
                let command: Vec<String> = own.map(str::to_owned).collect();
                lines::drive(way, &command, place, calls);
            }
        }
    }
}

impl std::fmt::Display for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let edge = match self.edge {
            Edge::Run => "run",
            Edge::Serve => "serve",
            Edge::Together => "together",
            Edge::ServeAll => "serve all",
            _ => "direct",
        };
        let cwd = match self.is_inside {
            true => "inside",
            false => "outside",
        };
        let rules = format!("{:?}", self.rules);
        write!(f, "{edge:9} {rules:9} {cwd:7}")
    }
}

/// Compares what was executed with the rules, and with what was recorded as allowed.
fn judge(
    place: &Place,
    edge: Edge,
    calls: &[AmbiguousFrame],
    cwd: &Path,
    leads: impl Fn(&str) -> bool,
) -> Coerced {
    let mut allowed: BTreeMap<String, usize> = BTreeMap::new();
    if edge.is_guarded() {
        for decision in place.decisions() {
            if decision["decision"] == "allow" && decision["mcp_method"] == "tools/call" {
                let tool = decision["tool_name"].as_str().unwrap_or_default();
                *allowed.entry(tool.to_owned()).or_default() += 1;
            }
        }
    }
    let mut coerced = Coerced::default();
    for line in place.executed() {
        let tool = line["tool"].as_str().unwrap_or_default().to_owned();
        let strings = line["strings"].as_array().into_iter().flatten();
        let strings: Vec<&str> = strings.filter_map(Value::as_str).collect();
        let mut paths = strings.iter().filter_map(|text| opened(text, cwd));
        let is_refused = paths.any(|path| leads(&path));
        coerced.executed += 1;
        coerced.refused += usize::from(is_refused);
        coerced.tools.insert(tool.clone());
        let left = allowed.get_mut(&tool).filter(|left| **left > 0);
        let is_recorded = left.map(|left| *left -= 1).is_some();
        if edge.is_guarded() && (is_refused || !is_recorded) {
            let numbers = strings.iter().flat_map(|text| {
                text.split(|c: char| !c.is_ascii_digit())
                    .filter_map(|digits| digits.parse::<u64>().ok())
            });
            let of = |number| calls.iter().find(|call| call.number == number);
            let call = numbers.filter_map(of).next();
            let call = call.map(|call| String::from_utf8_lossy(&call.bytes).into_owned());
            let difference = format!("{line} of {call:?} (recorded: {is_recorded})");
            coerced.differences.push(difference);
        }
    }
    coerced
}

/// Returns the path that a server opens for a string; `None` if it is no path.
fn opened(text: &str, cwd: &Path) -> Option<String> {
    let is_path = text.contains('/') && !text.contains(['[', '{', '(', '"', '\'', '\n', '\0']);
    let text = text.trim();
    is_path.then(|| led(&PathBuf::from(cwd).join(text).display().to_string()))
}

/// Runs all servers in these setups; returns the differences.
fn differences(setups: &[Setup], seed: u64, count: usize) -> Vec<String> {
    let mut red = Vec::new();
    for server in coercing() {
        for setup in setups {
            let coerced = setup.drive(&server, seed, count, None);
            eprintln!(
                "{:20} {setup} executed {:4}  different {:3}",
                server.name,
                coerced.executed,
                coerced.differences.len()
            );
            let found = coerced.differences.into_iter();
            red.extend(found.map(|found| format!("{} {setup}: {found}", server.name)));
        }
    }
    red
}

#[test]
fn few_strings_that_servers_coerce_lead_only_where_the_rules_allow() {
    let red = differences(&Setup::few(0), 2_211, FEW * 2 / 3);
    assert!(red.is_empty(), "{}", red.join("\n"));
}

#[test]
#[ignore = "make differential"]
fn strings_that_servers_coerce_lead_only_where_the_rules_allow() {
    let (seed, _) = wanted();
    let count = number("COERCED").and_then(|count| usize::try_from(count).ok());
    let red = differences(&Setup::all(), seed, count.unwrap_or(200));
    assert!(red.is_empty(), "{}", red.join("\n"));
}

/// Without a gate each server that coerces executes calls that lead where a rule does not: else the others prove nothing.
#[test]
fn without_a_gate_coerced_strings_lead_to_the_refused_folder() {
    for server in coercing() {
        let setup = Setup {
            rules: Rules::Deny,
            is_inside: true,
            edge: Edge::Direct,
        };
        let coerced = setup.drive(&server, 2_211, 2 * FEW, None);
        assert!(
            coerced.executed >= FEW / 4 && coerced.refused >= FEW / 20,
            "{}: {} executed, {} refused",
            server.name,
            coerced.executed,
            coerced.refused
        );
        let tools: Vec<&str> = coerced.tools.iter().map(String::as_str).collect();
        for tool in server.coerces {
            assert!(tools.contains(tool), "{}: {tool}: {tools:?}", server.name);
        }
    }
}

/// With one syntax taken out of the gate's reader, each server that coerces strings of it executes what is refused.
#[test]
#[ignore = "make differential"]
fn with_a_syntax_that_the_gate_does_not_read_each_server_that_does_goes_red() {
    for server in coercing() {
        for blind in server.syntaxes {
            let setup = Setup {
                rules: Rules::Deny,
                is_inside: true,
                edge: Edge::Run,
            };
            let coerced = setup.drive(&server, 2_211, 4 * FEW, Some(blind));
            eprintln!(
                "{:20} without {blind:6} different {:3}",
                server.name,
                coerced.differences.len()
            );
            assert!(
                !coerced.differences.is_empty(),
                "{} without {blind}: nothing differs in {} calls",
                server.name,
                coerced.executed
            );
        }
    }
}
