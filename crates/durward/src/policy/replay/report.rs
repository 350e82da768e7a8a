//! What a replay found: line by line as it comes, then the counts.

use std::collections::BTreeMap;
use std::io::{self, Write};

use gate::journal::RecordedText;
use gate::policy::Effect;
use serde_json::json;

use super::Result;
use super::record::Recorded;
use crate::policy::text::Plain;

/// Most policies that are told apart in the counts.
const POLICIES_MAX: usize = 1_000;

pub struct Report<'w> {
    json: bool,
    out: &'w mut dyn Write,
    decisions: u64,
    same: u64,
    /// Of the same: by a rule of another name.
    other_rule: u64,
    changed: u64,
    undecidable: u64,
    not_judged: u64,
    unreadable: u64,
    /// Changes by what was and what would be.
    kinds: BTreeMap<(String, &'static str), u64>,
    policies: BTreeMap<String, u64>,
}

impl<'w> Report<'w> {
    pub fn new(json: bool, out: &'w mut dyn Write) -> Self {
        Self {
            json,
            out,
            decisions: 0,
            same: 0,
            other_rule: 0,
            changed: 0,
            undecidable: 0,
            not_judged: 0,
            unreadable: 0,
            kinds: BTreeMap::new(),
            policies: BTreeMap::new(),
        }
    }

    /// A record that is no decision.
    pub fn unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// Counts a decision, and prints it where it is not the same.
    pub fn add(
        &mut self,
        recorded: &Recorded<'_>,
        result: &Result,
        digest: &str,
    ) -> io::Result<()> {
        self.decisions += 1;
        let by = recorded.digest().unwrap_or("unknown");
        if let Some(count) = self.policies.get_mut(by) {
            *count += 1;
        } else if self.policies.len() < POLICIES_MAX {
            self.policies.insert(by.to_owned(), 1);
        }
        match result {
            Result::NotJudged => {
                self.not_judged += 1;
                Ok(())
            }
            Result::Same { rule } => {
                self.same += 1;
                let was = recorded.final_rule.as_deref();
                if rule.as_deref().is_some_and(|rule| Some(rule) != was) {
                    self.other_rule += 1;
                    // The same text naming another rule would be a contradiction: it is shown.
                    if recorded.by_policy(digest) {
                        return self.line("other rule", recorded, &[], rule.as_deref(), None);
                    }
                }
                Ok(())
            }
            Result::Changed { now, rule } => {
                self.changed += 1;
                let was = recorded.effect().map_or("unknown", Effect::label);
                let kind = (was.to_owned(), now.label());
                *self.kinds.entry(kind).or_default() += 1;
                self.line("changed", recorded, &[*now], rule.as_deref(), None)
            }
            Result::Undecidable { possible, missing } => {
                self.undecidable += 1;
                self.line("undecidable", recorded, possible, None, Some(missing))
            }
        }
    }

    fn line(
        &mut self,
        result: &str,
        recorded: &Recorded<'_>,
        now: &[Effect],
        rule: Option<&str>,
        missing: Option<&str>,
    ) -> io::Result<()> {
        let was = recorded.effect().map_or("unknown", Effect::label);
        let now: Vec<&str> = now.iter().map(|effect| effect.label()).collect();
        if self.json {
            let line = json!({
                "result": result,
                "time": recorded.time,
                "op": recorded.op,
                "mcp_method": recorded.mcp_method.as_ref().map(RecordedText::shown),
                "tool_name": recorded.tool_name.as_ref().map(RecordedText::shown),
                "path": recorded.path.as_ref().map(RecordedText::shown),
                "was": was,
                "was_rule": recorded.final_rule,
                "now": now,
                "now_rule": rule,
                "missing": missing,
            });
            return writeln!(self.out, "{line}");
        }
        let what = recorded.tool_name.as_ref().or(recorded.mcp_method.as_ref());
        let by = |rule: Option<&str>| {
            rule.map(|rule| format!(" ({})", Plain(rule)))
                .unwrap_or_default()
        };
        let path = recorded.path.as_ref();
        let path = path.map(|path| format!(" {}", Plain(&path.shown())));
        write!(
            self.out,
            "{result}  {}  {}  {}{}  {was}{} -> {}{}",
            Plain(&recorded.time),
            Plain(&recorded.op),
            Plain(&what.map_or("-".into(), RecordedText::shown)),
            path.unwrap_or_default(),
            by(recorded.final_rule.as_deref()),
            now.join(" or "),
            by(rule)
        )?;
        match missing {
            Some(missing) => writeln!(self.out, "  not recorded: {missing}"),
            None => writeln!(self.out),
        }
    }

    /// Prints the counts; says whether anything is changed or undecidable.
    pub fn finish(self, digest: &str) -> io::Result<bool> {
        let different = self.changed > 0 || self.undecidable > 0;
        if self.json {
            let kinds: BTreeMap<String, u64> = self
                .kinds
                .into_iter()
                .map(|((was, now), count)| (format!("{was} -> {now}"), count))
                .collect();
            let summary = json!({
                "result": "summary",
                "decisions": self.decisions,
                "same": self.same,
                "same_by_another_rule": self.other_rule,
                "changed": self.changed,
                "undecidable": self.undecidable,
                "not_judged": self.not_judged,
                "unreadable": self.unreadable,
                "changes": kinds,
                "policy_digest": digest,
                "recorded_policies": self.policies,
            });
            writeln!(self.out, "{summary}")?;
            return Ok(different);
        }
        writeln!(
            self.out,
            "{} decisions: {} the same, {} changed, {} undecidable",
            self.decisions, self.same, self.changed, self.undecidable
        )?;
        for ((was, now), count) in &self.kinds {
            writeln!(self.out, "  {count} from {was} to {now}")?;
        }
        for (count, what) in [
            (self.other_rule, "the same, by a rule of another name"),
            (self.not_judged, "refused before any policy was asked"),
            (self.unreadable, "not readable as decisions"),
        ] {
            if count > 0 {
                writeln!(self.out, "  {count} {what}")?;
            }
        }
        let own = self.policies.get(digest).copied().unwrap_or_default();
        writeln!(
            self.out,
            "policy {digest}: {own} of the decisions were taken under it"
        )?;
        Ok(different)
    }
}
