//! Agents and patterns in the file.

use std::collections::HashSet;

use ::agents::plan::{CallEncoding, LimitPolicy, RunLimits, StepDisplay};
use ::agents::prompt::{TemplateValues, render_instruction};
use gate::policy::NameGlob;
use gate::policy::document::nearest;
use serde_json::json;

use super::fault::{Fault, Position};
use super::models::Models;
use super::section::Section;
use super::server::Server;
use super::values::{Choice, Size, Span};

/// Name of the provider that agents are models of.
pub const PROVIDER: &str = "agent";
/// Most agents.
const AGENTS_MAX: usize = 256;
/// Deepest chain of agents that call each other, the first one included.
pub const DEPTH_MAX: usize = 3;
/// Longest time of a run, in milliseconds.
const TIME_MS: std::ops::RangeInclusive<Span> = Span(100)..=Span(3_600_000);
/// Bytes of a tool's result.
const RESULT_BYTES: std::ops::RangeInclusive<Size> = Size(256)..=Size(16 << 20);
/// Most tokens of a run.
const TOKENS_MAX: u64 = 1_000_000_000;

/// Agents, and the patterns that they are written in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentsSection {
    pub all: Vec<AgentConfig>,
    pub patterns: Vec<AgentPattern>,
}

/// An agent.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    pub name: String,
    pub at: Position,
    pub model: String,
    pub description: String,
    /// Template.
    pub instruction: String,
    pub pattern: String,
    /// Further patterns: each is a model of its own.
    pub patterns: Vec<String>,
    pub aliases: Vec<String>,
    pub toolsets: Vec<AgentToolset>,
    pub permissions: AgentPermissions,
    pub limits: RunLimits,
    pub on_limit: LimitPolicy,
    pub show: StepDisplay,
    /// Members of requests, as JSON.
    pub parameters: Vec<(String, String)>,
}

impl PartialEq for AgentConfig {
    /// Its position in the file does not count.
    fn eq(&self, other: &Self) -> bool {
        let said = |own: &Self| Self {
            at: Position { line: 0, column: 0 },
            ..own.clone()
        };
        format!("{:?}", said(self)) == format!("{:?}", said(other))
    }
}

/// Pairs of globs `SERVER/TOOL`, with the syntax of `tool_name` in rules. They only narrow what the policy allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentPermissions {
    /// If there is one, tools that match none of these or of `ask` are not offered.
    pub allow: Vec<(String, String)>,
    /// Calls of these ask a person.
    pub ask: Vec<(String, String)>,
    /// Calls of these are refused.
    pub deny: Vec<(String, String)>,
}

/// Tools of a server, or another agent as a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentToolset {
    /// Tools of this server that match one of the patterns; all if there is none.
    Server { name: String, tools: Vec<String> },
    /// This agent.
    Agent(String),
}

/// Words of a way to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPattern {
    pub name: String,
    /// Text before the agent's own instruction.
    pub system: String,
    pub encoding: CallEncoding,
    /// Whether tools are offered.
    pub has_tools: bool,
}

impl Choice for LimitPolicy {
    const WORDS: &'static [(&'static str, Self)] =
        &[("answer", Self::Answer), ("error", Self::Error)];
}

impl Choice for StepDisplay {
    const WORDS: &'static [(&'static str, Self)] = &[("steps", Self::Steps), ("none", Self::None)];
}

impl Choice for CallEncoding {
    const WORDS: &'static [(&'static str, Self)] =
        &[("native", Self::Native), ("react", Self::React)];
}

impl AgentConfig {
    /// Returns every model that the agent is, with its pattern: name, aliases, name and pattern.
    pub fn models(&self) -> Vec<(String, &str)> {
        let mut out = vec![(self.name.clone(), self.pattern.as_str())];
        let aliases = self.aliases.iter();
        out.extend(aliases.map(|alias| (alias.clone(), self.pattern.as_str())));
        for pattern in &self.patterns {
            // The name under which clients of the original know it.
            let word = match pattern.as_str() {
                "react" => "simple",
                word => word,
            };
            out.push((format!("{}_{word}", self.name), pattern.as_str()));
        }
        out
    }
}

impl AgentsSection {
    /// Returns the pattern of this name.
    pub fn pattern(&self, name: &str) -> Option<AgentPattern> {
        let built_in = |encoding| AgentPattern {
            name: name.to_owned(),
            system: String::new(),
            encoding,
            has_tools: true,
        };
        match name {
            "native" => Some(built_in(CallEncoding::Native)),
            "react" => Some(built_in(CallEncoding::React)),
            name => self.patterns.iter().find(|own| own.name == name).cloned(),
        }
    }

    /// Returns the rules that permissions are, as a policy; `None` if there is none.
    pub fn rules(&self) -> Option<String> {
        let mut rules = Vec::new();
        for agent in &self.all {
            let own = &agent.permissions;
            for (word, effect, pairs) in [("deny", "deny", &own.deny), ("ask", "hitl", &own.ask)] {
                for (number, (server, tool)) in (1..).zip(pairs) {
                    let mut conditions = json!({ "agent": agent.name, "tool_name": tool });
                    if let (true, Some(members)) = (server != "*", conditions.as_object_mut()) {
                        members.insert("backend_id".into(), server.as_str().into());
                    }
                    let id = format!("agent-{}-{word}-{number}", agent.name);
                    rules.push(json!({ "id": id, "effect": effect, "conditions": conditions }));
                }
            }
        }
        let policy = json!({ "version": "1", "default_action": "deny", "rules": rules });
        (!rules.is_empty()).then(|| policy.to_string())
    }

    fn pattern_names(&self) -> Vec<&str> {
        let own = self.patterns.iter().map(|own| own.name.as_str());
        ["native", "react"].into_iter().chain(own).collect()
    }
}

/// Reads both sections.
pub fn read(
    top: &Section<'_>,
    models: &Models,
    servers: &[Server],
) -> Result<AgentsSection, Fault> {
    let mut agents = AgentsSection::default();
    for (member, section) in top.each("patterns", "patterns.*")? {
        agents.patterns.push(pattern(&member.name, &section)?);
    }
    for (member, section) in top.each("agents", "agents.*")? {
        let agent = agent(&member.name, member.at, &section, &agents)?;
        agents.all.push(agent);
    }
    if agents.all.len() > AGENTS_MAX {
        let found = agents.all.len();
        return Err(top.fault(
            "agents",
            format!("has {found} agents; at most {AGENTS_MAX} are allowed"),
        ));
    }
    if let Some(first) = agents.all.first()
        && models.providers.is_empty()
    {
        return Err(Fault::new(first.at, "agents need a model provider")
            .hint("write models: { providers: { local: { kind: mock } } }"));
    }
    check_names(&agents, models)?;
    for (member, section) in top.each("agents", "agents.*")? {
        check_toolsets(&member.name, &section, &agents, servers)?;
        check_model(&section, &agents)?;
    }
    check_depth(&agents)?;
    Ok(agents)
}

fn pattern(name: &str, section: &Section<'_>) -> Result<AgentPattern, Fault> {
    if matches!(name, "native" | "react" | "simple") {
        return Err(section.own_fault("is the name of a built-in pattern; choose another"));
    }
    check_name(name, section)?;
    let system = section.text("system")?.map(|text| text.value.value);
    let Some(system) = system.filter(|text| !text.trim().is_empty()) else {
        return Err(section
            .own_fault("has no system")
            .hint("write system: with the words that the model reads first"));
    };
    let encoding = section.choice("encoding")?.map(|found| found.value);
    let has_tools = section.choice("tools")?.map(|found| found.value);
    Ok(AgentPattern {
        name: name.to_owned(),
        system,
        encoding: encoding.unwrap_or(CallEncoding::React),
        has_tools: has_tools.unwrap_or(true),
    })
}

fn check_name(name: &str, section: &Section<'_>) -> Result<(), Fault> {
    if ::models::catalogue::is_name(name) {
        return Ok(());
    }
    Err(section.own_fault("cannot be a name here; use letters, digits and . _ - :"))
}

fn agent(
    name: &str,
    at: Position,
    section: &Section<'_>,
    agents: &AgentsSection,
) -> Result<AgentConfig, Fault> {
    check_name(name, section)?;
    let text = |name: &str| Ok(section.text(name)?.map(|text| text.value.value));
    let Some(model) = text("model")? else {
        return Err(section
            .own_fault("has no model")
            .hint("write model: with an alias of models.aliases, or PROVIDER/MODEL"));
    };
    let Some(instruction) = text("instruction")? else {
        return Err(section
            .own_fault("has no instruction")
            .hint("write instruction: with what the agent is for"));
    };
    let values = TemplateValues {
        date: "2026-01-01",
        caller: "caller",
        tools: "tool",
    };
    if let Err(fault) = render_instruction(&instruction, values) {
        return Err(section.fault("instruction", format!("cannot be used: {fault}")));
    }
    let names = |name: &str| -> Result<Vec<String>, Fault> {
        let list = section.list(name)?.map_or_else(Vec::new, |list| list.value);
        Ok(list.into_iter().map(|text| text.value).collect())
    };
    let known = |name: &str, word: &str| match agents.pattern(word) {
        Some(_) => Ok(()),
        None => {
            let known = agents.pattern_names();
            let hint = nearest(word, &known).map_or_else(
                || format!("known here: {}", known.join(", ")),
                |near| format!("did you mean \"{near}\"?"),
            );
            let message = format!(
                "names the pattern \"{}\", which does not exist",
                word.escape_debug()
            );
            Err(section.fault(name, message).hint(hint))
        }
    };
    let pattern = text("pattern")?.unwrap_or_else(|| "native".to_owned());
    known("pattern", &pattern)?;
    let patterns = names("patterns")?;
    for word in &patterns {
        known("patterns", word)?;
    }
    Ok(AgentConfig {
        name: name.to_owned(),
        at,
        model,
        description: text("description")?.unwrap_or_default(),
        instruction,
        pattern,
        patterns,
        aliases: names("aliases")?,
        toolsets: toolsets(section)?,
        permissions: permissions(&section.section_as("permissions", "agents.*.permissions")?)?,
        limits: limits(section)?,
        on_limit: section
            .choice("on_limit")?
            .map(|found| found.value)
            .unwrap_or_default(),
        show: section
            .choice("show")?
            .map(|found| found.value)
            .unwrap_or_default(),
        parameters: parameters(&section.section_as("parameters", "agents.*.parameters")?)?,
    })
}

fn toolsets(section: &Section<'_>) -> Result<Vec<AgentToolset>, Fault> {
    let mut out = Vec::new();
    for item in section.items("toolsets", "agents.*.toolsets")? {
        let server = item.text("server")?.map(|text| text.value.value);
        let agent = item.text("agent")?.map(|text| text.value.value);
        let tools = item.list("tools")?.map_or_else(Vec::new, |list| list.value);
        let tools: Vec<String> = tools.into_iter().map(|text| text.value).collect();
        tools
            .iter()
            .try_for_each(|glob| check_glob(glob, "tools", &item))?;
        out.push(match (server, agent) {
            (Some(name), None) => AgentToolset::Server { name, tools },
            (None, Some(name)) if tools.is_empty() => AgentToolset::Agent(name),
            (None, Some(_)) => return Err(item.fault("tools", "is for a server, not for an agent")),
            (Some(_), Some(_)) => return Err(item.own_fault("has both server and agent")),
            (None, None) => {
                return Err(item
                    .own_fault("has neither server nor agent")
                    .hint("write { server: NAME, tools: [\"read_*\"] } or { agent: NAME }"));
            }
        });
    }
    Ok(out)
}

fn check_glob(glob: &str, member: &str, section: &Section<'_>) -> Result<(), Fault> {
    let read = NameGlob::parse(glob);
    read.map(drop).map_err(|why| {
        let message = format!("holds \"{}\": {why}", glob.escape_debug());
        section.fault(member, message)
    })
}

fn permissions(section: &Section<'_>) -> Result<AgentPermissions, Fault> {
    let pairs = |name: &str| -> Result<Vec<(String, String)>, Fault> {
        let list = section.list(name)?.map_or_else(Vec::new, |list| list.value);
        let pair = |text: String| match text.split_once('/') {
            Some((server, tool)) if !server.is_empty() && !tool.is_empty() => {
                check_glob(server, name, section)?;
                check_glob(tool, name, section)?;
                Ok((server.to_owned(), tool.to_owned()))
            }
            _ => {
                let message = format!(
                    "holds \"{}\", which is not SERVER/TOOL",
                    text.escape_debug()
                );
                Err(section
                    .fault(name, message)
                    .hint("write docs/read_* or */delete_*"))
            }
        };
        list.into_iter().map(|text| pair(text.value)).collect()
    };
    Ok(AgentPermissions {
        allow: pairs("allow")?,
        ask: pairs("ask")?,
        deny: pairs("deny")?,
    })
}

fn limits(section: &Section<'_>) -> Result<RunLimits, Fault> {
    let mut limits = RunLimits::default();
    if let Some(found) = section.number("max_iterations", 1..=1_000)? {
        limits.iterations = found.value;
    }
    let own = section.section_as("limits", "agents.*.limits")?;
    if let Some(found) = own.number("tool_calls", 0..=10_000)? {
        limits.tool_calls = found.value;
    }
    if let Some(found) = own.within("time", TIME_MS)? {
        limits.time_ms = found.value.0;
    }
    if let Some(found) = own.number("tokens", 1..=TOKENS_MAX)? {
        limits.tokens = found.value;
    }
    limits.cost_micros = own.dollars("cost")?.map(|found| found.value);
    if let Some(found) = own.number("parallel", 1..=64)? {
        limits.parallel = usize::try_from(found.value).unwrap_or(1);
    }
    if let Some(found) = own.within("tool_result_bytes", RESULT_BYTES)? {
        limits.tool_result_bytes = usize::try_from(found.value.0).unwrap_or(usize::MAX);
    }
    Ok(limits)
}

fn parameters(section: &Section<'_>) -> Result<Vec<(String, String)>, Fault> {
    let mut out = Vec::new();
    let decimal = |name: &str, most: f64| {
        section.read(name, |text| match text.parse::<f64>() {
            Ok(value) if (0.0..=most).contains(&value) => Ok(value),
            _ => Err(format!("is not a number from 0 to {most}")),
        })
    };
    for (name, most) in [("temperature", 2.0), ("top_p", 1.0)] {
        if let Some(found) = decimal(name, most)? {
            out.push((name.to_owned(), found.value.to_string()));
        }
    }
    if let Some(found) = section.number("max_tokens", 1..=TOKENS_MAX)? {
        out.push(("max_tokens".to_owned(), found.value.to_string()));
    }
    if let Some(found) = section.text("reasoning")? {
        let word = serde_json::Value::from(found.value.value);
        out.push(("reasoning_effort".to_owned(), word.to_string()));
    }
    if let Some(found) = section.list("stop")? {
        let words: Vec<String> = found.value.into_iter().map(|text| text.value).collect();
        out.push((
            "stop".to_owned(),
            serde_json::Value::from(words).to_string(),
        ));
    }
    Ok(out)
}

/// Each name leads to one thing.
fn check_names(agents: &AgentsSection, models: &Models) -> Result<(), Fault> {
    let mut taken: HashSet<String> = HashSet::new();
    for agent in &agents.all {
        for (name, _) in agent.models() {
            let is_alias = models.aliases.iter().any(|alias| alias.name == name);
            let mut providers = models.providers.iter();
            let is_provider = providers.any(|own| own.name == name || own.models.contains(&name));
            let what = if !taken.insert(name.clone()) {
                "a second agent"
            } else if is_alias {
                "an alias of models.aliases"
            } else if is_provider {
                "a provider, or one of its models"
            } else if !::models::catalogue::is_name(&name) {
                return Err(Fault::new(
                    agent.at,
                    format!(
                        "agents.{}: \"{}\" cannot be a name here; use letters, digits and . _ - :",
                        agent.name,
                        name.escape_debug()
                    ),
                ));
            } else {
                continue;
            };
            let message = format!(
                "agents.{}: the name \"{name}\" is also the name of {what}",
                agent.name
            );
            return Err(Fault::new(agent.at, message).hint("give one of the two another name"));
        }
    }
    Ok(())
}

fn did_you_mean(word: &str, known: &[&str]) -> String {
    nearest(word, known).map_or_else(
        || match known.is_empty() {
            true => "none is configured".to_owned(),
            false => format!("known here: {}", known.join(", ")),
        },
        |near| format!("did you mean \"{near}\"?"),
    )
}

fn check_toolsets(
    name: &str,
    section: &Section<'_>,
    agents: &AgentsSection,
    servers: &[Server],
) -> Result<(), Fault> {
    let Some(agent) = agents.all.iter().find(|own| own.name == name) else {
        return Ok(());
    };
    let known_servers: Vec<&str> = servers.iter().map(|own| own.name.as_str()).collect();
    let known_agents: Vec<&str> = agents.all.iter().map(|own| own.name.as_str()).collect();
    for toolset in &agent.toolsets {
        let (what, name, known) = match toolset {
            AgentToolset::Server { name, .. } => ("server", name, &known_servers),
            AgentToolset::Agent(name) => ("agent", name, &known_agents),
        };
        if !known.contains(&name.as_str()) {
            let message = format!(
                "names the {what} \"{}\", which is not configured",
                name.escape_debug()
            );
            return Err(section
                .fault("toolsets", message)
                .hint(did_you_mean(name, known)));
        }
        if what == "server" && name == PROVIDER {
            let message = format!(
                "names the server \"{PROVIDER}\", which is the name that agents have as a provider"
            );
            return Err(section
                .fault("toolsets", message)
                .hint("give the server another name"));
        }
    }
    Ok(())
}

/// An agent calls models; another agent is a tool.
fn check_model(section: &Section<'_>, agents: &AgentsSection) -> Result<(), Fault> {
    let Some(model) = section.text("model")? else {
        return Ok(());
    };
    let model = model.value.value;
    let bare = model.strip_prefix("agent/").unwrap_or(&model);
    let mut names = agents.all.iter().flat_map(AgentConfig::models);
    if names.any(|(name, _)| name == bare) {
        return Err(section
            .fault(
                "model",
                format!("names the agent \"{bare}\"; it must be a model"),
            )
            .hint("to let one agent call another, write toolsets: [{ agent: NAME }]"));
    }
    Ok(())
}

/// Agents call each other in no circle, and in no long chain.
fn check_depth(agents: &AgentsSection) -> Result<(), Fault> {
    fn walk<'a>(
        agent: &'a AgentConfig,
        agents: &'a AgentsSection,
        above: &mut Vec<&'a str>,
    ) -> Result<(), String> {
        if let Some(begin) = above.iter().position(|name| *name == agent.name) {
            let mut circle = above.split_off(begin);
            circle.push(&agent.name);
            return Err(format!(
                "agents call each other in a circle: {}",
                circle.join(" -> ")
            ));
        }
        above.push(&agent.name);
        if above.len() > DEPTH_MAX {
            return Err(format!(
                "the chain of agents {} is longer than {DEPTH_MAX}",
                above.join(" -> ")
            ));
        }
        for toolset in &agent.toolsets {
            if let AgentToolset::Agent(name) = toolset
                && let Some(below) = agents.all.iter().find(|own| own.name == *name)
            {
                walk(below, agents, above)?;
            }
        }
        above.pop();
        Ok(())
    }
    for agent in &agents.all {
        if let Err(message) = walk(agent, agents, &mut Vec::new()) {
            return Err(
                Fault::new(agent.at, message).hint("remove one { agent: NAME } of the toolsets")
            );
        }
    }
    Ok(())
}
