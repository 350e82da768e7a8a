//! What commands are, as rules see them.

use std::sync::Arc;

use gate::facts::{Fact, FactId, Facts};

use crate::command::{Command, Part};
use crate::paths;

/// States what commands are: the facts that rules look at.
pub(crate) fn state(commands: &[Command], facts: &mut Facts) {
    let mut argv: Vec<Arc<str>> = Vec::new();
    let mut operands: Vec<Arc<str>> = Vec::new();
    let mut places = Vec::new();
    for command in commands {
        if !argv.is_empty() {
            argv.push(gate::facts::COMMANDS_APART.into());
        }
        argv.extend(command.argv().iter().map(|word| Arc::from(word.as_str())));
        for operand in command.uses().operands {
            operands.push(operand.text.into());
            if operand.part == Part::Path {
                places.push(paths::argument(operand.text));
            }
        }
    }
    let program = match commands {
        [one] => Fact::Known(one.program().into()),
        // Several programs: a rule about one of them cannot know.
        _ => Fact::Unknown,
    };
    let uses: Vec<_> = commands.iter().map(Command::uses).collect();
    // Of all that they do, the worst; `Operation` is in that order.
    let worst = uses
        .iter()
        .max_by_key(|uses| (uses.operation, uses.side_effects.len()));
    if let Some(worst) = worst {
        facts.operation = Some(worst.operation);
        facts.side_effects = Some(worst.side_effects);
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
