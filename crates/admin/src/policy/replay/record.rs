//! A decision as the journal has it, and the facts that it states.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use gate::effects::SIDE_EFFECTS;
use gate::facts::{Direction, FACTS, Fact, FactId, Facts, Kind, ResourceType, Stated};
use gate::journal::RecordedText;
use gate::limits::BREACH_RULE;
use gate::paths::canonical::Meaning;
use gate::paths::reach::reads_below;
use gate::paths::{PathArgument, Reach, Role};
use gate::policy::{ANCESTOR_RULE, Effect, Operation, PROTECTED_RULE, UNREAD_RULE};
use mcp::message::method::{self, Class};
use serde::Deserialize;
use serde_json::Value;

/// A decision record; members that play no part in a judgement are not read.
#[derive(Deserialize)]
pub(super) struct RecordedDecision<'a> {
    #[serde(borrow)]
    pub time: Cow<'a, str>,
    #[serde(borrow)]
    pub op: Cow<'a, str>,
    #[serde(borrow)]
    pub decision: Cow<'a, str>,
    #[serde(borrow, default)]
    pub final_rule: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub mcp_method: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    pub tool_name: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    pub path: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    resource_type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uri: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    subject_id: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    backend_id: Option<RecordedText<'a>>,
    #[serde(borrow, default)]
    direction: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    policy_digest: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    hitl_outcome: Option<Cow<'a, str>>,
    #[serde(default)]
    operations: Vec<String>,
    #[serde(default)]
    side_effects: Vec<String>,
    #[serde(default)]
    path_arguments: Vec<RecordedArgument>,
    #[serde(default)]
    path_arguments_omitted: u64,
    #[serde(default)]
    content_paths: Option<u64>,
    /// Among them the facts that have no member of their own here.
    #[serde(flatten)]
    more: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct RecordedArgument {
    role: String,
    places: Vec<String>,
    #[serde(default)]
    parts: Vec<String>,
    #[serde(default)]
    uncertain: bool,
    #[serde(default)]
    ambiguous: bool,
    #[serde(default)]
    scheme: Option<String>,
}

/// Whether and how a recorded decision can be judged again.
pub(super) enum RecordedJudgement {
    /// No policy was asked.
    NotByPolicy,
    /// A protected path was touched, or a directory above one.
    Protected,
    /// The record lacks what every judgement needs.
    Incomplete { missing: &'static str },
    /// The decision, and the facts of its call.
    Facts {
        was: Effect,
        facts: Box<RecordedFacts>,
    },
}

/// The facts of a call, as far as they were recorded.
pub(super) struct RecordedFacts {
    /// The recorded facts alone.
    pub least: Facts,
    /// The same, with facts that were not recorded as unknown; `None` if all were recorded.
    pub most: Option<Facts>,
    /// Facts that were not recorded, in words.
    pub missing: &'static str,
}

impl<'a> RecordedDecision<'a> {
    /// Reads a record's body; `None` if it is no decision of a policy.
    pub(super) fn parse(body: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// Whether the policy of this digest took the decision.
    pub(super) fn by_policy(&self, digest: &str) -> bool {
        self.policy_digest.as_deref() == Some(digest)
    }

    /// The digest of the policy that took the decision.
    pub(super) fn digest(&self) -> Option<&str> {
        self.policy_digest.as_deref()
    }

    /// Returns the effect of the policy; an approval or its lack does not change that it asked for one.
    pub(super) fn effect(&self) -> Option<Effect> {
        if self.hitl_outcome.is_some() {
            return Some(Effect::Hitl);
        }
        [Effect::Allow, Effect::Deny, Effect::Hitl]
            .into_iter()
            .find(|effect| effect.label() == self.decision)
    }

    /// Whether and how it can be judged again.
    pub(super) fn to_judgement(&self) -> RecordedJudgement {
        let incomplete = |missing| RecordedJudgement::Incomplete { missing };
        let rule = self.final_rule.as_deref();
        if rule.is_some() && rule == self.reason.as_deref() || rule == Some(BREACH_RULE) {
            return RecordedJudgement::NotByPolicy;
        }
        if rule.is_some_and(|rule| [PROTECTED_RULE, ANCESTOR_RULE, UNREAD_RULE].contains(&rule)) {
            return RecordedJudgement::Protected;
        }
        let Some(was) = self.effect() else {
            return incomplete("the decision");
        };
        let whole = |text: &Option<RecordedText<'_>>| {
            let text = text.as_ref().and_then(RecordedText::whole);
            text.map(str::to_owned)
        };
        let (Some(method), Some(subject), Some(backend)) = (
            whole(&self.mcp_method),
            whole(&self.subject_id),
            whole(&self.backend_id),
        ) else {
            return incomplete("the method, the caller or the server");
        };
        let direction = match self.direction.as_deref() {
            Some(label) if label == Direction::ToClient.label() => Direction::ToClient,
            _ => Direction::ToServer,
        };
        let text = |value: &Option<RecordedText<'_>>| match value {
            Some(RecordedText::Long { .. }) => Fact::Unknown,
            _ => Fact::from(whole(value)),
        };
        let mut base = Facts {
            direction,
            resource_type: self.resource_type(direction, &method),
            method,
            tool_name: text(&self.tool_name),
            backend_id: backend,
            uri: text(&self.uri),
            subject_id: subject,
            paths: Fact::Unknown,
            operation: None,
            side_effects: side_effects(&self.side_effects),
            reach: Reach {
                // Of the arguments themselves nothing is recorded.
                below: self
                    .tool_name
                    .as_ref()
                    .and_then(RecordedText::whole)
                    .is_some_and(|tool| reads_below(tool, "")),
                ..Reach::default()
            },
            ..Facts::default()
        };
        self.state_operation(&mut base);
        self.state_more(&mut base);
        RecordedJudgement::Facts {
            was,
            facts: Box::new(self.to_facts(base)),
        }
    }

    /// States what the table of facts knows and no member above has taken.
    fn state_more(&self, facts: &mut Facts) {
        for (name, value) in &self.more {
            let Some(row) = FACTS.iter().find(|row| row.on_disk() == name) else {
                continue;
            };
            let value = match value {
                // It was longer than a record holds.
                Value::Object(_) => {
                    let _ = facts.set(row.id, Fact::Unknown);
                    continue;
                }
                Value::Array(list) if list.iter().any(Value::is_object) => {
                    let _ = facts.set(row.id, Fact::Unknown);
                    continue;
                }
                // Earlier versions recorded some numbers as texts.
                Value::String(text) if row.kind == Kind::Number => match text.parse() {
                    Ok(number) => Stated::Number(number),
                    Err(_) => continue,
                },
                Value::String(text) => Stated::from(text.as_str()),
                Value::Array(list) => {
                    let texts = list.iter().filter_map(Value::as_str).map(Arc::from);
                    Stated::Texts(texts.collect())
                }
                Value::Number(number) => match number.as_u64() {
                    Some(number) => Stated::Number(number),
                    None => continue,
                },
                Value::Null | Value::Bool(_) => continue,
            };
            // Facts that are derived from others cannot be set.
            let _ = facts.set(row.id, Fact::Known(value));
        }
        // A fact that a rule asked for and that was unknown is unknown here too; a fact that is missing from both was absent.
        let unknown = self.more.get("unknown_facts").and_then(Value::as_array);
        for name in unknown.into_iter().flatten().filter_map(Value::as_str) {
            if let Some(id) = FactId::named(name) {
                let _ = facts.set(id, Fact::Unknown);
            }
        }
    }

    /// States what the call does, as it was recorded; a record that says what the tool's name says, or nothing, is read
    /// by the name.
    fn state_operation(&self, facts: &mut Facts) {
        let recorded = self.operations.first();
        let recorded = recorded.and_then(|label| Operation::from_label(label));
        if recorded != facts.operation_known() {
            facts.operation = recorded;
        }
    }

    fn resource_type(&self, direction: Direction, method: &str) -> Option<ResourceType> {
        if let Some(label) = self.resource_type.as_deref() {
            return ResourceType::ALL.into_iter().find(|t| t.label() == label);
        }
        // Records of earlier versions do not state it; the method does.
        match (direction, method::of(method).class) {
            (Direction::ToServer, Class::Judged(reaches_for)) => reaches_for,
            (Direction::ToServer | Direction::ToClient, _) => None,
        }
    }

    fn to_facts(&self, base: Facts) -> RecordedFacts {
        let Some(contents) = self.content_paths else {
            return RecordedFacts {
                most: Some(base.clone()),
                least: base,
                missing: "the paths",
            };
        };
        let recorded: Option<Vec<PathArgument>> = self
            .path_arguments
            .iter()
            .map(RecordedArgument::to_path_argument)
            .collect();
        let Some(recorded) = recorded else {
            return RecordedFacts {
                most: Some(base.clone()),
                least: base,
                missing: "the paths",
            };
        };
        let mut hidden = Vec::new();
        if self.path_arguments_omitted > 0 {
            hidden.extend(Role::ALL.map(|role| unknown_path(role, false)));
        }
        if contents > 0 {
            hidden.push(unknown_path(Role::Shape, true));
        }
        let missing = if self.path_arguments_omitted > 0 {
            "more paths than a record holds"
        } else {
            "paths in contents"
        };
        let with = |paths| Facts {
            paths: Fact::Known(paths),
            ..base.clone()
        };
        RecordedFacts {
            least: with(recorded.clone()),
            most: (!hidden.is_empty()).then(|| {
                let mut most = with([recorded, hidden].concat());
                most.reach.urls.mark_unread();
                most
            }),
            missing,
        }
    }
}

/// Returns the recorded side effects; `None` if there are none: unknown ones are recorded so.
/// Facts hold lists that live as long as the program: each list that a journal names is made once.
fn side_effects(recorded: &[String]) -> Option<&'static [&'static str]> {
    /// Most lists that are made: journals name a handful.
    const LISTS_MAX: usize = 1_024;
    static LISTS: Mutex<Vec<&'static [&'static str]>> = Mutex::new(Vec::new());
    let known = |name: &String| {
        let mut all = SIDE_EFFECTS.iter().copied();
        all.find(|effect| effect == name)
    };
    let list: Vec<&'static str> = recorded.iter().filter_map(known).collect();
    if list.is_empty() {
        return None;
    }
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = lists.iter().find(|made| ***made == *list) {
        return Some(made);
    }
    if lists.len() >= LISTS_MAX {
        return None;
    }
    let made: &'static [&'static str] = Vec::leak(list);
    lists.push(made);
    Some(made)
}

impl RecordedArgument {
    /// Returns the argument; `None` if its role is unknown.
    fn to_path_argument(&self) -> Option<PathArgument> {
        let role = Role::ALL.into_iter().find(|r| r.label() == self.role)?;
        Some(PathArgument {
            // Of the text itself only the scheme plays a part in a judgement.
            text: self
                .scheme
                .as_ref()
                .map(|scheme| format!("{scheme}:"))
                .unwrap_or_default(),
            role,
            content: false,
            meaning: Meaning {
                places: self.places.clone(),
                parts: self.parts.clone(),
                uncertain: self.uncertain,
                ambiguous: self.ambiguous,
            },
        })
    }
}

/// A path of which nothing is known.
fn unknown_path(role: Role, content: bool) -> PathArgument {
    PathArgument {
        text: String::new(),
        role,
        content,
        meaning: Meaning {
            places: Vec::new(),
            uncertain: true,
            ..gate::paths::Meaning::default()
        },
    }
}
