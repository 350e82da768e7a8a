//! Pinned definitions of tools: which were approved, what differs from them, and approval.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gate::pins::{Approval, Book, Definition, PinError, PinFile, Tool, servers};
use mcp::describe::proposed;
use mcp::descriptions::hidden::spelled_out;
use mcp::descriptions::tree::Node;
use serde::Serialize;

use crate::error::AdminError;

/// Pins of the chosen servers.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PinnedServers {
    /// By name.
    pub servers: Vec<PinnedServer>,
}

/// Pins of one server.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum PinnedServer {
    /// Pins that can be read.
    Readable {
        /// The server.
        server: String,
        /// Whether its whole list was seen.
        complete: bool,
        /// By name.
        tools: Vec<PinnedTool>,
    },
    /// Pins that cannot be read.
    Damaged {
        /// The server.
        server: String,
        /// A sentence.
        error: String,
        /// Its label.
        reason: String,
    },
}

/// The definitions of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PinnedTool {
    /// The tool.
    pub tool: String,
    /// The definition that was approved, or trusted from the first list.
    pub approved: Option<PinnedDefinition>,
    /// The definition that waits for approval.
    pub waiting: Option<PinnedDefinition>,
}

/// A definition of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PinnedDefinition {
    /// SHA-256, in hexadecimal digits.
    pub digest: String,
    /// When it was approved or first seen, UTC.
    pub time: String,
}

impl PinnedTool {
    fn new(name: &str, tool: &Tool) -> Self {
        let definition = |definition: &Option<Definition>| {
            definition.as_ref().map(|own| PinnedDefinition {
                digest: own.digest.clone(),
                time: gate::journal::format_utc(own.time_ms),
            })
        };
        Self {
            tool: name.to_owned(),
            approved: definition(&tool.approved),
            waiting: definition(&tool.waiting),
        }
    }
}

/// Lists the pins of one server, or of all.
///
/// # Errors
/// A directory that cannot be read, a server without pins.
pub fn list(pins: &Path, server: Option<&str>) -> Result<PinnedServers, AdminError> {
    let servers = choose_servers(pins, server)?.into_iter().map(|server| {
        let book = PinFile::new(pins, &server).and_then(|file| file.read());
        match book {
            Err(error) => PinnedServer::Damaged {
                error: error.to_string(),
                reason: error.fault().label().to_owned(),
                server,
            },
            Ok(book) => {
                let book = book.unwrap_or_default();
                let tools = book.tools.iter();
                PinnedServer::Readable {
                    tools: tools
                        .map(|(name, tool)| PinnedTool::new(name, tool))
                        .collect(),
                    complete: book.complete,
                    server,
                }
            }
        }
    });
    Ok(PinnedServers {
        servers: servers.collect(),
    })
}

/// Definitions that wait, beside the approved ones.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WaitingDefinitions {
    /// By server and tool.
    pub waiting: Vec<DefinitionChange>,
}

/// A definition that waits, beside the approved one.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DefinitionChange {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// Digest of the approved definition; null for a new tool.
    pub approved: Option<String>,
    /// Digest of the waiting definition.
    pub waiting: Option<String>,
    /// Fields that differ, by their path.
    pub changes: Vec<FieldChange>,
}

/// One field that differs.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct FieldChange {
    /// Path of the field.
    pub field: String,
    /// Its approved value; null if it is new.
    pub old: Option<String>,
    /// Its waiting value; null if it is gone.
    pub new: Option<String>,
}

/// Compares the definitions that wait with the approved ones.
///
/// # Errors
/// Pins that cannot be read, a server without pins, a tool that the server never listed.
pub fn diff(
    pins: &Path,
    server: Option<&str>,
    tool: Option<&str>,
) -> Result<WaitingDefinitions, AdminError> {
    let mut waiting = Vec::new();
    for server in choose_servers(pins, server)? {
        let book = read_book(pins, &server)?;
        if let Some(tool) = tool.filter(|tool| !book.tools.contains_key(*tool)) {
            return Err(AdminError::UnknownTool {
                server,
                tool: tool.to_owned(),
            });
        }
        let tools = book.waiting();
        let tools = tools.filter(|(name, _)| tool.is_none_or(|wanted| wanted == *name));
        waiting.extend(tools.map(|(name, tool)| DefinitionChange::new(&server, name, tool)));
    }
    Ok(WaitingDefinitions { waiting })
}

impl DefinitionChange {
    /// Compares the two definitions of a tool.
    #[must_use]
    pub fn new(server: &str, name: &str, tool: &Tool) -> Self {
        let digest = |definition: &Option<Definition>| {
            let definition = definition.as_ref();
            definition.map(|own| own.digest.clone())
        };
        Self {
            server: server.to_owned(),
            tool: name.to_owned(),
            approved: digest(&tool.approved),
            waiting: digest(&tool.waiting),
            changes: changes(tool),
        }
    }
}

/// Returns the fields that differ, by path.
fn changes(tool: &Tool) -> Vec<FieldChange> {
    let fields = |definition: &Option<Definition>| {
        let mut out = BTreeMap::new();
        if let Some(node) = definition.as_ref().and_then(|own| Node::parse(&own.text)) {
            flatten(&node, String::new(), &mut out);
        }
        out
    };
    let (old, new) = (fields(&tool.approved), fields(&tool.waiting));
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let differing = paths
        .into_iter()
        .filter(|path| old.get(*path) != new.get(*path));
    differing
        .map(|path| FieldChange {
            field: spelled_out(path),
            old: old.get(path).cloned(),
            new: new.get(path).cloned(),
        })
        .collect()
}

/// Collects every scalar by its path; empty objects and arrays too.
fn flatten(node: &Node<'_>, path: String, out: &mut BTreeMap<String, String>) {
    let below = |name: &str| match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    };
    match node {
        Node::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                flatten(value, below(name), out);
            }
        }
        Node::Array(elements) if !elements.is_empty() => {
            for (at, value) in elements.iter().enumerate() {
                flatten(value, format!("{path}[{at}]"), out);
            }
        }
        Node::Object(_) | Node::Array(_) | Node::Scalar(_) => {
            out.insert(path, node.canonical());
        }
        Node::String(text) => {
            out.insert(path, text.value().into_owned());
        }
    }
}

/// Which definitions are approved.
#[derive(Debug, Clone, Default)]
pub struct PinSelection {
    /// Tools by name.
    pub tools: Vec<String>,
    /// Everything that waits, and everything that was pinned from the first list.
    pub all: bool,
    /// Beginning of the digest that a definition must have.
    pub digest: Option<String>,
}

/// Result of an approval of one definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PinApproval {
    /// The tool.
    pub tool: String,
    /// Result.
    #[serde(flatten)]
    pub outcome: PinOutcome,
}

/// Result of an approval for one definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum PinOutcome {
    /// The definition is approved.
    Approved {
        /// Its digest.
        digest: String,
    },
    /// No definition waits.
    NothingWaits,
    /// The server never listed such a tool.
    Unknown,
    /// A definition with another digest waits; nothing was approved.
    AnotherWaits {
        /// Its digest.
        digest: String,
    },
}

impl PinOutcome {
    /// Returns whether a definition that was asked for is not approved.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Unknown | Self::AnotherWaits { .. })
    }
}

/// Approves definitions of a server.
///
/// # Errors
/// Pins that cannot be read or written, a server without pins.
pub fn approve(
    pins: &Path,
    server: &str,
    selection: &PinSelection,
    now_ms: i64,
) -> Result<Vec<PinApproval>, AdminError> {
    choose_servers(pins, Some(server))?;
    let approvals = PinFile::new(pins, server)?.change(|book| {
        let tools: Vec<String> = match selection.all {
            true => book.unapproved().map(str::to_owned).collect(),
            false => selection.tools.clone(),
        };
        let mut approvals = Vec::with_capacity(tools.len());
        for tool in tools {
            let outcome = match book.approve(&tool, selection.digest.as_deref(), now_ms) {
                Approval::Approved { digest } => PinOutcome::Approved { digest },
                Approval::Nothing => PinOutcome::NothingWaits,
                Approval::Unknown => PinOutcome::Unknown,
                Approval::Another { digest } => PinOutcome::AnotherWaits { digest },
            };
            approvals.push(PinApproval { tool, outcome });
        }
        approvals
    });
    Ok(approvals?)
}

/// Drops all pins of a server; returns whether there were any.
///
/// # Errors
/// Pins that cannot be removed, a server without pins.
pub fn forget(pins: &Path, server: &str) -> Result<bool, AdminError> {
    choose_servers(pins, Some(server))?;
    Ok(PinFile::new(pins, server)?.forget()?)
}

/// Proposed class of each approved tool of a server, by name; null if that is unknown.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ProposedClasses {
    /// The server.
    pub server: String,
    /// Words for `servers.NAME.tools`.
    pub tools: BTreeMap<String, Option<String>>,
}

/// Proposes what the tools of a server do, by their approved definitions.
///
/// # Errors
/// Pins that cannot be read, a server without pins.
pub fn propose(pins: &Path, server: &str) -> Result<ProposedClasses, AdminError> {
    choose_servers(pins, Some(server))?;
    let book = read_book(pins, server)?;
    let pinned = book.tools.iter().filter_map(|(name, tool)| {
        let definition = tool.approved.as_ref()?;
        let operations = proposed(name, &definition.text);
        Some((name.clone(), operations.map(|set| set.words())))
    });
    Ok(ProposedClasses {
        server: server.to_owned(),
        tools: pinned.collect(),
    })
}

/// Returns the pins of a server; those of a server without a file are empty.
///
/// # Errors
/// Pins that cannot be read.
pub fn read_book(pins: &Path, server: &str) -> Result<Book, AdminError> {
    let read = PinFile::new(pins, server).and_then(|file| file.read());
    read.map(Option::unwrap_or_default)
        .map_err(|error: PinError| error.into())
}

/// Returns the chosen servers: the named one, or all with pins.
fn choose_servers(pins: &Path, server: Option<&str>) -> Result<Vec<String>, AdminError> {
    let known = servers(pins).map_err(|error| AdminError::Directory {
        path: pins.to_path_buf(),
        error,
    })?;
    match server {
        None => Ok(known),
        Some(server) if known.iter().any(|own| own == server) => Ok(vec![server.to_owned()]),
        Some(server) => Err(AdminError::NoPins {
            server: server.to_owned(),
            known,
        }),
    }
}
