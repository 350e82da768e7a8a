//! What is derived from the facts once for a judgement, so that no rule has to do it again.

use std::borrow::Cow;

use std::sync::Arc;

use super::shell::{fold, folded};
use crate::facts::{COMMANDS_APART, Fact, FactId, Facts, Operation, Value};

/// Facts, and what most rules ask of them.
#[derive(Clone)]
pub(super) struct Seen<'f> {
    facts: &'f Facts,
    /// The command that is judged, where a call runs several.
    command: Option<OneCommand<'f>>,
    tool_folded: Cow<'f, str>,
    backend_folded: Cow<'f, str>,
    operation: Option<Operation>,
    effects: Option<&'static [&'static str]>,
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
        Self {
            facts,
            command: None,
            tool_folded: tool.map(|t| folded(t)).unwrap_or_default(),
            backend_folded: folded(&facts.backend_id),
            operation: facts.operation_known(),
            effects: facts.side_effects_known(),
            below: facts.reach.below || takes_away_of(facts),
        }
    }

    /// Returns the facts once for each command of a call that runs several; nothing where it runs one or none.
    pub fn commands(&self) -> Vec<Self> {
        let Fact::Known(Value::Names(argv)) = self.facts.get(FactId::Argv) else {
            return Vec::new();
        };
        if !argv.iter().any(|word| is_apart(word)) {
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

    pub fn effects(&self) -> Option<&'static [&'static str]> {
        self.effects
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
            FactId::SideEffects => self.effects.map(Value::Words).into(),
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

/// Whether a call takes away what is at its places.
fn takes_away_of(facts: &Facts) -> bool {
    facts.operation == Some(Operation::Delete) || facts.takes_away_by_name()
}
