//! From all sources to one class.

use super::names::NameEffects;
use super::{Evidence, Operation, OperationSet};

/// Side effects by which something may leave this machine; a program that runs can send.
const OUTWARD: [&str; 8] = [
    "network_egress",
    "email_send",
    "browser_open",
    "cloud_api",
    "code_exec",
    "process_spawn",
    "container_exec",
    "sudo_elevate",
];
/// Side effects of calls that read files or the like.
const READS: [&str; 2] = ["fs_read", "db_read"];

/// What a call does, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEffects {
    /// Its operations. Where `is_open`, those that it has at least.
    pub operations: OperationSet,
    /// It may do more than `operations` says: no source that counts says what it does.
    pub is_open: bool,
    /// Its side effects; `None` where they are not known.
    pub side_effects: Option<&'static [&'static str]>,
    /// Whether it may send something beyond this machine; `None` where that is not known.
    pub sends_outward: Option<bool>,
    /// It takes away what is at its paths.
    pub moves: bool,
    /// Nothing says that it does not take away what is at its paths.
    pub may_move: bool,
    /// It writes what its arguments do not name.
    pub writes_beside: bool,
}

/// What a built-in server states of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stated {
    pub operation: Option<Operation>,
    pub side_effects: Option<&'static [&'static str]>,
}

impl CallEffects {
    /// Returns whether the call reads files or the like, and certainly does nothing else.
    #[must_use]
    pub fn reads_only(&self) -> bool {
        let only_reads = |effects: &[&str]| effects.iter().all(|effect| READS.contains(effect));
        !self.is_open
            && self.operations == OperationSet::READ
            && self.side_effects.is_none_or(only_reads)
    }

    /// Returns the operation that names the call: the worst of those that it has or whose verb its name has. `None`
    /// where nothing says more than that it may do anything.
    #[must_use]
    pub fn operation(&self) -> Option<Operation> {
        let known = match self.is_open {
            true => self.beyond_reading(),
            false => self.operations,
        };
        known.worst()
    }

    /// Returns the operations other than reading.
    #[must_use]
    pub fn beyond_reading(&self) -> OperationSet {
        self.operations.without(OperationSet::READ)
    }

    /// Returns whether the call may have operations that nothing names: it is unknown, or it runs code.
    #[must_use]
    pub fn may_do_anything(&self) -> bool {
        let runs_code = self.operations.meets(OperationSet::EXECUTE);
        runs_code || (self.is_open && self.beyond_reading().is_empty())
    }

    fn closed(operations: OperationSet, side_effects: Option<&'static [&'static str]>) -> Self {
        let changes = OperationSet::WRITE
            .with(OperationSet::DELETE)
            .with(OperationSet::EXECUTE);
        let outward = OperationSet::SEND.with(OperationSet::EXECUTE);
        let by_effects = side_effects.map(|effects| effects.iter().any(|e| OUTWARD.contains(e)));
        Self {
            operations,
            is_open: false,
            side_effects,
            sends_outward: match operations.meets(outward) {
                true => Some(true),
                false => by_effects,
            },
            moves: operations.meets(OperationSet::DELETE),
            may_move: operations.meets(changes),
            writes_beside: false,
        }
    }
}

/// Returns what a call of a tool does, by all sources.
pub(crate) fn classify(tool: &str, stated: Stated, evidence: &Evidence) -> CallEffects {
    let name = NameEffects::of(tool);
    let base = by_definition(&name, stated, evidence);
    if stated.operation.is_some() {
        return base;
    }
    let mut effects = base;
    let signs = evidence.arguments;
    // A tool that writes names where it writes; in one that only reads such an argument is a write of its own.
    let writes_output = signs.output && effects.reads_only();
    if writes_output {
        effects.operations = effects.operations.with(OperationSet::WRITE);
    }
    // What a person declared of a tool covers the addresses that it is given.
    let leaves = signs.address && evidence.declared.is_none() && effects.reads_only();
    if leaves {
        effects.operations = effects.operations.with(OperationSet::SEND);
        effects.sends_outward = Some(true);
    }
    if signs.option || writes_output {
        effects.is_open = true;
        effects.side_effects = None;
        effects.may_move = true;
    }
    effects
}

/// Returns what a tool of this name does where nothing else is known.
#[must_use]
pub fn of_name(tool: &str) -> CallEffects {
    of_evidence(tool, &Evidence::default())
}

/// Returns what a tool of this name does by what else is known of it.
#[must_use]
pub fn of_evidence(tool: &str, evidence: &Evidence) -> CallEffects {
    let stated = Stated {
        operation: None,
        side_effects: None,
    };
    classify(tool, stated, evidence)
}

/// Returns what a call does before its arguments are read.
fn by_definition(name: &NameEffects, stated: Stated, evidence: &Evidence) -> CallEffects {
    if let Some(operation) = stated.operation {
        return of_builtin(name, operation, stated.side_effects);
    }
    let known = evidence
        .declared
        .map(|declared| of_declared(name, declared, evidence))
        .or_else(|| of_shipped(name, evidence));
    known.unwrap_or_else(|| of_annotations(name, stated.side_effects, evidence))
}

/// A built-in server states what its tools do.
fn of_builtin(
    name: &NameEffects,
    operation: Operation,
    side_effects: Option<&'static [&'static str]>,
) -> CallEffects {
    let takes_away = operation == Operation::Delete || name.moves;
    CallEffects {
        is_open: operation == Operation::Unknown,
        moves: takes_away,
        may_move: takes_away,
        writes_beside: name.writes_beside,
        ..CallEffects::closed(OperationSet::of(operation), side_effects)
    }
}

/// The operator declares what a tool does.
fn of_declared(name: &NameEffects, declared: OperationSet, evidence: &Evidence) -> CallEffects {
    let of_name = name.shipped.map(|tool| tool.side_effects);
    let fits = |effects: &&'static [&'static str]| {
        let only_reads = effects.iter().all(|effect| READS.contains(effect));
        (declared == OperationSet::READ) == only_reads
    };
    let effects = of_name.filter(fits).unwrap_or(effects_of(declared));
    let closed = CallEffects::closed(declared, Some(effects));
    CallEffects {
        sends_outward: match evidence.annotations.open_world {
            Some(true) => Some(true),
            Some(false) | None => closed.sends_outward,
        },
        writes_beside: name.writes_beside && closed.may_move,
        ..closed
    }
}

/// Returns the side effects that declared operations stand for.
fn effects_of(declared: OperationSet) -> &'static [&'static str] {
    let writes = declared.meets(OperationSet::WRITE.with(OperationSet::DELETE));
    let runs = declared.meets(OperationSet::EXECUTE);
    match (writes, runs, declared.meets(OperationSet::SEND)) {
        (false, false, false) => &[],
        (true, false, false) => &["fs_write", "db_write"],
        (false, false, true) => &["network_egress"],
        (true, false, true) => &["fs_write", "db_write", "network_egress"],
        (false, true, false) => &["code_exec", "process_spawn"],
        (true, true, false) => &["code_exec", "process_spawn", "fs_write", "db_write"],
        (false, true, true) => &["code_exec", "process_spawn", "network_egress"],
        (true, true, true) => &[
            "code_exec",
            "process_spawn",
            "fs_write",
            "db_write",
            "network_egress",
        ],
    }
}

/// A tool of the shipped table, while its schema and its annotations do not contradict.
fn of_shipped(name: &NameEffects, evidence: &Evidence) -> Option<CallEffects> {
    let tool = name.shipped?;
    let operations = tool.operations?;
    let said = evidence.annotations;
    let contradicts = said.read_only == Some(false)
        || said.destructive == Some(true)
        || evidence.suspicious_schema;
    if operations == OperationSet::READ && contradicts {
        return None;
    }
    let closed = CallEffects::closed(operations, Some(tool.side_effects));
    let runs = operations.meets(OperationSet::EXECUTE);
    Some(CallEffects {
        sends_outward: match said.open_world {
            Some(true) => Some(true),
            Some(false) | None => closed.sends_outward,
        },
        moves: closed.moves || tool.moves,
        // A command is read for what it moves; a tool that writes a file moves none.
        may_move: !runs && (closed.moves || tool.moves),
        writes_beside: name.writes_beside,
        ..closed
    })
}

/// No source says what the tool does but its annotations and its name.
fn of_annotations(
    name: &NameEffects,
    stated: Option<&'static [&'static str]>,
    evidence: &Evidence,
) -> CallEffects {
    let said = evidence.annotations;
    // The shipped table knows the side effects of tools that contradict it or whose arguments decide.
    let side_effects = stated.or_else(|| name.shipped.map(|tool| tool.side_effects));
    let mut operations = name.operations;
    if said.read_only == Some(false) {
        operations = operations.with(OperationSet::WRITE);
    }
    if said.destructive == Some(true) {
        operations = operations.with(OperationSet::DELETE);
    }
    let is_harmless = |effects: &[&str]| effects.iter().all(|effect| READS.contains(effect));
    let reads = said.approved
        && said.read_only == Some(true)
        && operations.is_empty()
        && !name.is_delicate
        && !evidence.suspicious_schema
        && side_effects.is_none_or(is_harmless);
    let by_effects = side_effects.map(|effects| effects.iter().any(|e| OUTWARD.contains(e)));
    let sends_outward = match (by_effects, said.open_world) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), _) => Some(false),
        (None, Some(false)) if said.approved => Some(false),
        (None, _) if name.operations.meets(OperationSet::SEND) => Some(true),
        (None, _) if reads => Some(false),
        (None, _) => None,
    };
    CallEffects {
        operations: match reads {
            true => OperationSet::READ,
            false => operations,
        },
        is_open: !reads,
        side_effects,
        sends_outward,
        moves: name.moves,
        may_move: !reads,
        writes_beside: name.writes_beside,
    }
}

#[cfg(test)]
mod tests;
