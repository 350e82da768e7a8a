//! Tools of public servers, classified by hand: none that writes, deletes, runs or sends passes for one that reads.
//!
//! The table was filled after the words of names were chosen. Half of its servers is held back: words may be changed
//! because of a tool of the first half, and never because of one of the second.

#![expect(
    clippy::print_stdout,
    reason = "the shares are measured, and read by people"
)]

use gate::effects::{Annotations, Evidence, OperationSet, is_suspicious_name, propose};
use gate::facts::{Fact, Facts, ResourceType};
use gate::policy::starter::STARTER_POLICY;
use gate::policy::{Effect, Policy};

const TOOLS: &str = include_str!("real_tools.tsv");

/// Share of tools that read and are still asked about once the proposal is accepted, in percent.
const ASKED_PERCENT_MAX: usize = 15;
/// The same of the servers that are held back. Their numbers are measured, not tuned, and may only shrink.
const HELD_BACK_ASKED_PERCENT_MAX: usize = 28;
/// Tools that are held back and that the proposal calls reads although they are not: one searches the web, and neither
/// its name nor its annotations say so.
const HELD_BACK_PASSES: [(&str, &str); 1] = [("pypi:duckduckgo-mcp-server", "search")];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    /// Words of names may be changed because of its tools.
    Tuned,
    /// Nothing is changed because of its tools.
    HeldBack,
}

impl Half {
    /// Returns the half that a server is in: by a hash of its name, so that no one chooses.
    fn of(server: &str) -> Self {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in "two halves of servers/".bytes().chain(server.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        match (hash >> 32).is_multiple_of(2) {
            true => Self::Tuned,
            false => Self::HeldBack,
        }
    }
}

struct Tool {
    half: Half,
    server: &'static str,
    name: &'static str,
    evidence: Evidence,
    reads: bool,
}

impl Tool {
    fn parse(server: &'static str, row: &'static str) -> Self {
        let columns: Vec<&str> = row.split('\t').collect();
        let [name, arguments, hints, class] = columns[..] else {
            panic!("{row}");
        };
        assert!(!class.is_empty() && class.chars().all(|c| "rwdxs".contains(c)));
        assert!(!class.contains('r') || class == "r", "{row}");
        let hint = |of: char| {
            let (_, rest) = hints.split_once(of)?;
            Some(rest.starts_with('+'))
        };
        let mut names = arguments
            .split(',')
            .filter_map(|argument| argument.split(':').next());
        Self {
            half: Half::of(server),
            server,
            name,
            evidence: Evidence {
                annotations: Annotations {
                    read_only: hint('r'),
                    destructive: hint('d'),
                    open_world: hint('o'),
                    approved: false,
                },
                suspicious_schema: names.any(is_suspicious_name),
                ..Evidence::default()
            },
            reads: class == "r",
        }
    }

    fn proposal(&self) -> Option<OperationSet> {
        propose(
            self.name,
            self.evidence.annotations,
            self.evidence.suspicious_schema,
        )
    }
}

/// Returns the servers and their tools.
fn table() -> (Vec<&'static str>, Vec<Tool>) {
    let (mut servers, mut tools) = (Vec::new(), Vec::new());
    for row in TOOLS.lines() {
        if let Some(row) = row.strip_prefix('@') {
            let columns: Vec<&str> = row.split('\t').collect();
            let [server, version, how] = columns[..] else {
                panic!("{row}");
            };
            assert!(
                !version.is_empty() && ["run", "read"].contains(&how),
                "{row}"
            );
            assert!(!servers.contains(&server), "{server} twice");
            servers.push(server);
        } else if let (false, Some(server)) =
            (row.is_empty() || row.starts_with('#'), servers.last())
        {
            tools.push(Tool::parse(server, row));
        }
    }
    (servers, tools)
}

fn effect(policy: &Policy, tool: &Tool, declared: Option<OperationSet>) -> Effect {
    let mut facts = Facts {
        method: "tools/call".into(),
        tool_name: Fact::Known(tool.name.into()),
        backend_id: "s".into(),
        resource_type: Some(ResourceType::Tool),
        paths: Fact::Known(Vec::new()),
        ..Facts::default()
    };
    facts.state_evidence(Evidence {
        declared,
        ..tool.evidence
    });
    policy.judge(&facts).verdict().effect
}

fn policies() -> [(&'static str, Policy); 2] {
    let reads = r#"{"rules":[{"id":"r","effect":"allow","conditions":{"operations":["read"]}}]}"#;
    [("operations: [read]", reads), ("starter", STARTER_POLICY)]
        .map(|(name, text)| (name, Policy::load(text, None, &[]).unwrap()))
}

/// Tools that do not read and pass, and tools that read and are asked about.
struct Outcome {
    passes: Vec<(&'static str, &'static str)>,
    asked: Vec<(&'static str, &'static str)>,
    readers: usize,
}

/// Returns what a policy does to the tools of one half, each with what is declared of it.
fn outcome(
    policy: &Policy,
    tools: &[Tool],
    half: Half,
    declared: fn(&Tool) -> Option<OperationSet>,
) -> Outcome {
    let mut outcome = Outcome {
        passes: Vec::new(),
        asked: Vec::new(),
        readers: 0,
    };
    for tool in tools.iter().filter(|tool| tool.half == half) {
        let is_allowed = effect(policy, tool, declared(tool)) == Effect::Allow;
        outcome.readers += usize::from(tool.reads);
        match (is_allowed, tool.reads) {
            (true, false) => outcome.passes.push((tool.server, tool.name)),
            (false, true) => outcome.asked.push((tool.server, tool.name)),
            (true, true) | (false, false) => {}
        }
    }
    let asked = outcome.asked.len();
    println!(
        "{} that do not read pass {:?}; of {} that read {asked} ask",
        outcome.passes.len(),
        outcome.passes,
        outcome.readers
    );
    outcome
}

#[test]
fn the_table_is_wide_and_its_halves_are_alike() {
    let (servers, tools) = table();
    assert!(servers.len() >= 60 && tools.len() >= 400);
    for half in [Half::Tuned, Half::HeldBack] {
        let of_half = |tool: &&Tool| tool.half == half;
        assert!(tools.iter().filter(of_half).count() >= 180);
    }
}

#[test]
fn before_acceptance_only_tools_that_read_pass() {
    let (_, tools) = table();
    for (name, policy) in &policies() {
        for (half, label) in [(Half::Tuned, "tuned"), (Half::HeldBack, "held back")] {
            print!("before acceptance, {name}, {label}: ");
            let outcome = outcome(policy, &tools, half, |_| None);
            assert_eq!(outcome.passes, []);
            // The reference servers' tools are known without a declaration.
            assert!(outcome.asked.len() < outcome.readers);
        }
    }
}

#[test]
fn with_the_accepted_proposal_nearly_all_tools_that_read_pass_and_no_other() {
    let (_, tools) = table();
    for (name, policy) in &policies() {
        for (half, label) in [(Half::Tuned, "tuned"), (Half::HeldBack, "held back")] {
            print!("after acceptance, {name}, {label}: ");
            let outcome = outcome(policy, &tools, half, Tool::proposal);
            println!("  asked: {:?}", outcome.asked);
            let (passes, asked_percent_max): (&[_], _) = match half {
                Half::Tuned => (&[], ASKED_PERCENT_MAX),
                Half::HeldBack => (&HELD_BACK_PASSES, HELD_BACK_ASKED_PERCENT_MAX),
            };
            assert_eq!(outcome.passes, passes);
            assert!(outcome.asked.len() * 100 <= outcome.readers * asked_percent_max);
        }
    }
}
