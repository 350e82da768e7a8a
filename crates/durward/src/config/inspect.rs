//! What is looked for in requests and results, as the file says it.

pub mod checker;

use std::sync::Arc;

use gate::flow::OfServer;
use gate::inspect::secrets::{self, SECRETS, Secret};
use gate::inspect::{Action, Finds, Inspection, Outside, PATTERNS_MAX, RULES_MAX, Rule, pattern};
use gate::labels::{Label, Labels};
use gate::policy::document::nearest;

use super::expand::Text;
use super::fault::{Fault, Position};
use super::rows::Row;
use super::section::Section;
use super::settings::{Origin, Warning};
use super::values::{Choice, word};
use checker::{Checker, Unchecked};

/// Longest name of a rule, in characters.
const NAME_CHARS_MAX: usize = 64;

/// Rules in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Inspect {
    rules: Vec<Rule>,
    /// The checkers, by the place of their rules.
    checkers: Vec<(usize, Checker)>,
    at: Option<Position>,
}

impl Choice for Action {
    const WORDS: &'static [(&'static str, Self)] = &Self::ALL;
}

/// Which messages are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Requests,
    Results,
    Both,
}

impl Choice for On {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("requests", Self::Requests),
        ("results", Self::Results),
        ("both", Self::Both),
    ];
}

impl Inspect {
    /// As the gate takes them; `asks` makes what asks the checker of a rule.
    pub fn for_gate(
        &self,
        asks: impl Fn(&Arc<str>, &Checker) -> Arc<dyn gate::inspect::Checker>,
    ) -> Arc<Inspection> {
        let mut rules = self.rules.clone();
        for (at, configured) in &self.checkers {
            if let Some(rule) = rules.get_mut(*at) {
                rule.finds = Finds::Outside(Outside {
                    checker: asks(&rule.name, configured),
                    passes_unchecked: configured.unchecked == Unchecked::Allow,
                });
            }
        }
        Arc::new(Inspection::new(rules))
    }

    /// What applies, where there is anything.
    pub fn row(&self) -> Option<Row> {
        let one = |rule: &Rule| format!("{} {}", rule.name, word(rule.action));
        Some(Row {
            key: "inspect",
            value: self.rules.iter().map(one).collect::<Vec<_>>().join(", "),
            origin: Origin::File(self.at?),
        })
    }
}

/// Reads the section. `peers` are the names of servers and of providers of models.
pub fn read(
    top: &Section<'_>,
    peers: &[&str],
    warnings: &mut Vec<Warning>,
) -> Result<Inspect, Fault> {
    let sections = top.each("inspect", "inspect.*")?;
    if sections.len() > RULES_MAX {
        let found = sections.len();
        let message = format!("has {found} rules; at most {RULES_MAX} are allowed");
        return Err(top.fault("inspect", message));
    }
    let mut inspect = Inspect {
        rules: Vec::new(),
        checkers: Vec::new(),
        at: top.member("inspect").map(|member| member.at),
    };
    for (member, section) in sections {
        let name = member.name.as_str();
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || !name.chars().all(fits) {
            let shown: String = name.chars().take(NAME_CHARS_MAX).collect();
            let message = format!("\"{}\" is not a valid rule name", shown.escape_debug());
            let hint = "write letters, digits, _ and -, at most 64: the name is shown in place of the masked text";
            return Err(Fault::new(member.at, message).hint(hint));
        }
        let (rule, checker) = rule(name, &section)?;
        let at = inspect.rules.len();
        inspect
            .checkers
            .extend(checker.map(|checker| (at, checker)));
        inspect.rules.push(rule);
    }
    for rule in &inspect.rules {
        for server in &rule.servers {
            if !peers.contains(&server.as_str()) {
                warnings.push(Warning {
                    line: inspect.at.map(|at| at.line),
                    message: format!(
                        "inspect.{} is for \"{}\", but the file has no server or provider with this name",
                        rule.name,
                        server.escape_debug()
                    ),
                });
            }
        }
    }
    Ok(inspect)
}

fn rule(name: &str, section: &Section<'_>) -> Result<(Rule, Option<Checker>), Fault> {
    let (finds, checker) = finds(section)?;
    let Some(action) = section.choice::<Action>("action")? else {
        let hint = "write action: mask, deny, ask or label";
        return Err(section.own_fault("does not say what to do").hint(hint));
    };
    let on = section.choice::<On>("on")?.map_or(On::Both, |on| on.value);
    if action.value == Action::Ask && on != On::Requests {
        let message = "is ask, but results cannot wait for a person yet";
        let hint = "write on: requests beside it, or another action";
        return Err(section.fault("action", message).hint(hint));
    }
    let labels = labels(section, "labels")?;
    if action.value == Action::Label && labels.is_empty() {
        let message = "is label, but no labels are given";
        let hint = "write labels: [untrusted], [private] or both";
        return Err(section.fault("action", message).hint(hint));
    }
    let servers = section
        .list("servers")?
        .map_or_else(Vec::new, |list| list.value);
    let rule = Rule {
        name: name.into(),
        finds,
        requests: on != On::Results,
        results: on != On::Requests,
        servers: servers.into_iter().map(|text| text.value).collect(),
        action: action.value,
        labels,
    };
    Ok((rule, checker))
}

fn finds(section: &Section<'_>) -> Result<(Finds, Option<Checker>), Fault> {
    let ways = ["secrets", "patterns", "checker"];
    let mut said = ways.into_iter().filter(|way| section.member(way).is_some());
    match (said.next(), said.next()) {
        (Some(first), Some(second)) => {
            let message = format!("cannot be combined with {first} in one rule");
            Err(section.fault(second, message).hint("write two rules"))
        }
        (Some("secrets"), None) => Ok((Finds::Secrets(kinds(section)?), None)),
        (Some("patterns"), None) => Ok((Finds::Patterns(patterns(section)?), None)),
        (Some(_), None) => {
            let checker = checker::read(&section.section_as("checker", "inspect.*.checker")?)?;
            // What it finds stands in its answers.
            Ok((Finds::Texts(Vec::new()), Some(checker)))
        }
        (None, _) => {
            let hint = "write secrets: all, patterns: [\"REGULAR EXPRESSION\"], or checker: { url: URL, secret: ${NAME} }";
            Err(section
                .own_fault("does not say what to look for")
                .hint(hint))
        }
    }
}

fn kinds(section: &Section<'_>) -> Result<Vec<&'static Secret>, Fault> {
    let known: Vec<&str> = SECRETS.iter().map(|kind| kind.name).collect();
    let unknown = |text: &Text| {
        let shown: String = text.written.chars().take(64).collect();
        let message = format!(
            "holds \"{}\", which is not a kind of secret",
            shown.escape_debug()
        );
        let hint = nearest(&text.value, &known).map_or_else(
            || format!("write all, or a list of {}", known.join(", ")),
            |near| format!("did you mean \"{near}\"?"),
        );
        section.fault("secrets", message).hint(hint)
    };
    if let Ok(Some(text)) = section.text("secrets") {
        return match text.value.value.as_str() {
            "all" => Ok(SECRETS.iter().collect()),
            _ => Err(unknown(&text.value)),
        };
    }
    let list = section
        .list("secrets")?
        .map_or_else(Vec::new, |list| list.value);
    if list.is_empty() {
        return Err(section
            .fault("secrets", "is empty")
            .hint("write all, or name kinds"));
    }
    let kind = |text: &Text| secrets::named(&text.value).ok_or_else(|| unknown(text));
    list.iter().map(kind).collect()
}

fn patterns(section: &Section<'_>) -> Result<Vec<gate::inspect::Regex>, Fault> {
    let list = section
        .list("patterns")?
        .map_or_else(Vec::new, |list| list.value);
    if list.is_empty() {
        let hint = "write patterns: [\"REGULAR EXPRESSION\"]";
        return Err(section.fault("patterns", "is empty").hint(hint));
    }
    if list.len() > PATTERNS_MAX {
        let message = format!(
            "has {} patterns; at most {PATTERNS_MAX} are allowed",
            list.len()
        );
        return Err(section.fault("patterns", message));
    }
    let one = |text: &Text| {
        pattern(&text.value).map_err(|fault| {
            let shown: String = text.written.chars().take(64).collect();
            section.fault(
                "patterns",
                format!("holds \"{}\", which {fault}", shown.escape_debug()),
            )
        })
    };
    list.iter().map(one).collect()
}

/// The labels that a server's results get.
pub fn labels_of(section: &Section<'_>) -> Result<OfServer, Fault> {
    let one = |(tool, text, at): (String, Text, Position)| {
        let read = |word: &str| match word.trim() {
            "none" => Some(None),
            word => Label::parse(word).map(Some),
        };
        let labels: Option<Vec<_>> = text.value.split('+').map(read).collect();
        let shown: String = text.written.chars().take(64).collect();
        let labels = labels.ok_or_else(|| {
            let (tool, shown) = (tool.escape_debug(), shown.escape_debug());
            let message = format!("tool_labels: \"{tool}\" is \"{shown}\", which is not a label");
            Fault::new(at, message).hint("write untrusted, private, untrusted+private or none")
        })?;
        Ok((tool, labels.into_iter().flatten().collect()))
    };
    Ok(OfServer {
        all: labels(section, "labels")?,
        tools: section
            .map("tool_labels")?
            .into_iter()
            .map(one)
            .collect::<Result<_, Fault>>()?,
    })
}

/// A list of labels.
pub fn labels(section: &Section<'_>, name: &str) -> Result<Labels, Fault> {
    let list = section.list(name)?.map_or_else(Vec::new, |list| list.value);
    let one = |text: &Text| {
        Label::parse(&text.value).ok_or_else(|| {
            let shown: String = text.written.chars().take(64).collect();
            let message = format!("holds \"{}\", which is not a label", shown.escape_debug());
            section
                .fault(name, message)
                .hint("labels are untrusted and private")
        })
    };
    list.iter().map(one).collect()
}

#[cfg(test)]
mod tests;
