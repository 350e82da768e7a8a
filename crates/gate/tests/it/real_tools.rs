//! Tools of public servers, classified by hand: none that writes, runs or sends passes for one that reads.

use gate::effects::{Annotations, Evidence, OperationSet, is_suspicious_name, propose};
use gate::facts::{Fact, Facts, ResourceType};
use gate::policy::starter::STARTER_POLICY;
use gate::policy::{Effect, Policy};

const TOOLS: &str = include_str!("real_tools.tsv");

/// Share of tools that read and are still asked about once the proposal is accepted, in percent.
const ASKED_PERCENT_MAX: usize = 15;

struct Tool {
    server: &'static str,
    name: &'static str,
    evidence: Evidence,
    reads: bool,
}

fn tools() -> Vec<Tool> {
    let rows = TOOLS.lines().filter(|row| !row.starts_with('#'));
    rows.map(|row| {
        let columns: Vec<&str> = row.split('\t').collect();
        let [server, name, arguments, said, class] = columns[..] else {
            panic!("{row}");
        };
        assert!(!class.is_empty() && class.chars().all(|c| "rwdxs".contains(c)));
        let annotations = Annotations {
            read_only: match said {
                "" => None,
                said => Some(said.starts_with("reads")),
            },
            destructive: said.contains("destroys").then_some(true),
            open_world: said.contains("open").then_some(true),
            approved: false,
        };
        let annotations = match said {
            "destroys" => Annotations {
                read_only: Some(false),
                ..annotations
            },
            _ => annotations,
        };
        Tool {
            server,
            name,
            evidence: Evidence {
                annotations,
                suspicious_schema: arguments.split(',').any(is_suspicious_name),
                ..Evidence::default()
            },
            reads: class == "r",
        }
    })
    .collect()
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

fn policies() -> [Policy; 2] {
    let reads = r#"{"rules":[{"id":"r","effect":"allow","conditions":{"operations":["read"]}}]}"#;
    [reads, STARTER_POLICY].map(|text| Policy::load(text, None, &[]).unwrap())
}

#[test]
fn before_acceptance_only_tools_that_read_pass() {
    let tools = tools();
    assert!(tools.len() >= 400, "{}", tools.len());
    for policy in &policies() {
        let passes = |tool: &&Tool| effect(policy, tool, None) == Effect::Allow;
        let wrong: Vec<(&str, &str)> = tools
            .iter()
            .filter(|tool| !tool.reads)
            .filter(passes)
            .map(|tool| (tool.server, tool.name))
            .collect();
        assert_eq!(wrong, []);
        // The reference servers' tools are known without a declaration.
        assert!(tools.iter().filter(passes).count() >= 20);
    }
}

#[test]
fn with_the_accepted_proposal_nearly_all_tools_that_read_pass_and_no_other() {
    let tools = tools();
    for policy in &policies() {
        let (mut wrong, mut asked) = (Vec::new(), Vec::new());
        for tool in &tools {
            let evidence = tool.evidence;
            let declared = propose(tool.name, evidence.annotations, evidence.suspicious_schema);
            match (effect(policy, tool, declared) == Effect::Allow, tool.reads) {
                (true, false) => wrong.push((tool.server, tool.name)),
                (false, true) => asked.push(tool.name),
                (true, true) | (false, false) => {}
            }
        }
        assert_eq!(wrong, []);
        let readers = tools.iter().filter(|tool| tool.reads).count();
        assert!(
            asked.len() * 100 <= readers * ASKED_PERCENT_MAX,
            "{} of {readers}: {asked:?}",
            asked.len()
        );
    }
}
