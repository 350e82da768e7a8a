//! What is derived from the facts once for a judgement, so that no rule has to do it again.

use std::borrow::Cow;

use std::sync::Arc;

use super::shell::{fold, folded};
use crate::effects::CallEffects;
use crate::facts::{
    COMMANDS_APART, Direction, Fact, FactId, Facts, Operation, ResourceType, Value,
};
use crate::paths::Role;

/// Facts, and what most rules ask of them.
#[derive(Clone)]
pub(super) struct Seen<'f> {
    facts: &'f Facts,
    /// The command that is judged, where a call runs several.
    command: Option<OneCommand<'f>>,
    tool_folded: Cow<'f, str>,
    backend_folded: Cow<'f, str>,
    operation: Option<Operation>,
    effects: Option<CallEffects>,
    side_effects: Option<&'static [&'static str]>,
    below: bool,
}

/// One of several commands of a call.
#[derive(Debug, Clone, Copy)]
struct OneCommand<'f> {
    argv: &'f [Arc<str>],
    /// None where they are not stated for each command.
    operands: Option<&'f [Arc<str>]>,
}

impl<'f> Seen<'f> {
    pub fn new(facts: &'f Facts) -> Self {
        let tool = facts.tool_name.known();
        let effects = facts.effects();
        Self {
            facts,
            command: None,
            tool_folded: tool.map(|t| folded(t)).unwrap_or_default(),
            backend_folded: folded(&facts.backend_id),
            operation: facts.operation_known(),
            effects,
            side_effects: facts.side_effects_known(),
            below: facts.reach.below || effects.is_some_and(|effects| effects.moves),
        }
    }

    /// Returns the facts once for each command of a call that runs several; nothing where it runs one or none.
    pub fn commands(&self) -> Vec<Self> {
        let Fact::Known(Value::Names(argv)) = self.facts.get(FactId::Argv) else {
            return Vec::new();
        };
        if !argv.iter().any(is_apart) {
            return Vec::new();
        }
        let mut operands = match self.facts.get(FactId::Operands) {
            Fact::Known(Value::Names(operands)) => operands.split(is_apart).collect(),
            _ => Vec::new(),
        };
        let commands: Vec<_> = argv.split(is_apart).collect();
        if operands.len() != commands.len() {
            operands.clear();
        }
        let of = |(at, argv): (usize, &'f [Arc<str>])| Self {
            command: Some(OneCommand {
                argv,
                operands: operands.get(at).copied(),
            }),
            ..self.clone()
        };
        commands.into_iter().enumerate().map(of).collect()
    }

    pub fn facts(&self) -> &'f Facts {
        self.facts
    }

    /// The tool's name in lower case; empty where there is none.
    pub fn tool_folded(&self) -> &str {
        &self.tool_folded
    }

    pub fn operation(&self) -> Option<Operation> {
        self.operation
    }

    /// Returns what the call of a tool does; `None` where a client calls none.
    pub fn effects(&self) -> Option<&CallEffects> {
        self.effects.as_ref()
    }

    pub fn side_effects(&self) -> Option<&'static [&'static str]> {
        self.side_effects
    }

    /// Returns whether a tool is called.
    pub fn is_tool_call(&self) -> bool {
        self.facts.direction == Direction::ToServer
            && self
                .facts
                .resource_type
                .is_none_or(|of| of == ResourceType::Tool)
            && self.effects.is_some()
    }

    /// Whether whatever lies below the call's places is read with them, or taken away.
    pub fn reaches_below(&self) -> bool {
        self.below
    }

    /// The places below which a call reaches that does so.
    pub fn tops(&self) -> impl Iterator<Item = &'f str> + use<'f> {
        let arguments = self.facts.paths.known().into_iter().flatten();
        let plain = arguments.flat_map(|argument| &argument.meaning.places);
        plain.chain(&self.facts.reach.places).map(String::as_str)
    }

    /// Returns the places that a tool of unknown effects may move or replace: those of its path arguments. The
    /// root directory alone counts only in an argument that is named as a path: texts hold single slashes.
    pub fn movable(&self) -> impl Iterator<Item = &'f str> + use<'f> {
        let may_move = self.effects.is_some_and(|effects| effects.may_move);
        let arguments = self.facts.paths.known().into_iter().flatten();
        let named = arguments.filter(move |argument| may_move && !argument.content);
        named.flat_map(|argument| {
            let places = argument.meaning.places.iter().map(String::as_str);
            places.filter(|place| argument.role != Role::Shape || *place != "/")
        })
    }

    /// What is known of one fact.
    pub fn get(&self, id: FactId) -> Fact<Value<'f>> {
        match (id, self.command) {
            (FactId::Program, Some(of)) => {
                let program = of.argv.first();
                return program.map(|word| Value::Text(Cow::Borrowed(word))).into();
            }
            (FactId::Argv, Some(of)) => return Fact::Known(Value::Names(of.argv)),
            (FactId::Operands, Some(of)) => {
                return of
                    .operands
                    .map_or(Fact::Unknown, |words| Fact::Known(Value::Names(words)));
            }
            _ => {}
        }
        match id {
            FactId::Operation => {
                let operation = self.operation.unwrap_or(Operation::Unknown);
                Fact::Known(Value::Text(operation.label().into()))
            }
            FactId::SideEffects => self.side_effects.map(Value::Words).into(),
            _ => self.facts.get(id),
        }
    }

    /// A text without its case.
    pub fn folded(&self, id: FactId, text: &str) -> Cow<'_, str> {
        match id {
            FactId::ToolName => Cow::Borrowed(self.tool_folded()),
            FactId::BackendId => Cow::Borrowed(&self.backend_folded),
            _ => Cow::Owned(fold(text)),
        }
    }
}

fn is_apart(word: &Arc<str>) -> bool {
    **word == *COMMANDS_APART
}
