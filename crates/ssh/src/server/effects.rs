//! What several commands together may do to the world.

use std::sync::LazyLock;

use crate::command::Uses;

/// Every side effect that a command may have here.
const EFFECTS: [&str; 6] = [
    "fs_read",
    "fs_write",
    "network_egress",
    "env_read",
    "code_exec",
    "process_spawn",
];

/// The effects of several commands, by which of [`EFFECTS`] they are: the first one is bit 0.
static UNIONS: LazyLock<Vec<Vec<&'static str>>> = LazyLock::new(|| {
    let union = |bits: usize| {
        let is_of = |at: &usize| bits >> at & 1 == 1;
        let effects = EFFECTS.iter().enumerate();
        effects
            .filter(|(at, _)| is_of(at))
            .map(|(_, effect)| *effect)
            .collect()
    };
    (0..1 << EFFECTS.len()).map(union).collect()
});

/// The side effects of all these commands: a call has those of each of them.
pub(super) fn together(uses: &[Uses<'_>]) -> &'static [&'static str] {
    let has = |effect: &&str| uses.iter().any(|of| of.side_effects.contains(effect));
    let effects = EFFECTS.iter().enumerate();
    let bits: usize = effects
        .filter(|(_, effect)| has(effect))
        .map(|(at, _)| 1 << at)
        .sum();
    UNIONS.get(bits).map_or(&EFFECTS, Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use gate::facts::Facts;

    use super::super::facts::state;
    use super::*;
    use crate::command::{Command, Context};

    #[test]
    fn commands_have_the_effects_of_each_of_them() {
        for (lines, expected) in [
            (&["cat /etc/hosts"][..], &["fs_read"][..]),
            (&["uptime"], &[]),
            (&["uptime", "dig example.com"], &["network_egress"]),
            (
                &["dig example.com", "cat /etc/hosts"],
                &["fs_read", "network_egress"],
            ),
            (
                &["cat /etc/hosts", "dig example.com", "printenv"],
                &["fs_read", "network_egress", "env_read"],
            ),
            (
                &["dig example.com", "sort -o /tmp/a /tmp/b"],
                &["fs_read", "fs_write", "network_egress"],
            ),
            (
                &["sort -o /tmp/a /tmp/b", "make"],
                &["fs_read", "fs_write", "code_exec", "process_spawn"],
            ),
        ] {
            for turned in [false, true] {
                let mut commands: Vec<Command> = lines
                    .iter()
                    .map(|line| Command::read(line).unwrap())
                    .collect();
                if turned {
                    commands.reverse();
                }
                let mut facts = Facts::default();
                state(&commands, &Context::default(), &mut facts);
                assert_eq!(facts.side_effects, Some(expected), "{lines:?} {turned}");
                assert!(commands.iter().all(|command| {
                    let uses = command.uses();
                    uses.side_effects.iter().all(|own| EFFECTS.contains(own))
                }));
            }
        }
    }
}
