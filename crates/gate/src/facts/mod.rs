//! The vocabulary in which a face states what a call is about.
//!
//! A fact is [`Fact::Known`], [`Fact::Absent`] (the call has no such thing) or [`Fact::Unknown`]
//! (it may have one, nobody can say). Listing a tool is judging a call whose arguments are unknown.

//!
//! Every fact is a row of [`FACTS`]. Those that each call has are fields of [`Facts`]; the others are
//! kept beside them and cost nothing where nobody states them.

mod paths;
mod table;
mod touched;
mod url;
mod value;

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::caller::Caller;
use crate::effects::{CallEffects, Evidence, Stated as StatedEffects, classify};
use crate::flow::Held;
use crate::inspect::Finding;
use crate::paths::{PathArgument, Reach, Role};
use crate::reason::Quarantine;

pub use crate::effects::Operation;
pub(crate) use crate::paths::scheme_of;
pub use table::{Class, FACTS, FactDef, FactId, Kind};
pub use touched::Touched;
pub(crate) use url::URL_FACTS;
pub use value::{Stated, Value};

/// Stands between the commands in [`FactId::Argv`] where a call runs several: no word of a command is this.
pub const COMMANDS_APART: &str = "\n";

/// A fact in three-valued logic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Fact<T> {
    /// It is this.
    Known(T),
    /// It may be anything.
    Unknown,
    /// There is none.
    #[default]
    Absent,
}

impl<T> Fact<T> {
    /// The value, where it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown | Self::Absent => None,
        }
    }

    /// Whether nobody can say.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }
}

impl<T> From<Option<T>> for Fact<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Known)
    }
}

/// Who asks whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// A client asks a server.
    #[default]
    ToServer,
    /// A server asks the client (sampling, elicitation, roots).
    ToClient,
}

impl Direction {
    /// The word used in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::ToServer => "to_server",
            Self::ToClient => "to_client",
        }
    }
}

/// What a call reaches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceType {
    /// A tool.
    Tool,
    /// A resource.
    Resource,
    /// A prompt.
    Prompt,
    /// The server itself.
    Server,
    /// A model.
    Model,
}

impl ResourceType {
    /// All, in the order of the reference.
    pub const ALL: [Self; 5] = [
        Self::Tool,
        Self::Resource,
        Self::Prompt,
        Self::Server,
        Self::Model,
    ];

    /// The words of all, for whoever asks.
    pub(crate) fn labels() -> Vec<&'static str> {
        Self::ALL.map(Self::label).to_vec()
    }

    /// The word used in policies and in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
            Self::Server => "server",
            Self::Model => "model",
        }
    }
}

/// The words of [`FactId::ReadsOnly`].
const READS_ONLY: [&str; 2] = ["yes", "no"];

/// The same, for whoever asks.
pub(crate) fn reads_only_words() -> Vec<&'static str> {
    READS_ONLY.to_vec()
}

/// Schemes of resources that lie beyond this machine.
const OUTWARD_SCHEMES: [&str; 8] = ["http", "https", "ws", "wss", "ftp", "ftps", "sftp", "s3"];

/// Methods by which nothing but names and ids reach a server.
const KEPT_HERE: [&str; 5] = [
    "subscriptions/listen",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/cancel",
];

/// What is known of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Who asks whom.
    pub direction: Direction,
    /// The protocol's method, as on the wire.
    pub method: String,
    /// The tool's raw name.
    pub tool_name: Fact<String>,
    /// The server that the call goes to.
    pub backend_id: String,
    /// What the call reaches for.
    pub resource_type: Option<ResourceType>,
    /// The resource's URI.
    pub uri: Fact<String>,
    /// Who calls.
    pub subject_id: String,
    /// Everything in the arguments that is or may be a path.
    pub paths: Fact<Vec<PathArgument>>,
    /// Its paths lead into the file system of another machine, where nothing of this one is.
    pub is_elsewhere: bool,
    /// What the arguments' strings may lead to beside that: for rules that refuse or ask.
    pub reach: Reach,
    /// The digest of the tool's definition, as its server listed it last.
    pub definition: Fact<Arc<str>>,
    /// The operation that a built-in server states of the call.
    pub operation: Option<Operation>,
    /// The side effects that a built-in server states of the call.
    pub side_effects: Option<&'static [&'static str]>,
    /// What else is known of the call's effects, beside the tool's name; [`Facts::state_evidence`] states it.
    pub evidence: Evidence,
    /// Facts that few calls have; [`Facts::set`] states them.
    pub more: More,
    /// Set where the tool may not be shown, or the call may not pass, whatever the policy says.
    pub quarantine: Option<Quarantine>,
    /// What the inspection found in the call as it came.
    pub inspected: Option<Box<Finding>>,
    /// Set where a call that may change what is found at these places has not ended in time: no rule can let
    /// this one pass.
    pub unsettled: bool,
    /// Set where the server has not listed the tool: what its arguments mean is not known, and no rule can
    /// let the call pass without a person.
    pub unlisted: bool,
}

/// Facts that few calls have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct More(SmallVec<[(FactId, Fact<Stated>); 2]>);

/// A value that a fact cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfit {
    /// The fact.
    pub fact: FactId,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the fact {} cannot be stated as this",
            self.fact.row().name
        )
    }
}

impl std::error::Error for Unfit {}

impl Facts {
    /// What is known where nothing is but who calls.
    #[must_use]
    pub fn of(caller: &Caller) -> Self {
        let mut facts = Self::default();
        facts.state_caller(caller);
        facts
    }

    /// What is known of one fact.
    #[must_use]
    pub fn get(&self, id: FactId) -> Fact<Value<'_>> {
        match id {
            FactId::ToolName => known(&self.tool_name),
            FactId::BackendId => Fact::Known(text(&self.backend_id)),
            FactId::Method => Fact::Known(text(&self.method)),
            FactId::SubjectId => Fact::Known(text(&self.subject_id)),
            FactId::ResourceType => self.resource_type.map(|of| text(of.label())).into(),
            FactId::Direction => Fact::Known(text(self.direction.label())),
            FactId::Operation => {
                let operation = self.operation_known().unwrap_or(Operation::Unknown);
                Fact::Known(text(operation.label()))
            }
            FactId::SideEffects => self.side_effects_known().map(Value::Words).into(),
            FactId::ReadsOnly => match self.kept(id) {
                Fact::Known(said) => Fact::Known(said),
                Fact::Unknown | Fact::Absent => Fact::Known(text(self.reads_only())),
            },
            FactId::SendsOutward => match self.kept(id) {
                Fact::Absent => self.sends_outward(),
                said => said,
            },
            FactId::Paths => self.of_paths(Some(Value::Places(self.places().collect()))),
            FactId::Path => self.of_paths(self.primary_path().map(text)),
            FactId::SourcePath => self.of_paths(self.path_of(Role::Source).map(text)),
            FactId::DestPath => self.of_paths(self.path_of(Role::Destination).map(text)),
            FactId::Extension => self.of_paths(self.extension().map(Value::Text)),
            FactId::Scheme => self.uri_scheme().map(|of| Value::Text(of.into())).into(),
            FactId::Uri => known(&self.uri),
            _ if URL_FACTS.contains(&id) => self.url_value(id),
            _ => self.kept(id),
        }
    }

    /// States one fact.
    ///
    /// # Errors
    /// [`Unfit`] where this is no value of the fact, or the fact is read from others.
    pub fn set(&mut self, id: FactId, value: Fact<Stated>) -> Result<(), Unfit> {
        let unfit = Unfit { fact: id };
        let fits = match (&value, id.row().kind) {
            (Fact::Known(Stated::Text(_) | Stated::Word(_)), Kind::Text)
            | (Fact::Known(Stated::Texts(_)), Kind::Texts)
            | (Fact::Known(Stated::Number(_)), Kind::Number)
            | (Fact::Unknown | Fact::Absent, _) => true,
            (Fact::Known(_), Kind::Text | Kind::Texts | Kind::Number) => false,
        };
        if !fits {
            return Err(unfit);
        }
        match id {
            FactId::ToolName => self.tool_name = one_text(value),
            FactId::Uri => self.uri = one_text(value),
            FactId::BackendId => self.backend_id = always(value).ok_or(unfit)?,
            FactId::Method => self.method = always(value).ok_or(unfit)?,
            FactId::SubjectId => self.subject_id = always(value).ok_or(unfit)?,
            // These have types of their own, or are read from the paths and the URI.
            FactId::ResourceType
            | FactId::Direction
            | FactId::Operation
            | FactId::SideEffects
            | FactId::Paths
            | FactId::Path
            | FactId::SourcePath
            | FactId::DestPath
            | FactId::Extension
            | FactId::Scheme => return Err(unfit),
            _ if URL_FACTS.contains(&id) => return Err(unfit),
            _ => self.keep(id, value),
        }
        Ok(())
    }

    /// The facts that few calls have and this one has, in the order in which they were stated.
    pub fn kept_beside(&self) -> impl Iterator<Item = (&'static FactDef, Fact<Value<'_>>)> {
        self.more.0.iter().map(|(id, _)| (id.row(), self.kept(*id)))
    }

    /// Returns what the call of a tool does, by all sources; `None` where no tool is called.
    #[must_use]
    pub fn effects(&self) -> Option<CallEffects> {
        self.effects_by(&self.evidence)
    }

    fn effects_by(&self, evidence: &Evidence) -> Option<CallEffects> {
        let tool = self.tool_name.known()?;
        let stated = StatedEffects {
            operation: self.operation,
            side_effects: self.side_effects,
        };
        Some(classify(tool, stated, evidence))
    }

    /// Returns the operation that names the call. Reading a resource and getting a prompt are reads; other methods
    /// have no operation.
    #[must_use]
    pub fn operation_known(&self) -> Option<Operation> {
        if self.operation.is_some() {
            return self.operation;
        }
        match (self.effects(), self.resource_type) {
            (Some(effects), _) => effects.operation(),
            (None, Some(ResourceType::Resource | ResourceType::Prompt)) => Some(Operation::Read),
            (
                None,
                Some(ResourceType::Tool | ResourceType::Server | ResourceType::Model) | None,
            ) => None,
        }
    }

    /// Returns the side effects; `None` where they are not known.
    #[must_use]
    pub fn side_effects_known(&self) -> Option<&'static [&'static str]> {
        match self.effects() {
            Some(effects) => effects.side_effects,
            None => self.side_effects,
        }
    }

    /// Returns `yes` where the call certainly reads and does nothing else, else `no`.
    fn reads_only(&self) -> &'static str {
        let reads = match self.effects() {
            Some(effects) => effects.reads_only(),
            None => self.operation_known() == Some(Operation::Read),
        };
        yes_or_no(reads)
    }

    /// States what is known of the call's effects beside its name. State it last: whatever it changes is kept as a
    /// fact for the record.
    pub fn state_evidence(&mut self, evidence: Evidence) {
        self.evidence = evidence;
        let (Some(by_name), Some(effects)) =
            (self.effects_by(&Evidence::default()), self.effects())
        else {
            return;
        };
        if by_name.reads_only() != effects.reads_only() {
            let said = Stated::Word(yes_or_no(effects.reads_only()));
            self.keep(FactId::ReadsOnly, Fact::Known(said));
        }
        if let Some(sends) = effects.sends_outward
            && by_name.sends_outward != Some(sends)
        {
            let said = Stated::Word(yes_or_no(sends));
            self.keep(FactId::SendsOutward, Fact::Known(said));
        }
    }

    /// States who calls: what an authenticator has found, not what a face has written.
    pub(crate) fn state_caller(&mut self, caller: &Caller) {
        if *self.subject_id != *caller.subject {
            caller.subject.as_ref().clone_into(&mut self.subject_id);
        }
        let groups = match &*caller.groups {
            [] => Fact::Absent,
            [_, ..] => Fact::Known(Stated::from(&caller.groups)),
        };
        self.keep(FactId::SubjectGroups, groups);
        let sign_in = caller.sign_in.as_deref();
        let issuer = sign_in.map(|sign_in| Stated::from(&*sign_in.issuer));
        self.keep(FactId::SubjectIssuer, issuer.into());
        let scopes = sign_in.filter(|sign_in| !sign_in.scopes.is_empty());
        let scopes = scopes.map(|sign_in| Stated::from(&sign_in.scopes));
        self.keep(FactId::Scopes, scopes.into());
        let sid = sign_in.and_then(|sign_in| sign_in.sid.as_deref());
        self.keep(FactId::Sid, sid.map(Stated::from).into());
        let agent = caller.agent.as_deref().map(Stated::from);
        self.keep(FactId::Agent, agent.into());
    }

    /// Whether the call may send something beyond this machine, as far as its kind and effects tell.
    fn sends_outward(&self) -> Fact<Value<'_>> {
        let known = |sends| Fact::Known(text(yes_or_no(sends)));
        match (self.direction, self.resource_type) {
            (Direction::ToServer, Some(ResourceType::Resource)) => {
                let scheme = self.uri.known().and_then(|uri| scheme_of(uri));
                known(scheme.is_some_and(|scheme| OUTWARD_SCHEMES.contains(&scheme.as_str())))
            }
            (Direction::ToServer, Some(ResourceType::Tool)) => {
                match self.effects().and_then(|effects| effects.sends_outward) {
                    Some(sends) => known(sends),
                    None => Fact::Unknown,
                }
            }
            // What a method that MCP does not have may do, nobody knows.
            (Direction::ToServer, Some(ResourceType::Server)) => {
                match KEPT_HERE.contains(&self.method.as_str()) {
                    true => known(false),
                    false => Fact::Unknown,
                }
            }
            (Direction::ToServer | Direction::ToClient, _) => known(false),
        }
    }

    /// States the labels of the caller's session.
    pub(crate) fn state_labels(&mut self, held: Option<&Held>) {
        let (words, told) = held.map_or_else(Default::default, |held| (held.words(), held.told()));
        for (id, texts) in [(FactId::SessionLabels, words), (FactId::LabelledBy, told)] {
            let stated = (!texts.is_empty()).then(|| texts.into_iter().collect::<Stated>());
            self.keep(id, stated.into());
        }
    }

    /// States what the inspection found in the call as it came.
    pub fn state_finding(&mut self, finding: &Finding) {
        let told: Stated = finding.told().into_iter().collect();
        self.keep(FactId::Inspected, Fact::Known(told));
        self.inspected = Some(Box::new(finding.clone()));
    }

    fn kept(&self, id: FactId) -> Fact<Value<'_>> {
        let kept = self.more.0.iter().find(|(kept, _)| *kept == id);
        match kept.map(|(_, value)| value) {
            Some(Fact::Known(value)) => Fact::Known(value.value()),
            Some(Fact::Unknown) => Fact::Unknown,
            Some(Fact::Absent) | None => Fact::Absent,
        }
    }

    /// Puts others in the place of texts of the facts that few calls have, where `change` gives one; what is known of the
    /// caller stays.
    pub(crate) fn rewrite_beside(&mut self, change: impl Fn(&str) -> Option<String>) {
        const OURS: [FactId; 8] = [
            FactId::SubjectGroups,
            FactId::SubjectIssuer,
            FactId::Scopes,
            FactId::Sid,
            FactId::Agent,
            FactId::SessionLabels,
            FactId::LabelledBy,
            FactId::Inspected,
        ];
        let chosen = self.more.0.iter_mut().filter(|(id, _)| !OURS.contains(id));
        for (_, fact) in chosen {
            match fact {
                Fact::Known(Stated::Text(text)) => {
                    if let Some(other) = change(text) {
                        *text = other;
                    }
                }
                Fact::Known(stated @ Stated::Word(_)) => {
                    if let Stated::Word(word) = stated
                        && let Some(other) = change(word)
                    {
                        *stated = Stated::Text(other);
                    }
                }
                Fact::Known(Stated::Texts(texts))
                    if texts.iter().any(|text| change(text).is_some()) =>
                {
                    let other =
                        |text: &Arc<str>| change(text).map_or_else(|| Arc::clone(text), Arc::from);
                    *texts = texts.iter().map(other).collect();
                }
                Fact::Known(_) | Fact::Unknown | Fact::Absent => {}
            }
        }
    }

    fn keep(&mut self, id: FactId, value: Fact<Stated>) {
        self.more.0.retain(|(kept, _)| *kept != id);
        if value != Fact::Absent {
            self.more.0.push((id, value));
        }
    }
}

fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

fn text(text: &str) -> Value<'_> {
    Value::Text(Cow::Borrowed(text))
}

fn known(fact: &Fact<String>) -> Fact<Value<'_>> {
    match fact {
        Fact::Known(known) => Fact::Known(text(known)),
        Fact::Unknown => Fact::Unknown,
        Fact::Absent => Fact::Absent,
    }
}

fn one_text(value: Fact<Stated>) -> Fact<String> {
    match value {
        Fact::Known(Stated::Text(text)) => Fact::Known(text),
        Fact::Known(Stated::Word(word)) => Fact::Known(word.to_owned()),
        Fact::Known(Stated::Texts(_) | Stated::Number(_)) | Fact::Unknown => Fact::Unknown,
        Fact::Absent => Fact::Absent,
    }
}

/// The text of a fact that every call has.
fn always(value: Fact<Stated>) -> Option<String> {
    one_text(value).known().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stated_is_what_is_known() {
        let mut facts = Facts::default();
        facts
            .set(FactId::ToolName, Fact::Known("delete_file".into()))
            .unwrap();
        facts
            .set(FactId::Method, Fact::Known("tools/call".into()))
            .unwrap();
        let told = |facts: &Facts, id| {
            let value = facts.get(id);
            let texts = value
                .known()
                .map(|value| value.texts().collect::<Vec<_>>().join(","));
            texts.unwrap_or_else(|| format!("{value:?}"))
        };
        assert_eq!(told(&facts, FactId::ToolName), "delete_file");
        assert_eq!(told(&facts, FactId::Operation), "delete");
        assert_eq!(told(&facts, FactId::SideEffects), "fs_write");
        assert_eq!(told(&facts, FactId::Path), "Absent");
        facts.paths = Fact::Unknown;
        assert_eq!(told(&facts, FactId::Path), "Unknown");
        // Whoever knows better says so.
        facts.operation = Some(Operation::Read);
        facts.side_effects = Some(&["db_read", "cloud_api"]);
        assert_eq!(told(&facts, FactId::Operation), "read");
        assert_eq!(told(&facts, FactId::SideEffects), "db_read,cloud_api");
    }

    #[test]
    fn whether_a_method_that_mcp_does_not_have_sends_something_outward_is_not_known() {
        let sends = |method: &str, resource_type| {
            let facts = Facts {
                method: method.to_owned(),
                resource_type,
                ..Facts::default()
            };
            let value = facts.get(FactId::SendsOutward);
            value.known().and_then(Value::text).map(str::to_owned)
        };
        let server = Some(ResourceType::Server);
        assert_eq!(sends("vendor/mail", server), None);
        assert_eq!(sends("tasks/update", server), None);
        assert_eq!(sends("notifications/vendor/mail", server), None);
        assert_eq!(sends("tasks/get", server).as_deref(), Some("no"));
        assert_eq!(sends("completion/complete", None).as_deref(), Some("no"));
    }

    #[test]
    fn a_value_that_is_none_of_the_fact_is_refused() {
        let mut facts = Facts::default();
        let list: Arc<[Arc<str>]> = Arc::from(["a".into()]);
        let list = Stated::from(&list);
        for (id, value) in [
            (FactId::ToolName, Fact::Known(list)),
            (FactId::SubjectId, Fact::Unknown),
            (FactId::Path, Fact::Known("/tmp".into())),
            (FactId::Direction, Fact::Absent),
        ] {
            assert_eq!(facts.set(id, value), Err(Unfit { fact: id }));
        }
        assert_eq!(facts, Facts::default());
    }
}
