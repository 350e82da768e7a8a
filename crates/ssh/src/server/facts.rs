//! What commands are, as rules see them.

use std::sync::Arc;

use gate::facts::{Fact, FactId, Facts, Operation, Stated};
use serde_json::Value;
use toolkit::server::{Args, Unfit};

use super::Ssh;
use super::effects::together;
use crate::command::{Command, Context, Operand, Part};
use crate::{paths, tools};

/// States what commands are: the facts that rules look at.
pub(crate) fn state(commands: &[Command], context: &Context, facts: &mut Facts) {
    state_context(context, facts);
    let mut argv: Vec<Arc<str>> = Vec::new();
    let mut operands: Vec<Arc<str>> = Vec::new();
    let mut places = Vec::new();
    for command in commands {
        if !argv.is_empty() {
            argv.push(gate::facts::COMMANDS_APART.into());
            operands.push(gate::facts::COMMANDS_APART.into());
        }
        argv.extend(command.argv().iter().map(|word| Arc::from(word.as_str())));
        let uses = command.uses();
        let beside = context.beside(&uses);
        places.extend(beside.iter().map(|path| paths::argument(path)));
        facts.reach.below |= uses.is_below;
        let is_named = |operand: &Operand<'_>| operand.part == Part::Path;
        if uses.is_below && context.cwd.is_none() && !uses.operands.iter().any(is_named) {
            // It begins where the login does.
            places.push(paths::argument(&context.place(".")));
        }
        for operand in uses.operands {
            operands.push(operand.text.into());
            if operand.part == Part::Path {
                places.push(paths::argument(&context.place(operand.text)));
            }
        }
    }
    let program = match commands {
        [one] => Fact::Known(one.program().into()),
        // Of several, each is judged as the first word of its command.
        _ => Fact::Unknown,
    };
    let uses: Vec<_> = commands.iter().map(Command::uses).collect();
    // Of all that they do, the worst; `Operation` is in that order.
    if let Some(worst) = uses.iter().map(|uses| uses.operation).max() {
        facts.operation = Some(worst);
        facts.side_effects = Some(together(&uses));
    }
    let _ = facts.set(FactId::Program, program);
    let _ = facts.set(FactId::Argv, Fact::Known(argv.into_iter().collect()));
    let _ = facts.set(
        FactId::Operands,
        Fact::Known(operands.into_iter().collect()),
    );
    // What it is let pass by is a rule about commands, not that it reads.
    let _ = facts.set(FactId::ReadsOnly, Fact::Known("no".into()));
    facts.paths = if places.is_empty() {
        Fact::Absent
    } else {
        Fact::Known(places)
    };
}

impl Ssh {
    /// What is typed into a terminal, and what runs there.
    pub(super) fn state_typed(&self, args: Args<'_>, facts: &mut Facts) -> Result<(), Unfit> {
        let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
        let inside = self
            .sessions
            .in_terminal(text("session_id"), text("terminal"));
        if let Some((command, context)) = inside {
            state(&[command], &context, facts);
        }
        // What a program makes of what is typed, nobody knows.
        facts.operation = Some(Operation::Unknown);
        facts.side_effects = Some(&["code_exec", "process_spawn"]);
        let typed = tools::typed(args)?;
        let _ = facts.set(FactId::Typed, Fact::Known(typed.as_str().into()));
        Ok(())
    }
}

/// Where they run, and with which variables.
fn state_context(context: &Context, facts: &mut Facts) {
    let cwd = context.cwd.as_deref().map(Stated::from);
    let _ = facts.set(FactId::Cwd, cwd.into());
    let texts = |of: fn(&(String, String)) -> String| -> Fact<Stated> {
        if context.env.is_empty() {
            return Fact::Absent;
        }
        Fact::Known(context.env.iter().map(of).map(Arc::from).collect())
    };
    let names = texts(|(name, _)| name.clone());
    let pairs = texts(|(name, value)| format!("{name}={value}"));
    let _ = facts.set(FactId::EnvNames, names);
    let _ = facts.set(FactId::Env, pairs);
}
