//! Tools of public servers, classified by hand: none that writes, deletes, runs or sends passes for one that reads.
//!
//! The first table was filled after the words of names were chosen. Two further draws were classified by hand before the
//! classifier saw them. At first sight of the opened one 1 of 106 tools that do not read passed and 19 of 69 that read
//! were asked about; of the fresh one 2 of 70 passed (a pipeline of its caller's, a flag that makes a path a URL) and 10
//! of 70 were asked about. The classifier was corrected after each: kinds of schemas, and general words of which some
//! (`calculate`, `observe`, `docs`, `metadata`, `directions`, `examples`) are names of these tools. So no sample is unseen
//! any more, and the bounds below say that nothing got worse, not how a new server fares. One held-back tool that takes a
//! pipeline has the class of a query since.

#![expect(
    clippy::print_stdout,
    reason = "the shares are measured, and read by people"
)]

use gate::effects::{Annotations, Evidence, OperationSet, SchemaSigns, propose};
use gate::facts::{Fact, Facts, ResourceType};
use gate::policy::starter::STARTER_POLICY;
use gate::policy::{Effect, Policy};

const TOOLS: &str = include_str!("real_tools.tsv");
const OPENED_TOOLS: &str = include_str!("real_tools_opened.tsv");
const FRESH_TOOLS: &str = include_str!("real_tools_fresh.tsv");

/// Share of tools that read and are still asked about once the proposal is accepted, in percent of each sample.
const ASKED_PERCENT_MAX: usize = 15;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sample {
    /// Words of names may be changed because of its tools.
    Tuned,
    /// Half of the first table; the classifier was corrected after its result was seen.
    HeldBack,
    /// Drawn last; two corrections followed its first result.
    Fresh,
}

const SAMPLES: [(Sample, &str); 3] = [
    (Sample::Tuned, "tuned"),
    (Sample::HeldBack, "held back"),
    (Sample::Fresh, "fresh"),
];

impl Sample {
    /// Returns the half of the first table that a server is in: by a hash of its name, so that no one chooses.
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
    sample: Sample,
    server: &'static str,
    name: &'static str,
    evidence: Evidence,
    schema: SchemaSigns,
    reads: bool,
}

impl Tool {
    fn parse(sample: Sample, server: &'static str, row: &'static str) -> Self {
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
        let names = arguments
            .split(',')
            .filter_map(|argument| argument.split(':').next());
        let mut schema = SchemaSigns::default();
        names.for_each(|name| schema.add(name));
        Self {
            sample,
            server,
            name,
            evidence: Evidence {
                annotations: Annotations {
                    read_only: hint('r'),
                    destructive: hint('d'),
                    open_world: hint('o'),
                    approved: false,
                },
                suspicious_schema: schema.is_suspicious(),
                ..Evidence::default()
            },
            schema,
            reads: class == "r",
        }
    }

    fn proposal(&self) -> Option<OperationSet> {
        propose(self.name, self.evidence.annotations, self.schema)
    }
}

/// Returns the servers and their tools, those of the later draws last.
fn table() -> (Vec<&'static str>, Vec<Tool>) {
    let (servers, mut tools) = parse_table(TOOLS, Sample::of);
    let (_, opened) = parse_table(OPENED_TOOLS, |_| Sample::Tuned);
    let (_, fresh) = parse_table(FRESH_TOOLS, |_| Sample::Fresh);
    tools.extend(opened.into_iter().chain(fresh));
    let mut names: Vec<_> = tools.iter().map(|tool| (tool.server, tool.name)).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    (servers, tools)
}

fn parse_table(text: &'static str, sample: fn(&str) -> Sample) -> (Vec<&'static str>, Vec<Tool>) {
    let (mut servers, mut tools) = (Vec::new(), Vec::new());
    for row in text.lines() {
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
            tools.push(Tool::parse(sample(server), server, row));
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

/// Returns what a policy does to the tools of one sample, each with what is declared of it.
fn outcome(
    policy: &Policy,
    tools: &[Tool],
    sample: Sample,
    declared: fn(&Tool) -> Option<OperationSet>,
) -> Outcome {
    let mut outcome = Outcome {
        passes: Vec::new(),
        asked: Vec::new(),
        readers: 0,
    };
    for tool in tools.iter().filter(|tool| tool.sample == sample) {
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
    for (sample, at_least) in [
        (Sample::Tuned, 180),
        (Sample::HeldBack, 180),
        (Sample::Fresh, 120),
    ] {
        let of_sample = |tool: &&Tool| tool.sample == sample;
        assert!(tools.iter().filter(of_sample).count() >= at_least);
    }
}

#[test]
fn before_acceptance_only_tools_that_read_pass() {
    let (_, tools) = table();
    for (name, policy) in &policies() {
        for (sample, label) in SAMPLES {
            print!("before acceptance, {name}, {label}: ");
            let outcome = outcome(policy, &tools, sample, |_| None);
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
        for (sample, label) in SAMPLES {
            print!("after acceptance, {name}, {label}: ");
            let outcome = outcome(policy, &tools, sample, Tool::proposal);
            println!("  asked: {:?}", outcome.asked);
            assert_eq!(outcome.passes, []);
            assert!(outcome.asked.len() * 100 <= outcome.readers * ASKED_PERCENT_MAX);
        }
    }
}

/// A name that hides what it does behind a verb that reads is not proposed as a read, but for one that shows nothing.
#[test]
fn misleading_names_are_not_proposed_as_reads() {
    let mut schema = SchemaSigns::default();
    schema.add("path");
    for name in include_str!("misleading_names.txt").lines() {
        let proposal = propose(name, Annotations::default(), schema);
        let is_read = proposal == Some(OperationSet::READ);
        assert_eq!(is_read, name == "get_data", "{name}");
    }
}
