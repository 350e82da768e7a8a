//! What would be changed in a client's file, entry by entry.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::install;
use crate::install::client::Client;
use crate::install::entry::{self, FileVariables, Front};
use admin::atomic::{self, Existing};
use admin::document::{self, EditError, Format};

use super::record::{Record, digest};

/// A client's file as it is.
pub(super) struct File {
    pub client: Client,
    pub text: String,
    pub record: Option<Record>,
    /// The folder that the client opens with this file, where it is a project's.
    pub workspace: Option<PathBuf>,
    format: Format,
    root: Value,
}

/// A server that is put behind this program.
pub(super) struct WrappedServer {
    /// Its name in rules.
    pub name: String,
    /// Its entry as it was.
    pub entry: Value,
    /// The variables that it gets beside those of its entry.
    pub variables: Vec<String>,
}

/// One entry that changes.
pub(super) struct Step {
    /// The server, and its project where it belongs to one.
    pub name: String,
    /// The whole text after this change.
    pub text: String,
}

/// What changes.
pub(super) struct Change {
    /// "wrapped" or "unwrapped".
    pub verb: &'static str,
    pub steps: Vec<Step>,
    /// The servers that get this program in front of them.
    pub wrapped: Vec<WrappedServer>,
    /// Servers that stay as they are, and why.
    pub skipped: Vec<(String, String)>,
    /// Servers that change, and what of them may be lost.
    pub notes: Vec<(String, String)>,
    /// The backup whose text the file gets back.
    restores: Option<PathBuf>,
}

/// How a change was written.
pub(super) enum Outcome {
    /// With this backup of the file as it was.
    Edited(PathBuf),
    /// The file is the one before it was wrapped; this backup was removed.
    Restored(PathBuf),
}

/// An entry in the file.
struct Entry<'f> {
    name: String,
    /// The server's own name.
    server: &'f str,
    path: Vec<&'f str>,
    value: &'f Value,
}

impl File {
    pub fn new(client: Client, text: String, record: Option<Record>) -> Result<Self, EditError> {
        let format = client.format();
        let root = format.parse(&text)?;
        Ok(Self {
            client,
            text,
            record,
            workspace: None,
            format,
            root,
        })
    }

    /// The servers of the file, or those that were named.
    fn entries(&self, chosen: &[String]) -> Result<Vec<Entry<'_>>, String> {
        let section = self.client.section();
        let mut all = entries_in(self.root.get(section), &[section], None)?;
        // Claude Code keeps the servers of each project in the same file.
        let projects = self.root.get("projects").and_then(Value::as_object);
        if let (Client::ClaudeCode, Some(projects)) = (self.client, projects) {
            for (project, settings) in projects {
                let path = ["projects", project, section];
                all.extend(entries_in(settings.get(section), &path, Some(project))?);
            }
        }
        if let Some(missing) = chosen
            .iter()
            .find(|name| all.iter().all(|entry| entry.server != name.as_str()))
        {
            let known: Vec<&str> = all.iter().map(|entry| entry.server).collect();
            return Err(format!(
                "no server is called \"{}\"; the file has: {}",
                missing.escape_debug(),
                if known.is_empty() {
                    "none".into()
                } else {
                    known.join(", ")
                }
            ));
        }
        all.retain(|entry| chosen.is_empty() || chosen.iter().any(|name| name == entry.server));
        Ok(all)
    }

    /// Secrets of every entry, which are not shown.
    pub fn secrets(&self) -> Vec<String> {
        let entries = self.entries(&[]).unwrap_or_default();
        let values = entries
            .iter()
            .flat_map(|entry| entry::secrets(self.client, entry.value));
        values.collect()
    }

    /// Whether nobody has changed it since we left it.
    fn is_as_left(&self) -> bool {
        let digest = digest(&self.text);
        self.record
            .as_ref()
            .is_some_and(|record| record.after == digest)
    }
}

fn entries_in<'f>(
    servers: Option<&'f Value>,
    path: &[&'f str],
    project: Option<&str>,
) -> Result<Vec<Entry<'f>>, String> {
    let Some(servers) = servers else {
        return Ok(Vec::new());
    };
    let servers = servers
        .as_object()
        .ok_or_else(|| EditError::NotAnObject(path.join(".")).to_string())?;
    let entry = |(name, value): (&'f String, &'f Value)| Entry {
        name: match project {
            Some(project) => format!("{name} (project {project})"),
            None => name.clone(),
        },
        server: name,
        path: [path, &[name.as_str()]].concat(),
        value,
    };
    Ok(servers.iter().map(entry).collect())
}

/// Wraps the servers, or those that are named.
pub(super) fn wrap(
    file: &File,
    chosen: &[String],
    front: &Front,
    own: &Path,
) -> Result<Change, String> {
    let mut change = Change::new("wrapped");
    for entry in file.entries(chosen)? {
        if entry::run_words(file.client, entry.value, own).is_some() {
            change.skip(entry, "it is wrapped already");
            continue;
        }
        let (variables, lost) = match lost(file, &entry, front) {
            Ok(kept) => kept,
            Err(why) if chosen.is_empty() => {
                change.skip(entry, &why);
                continue;
            }
            Err(why) => (Vec::new(), Some(why)),
        };
        let front = front.with_variables(variables);
        match entry::wrapped(file.client, entry.server, entry.value, &front) {
            Ok(value) => {
                change
                    .notes
                    .extend(lost.map(|what| (entry.name.clone(), what)));
                change.step(file, &entry, &value)?;
                change.wrapped.push(WrappedServer {
                    name: entry::plain_name(entry.server),
                    entry: entry.value.clone(),
                    variables: front.variables,
                });
            }
            Err(why) if chosen.is_empty() => change.skip(entry, &why),
            Err(why) => return Err(format!("\"{}\" cannot be wrapped: {why}", entry.name)),
        }
    }
    Ok(change)
}

/// What an entry through this program has further: the names of variables, and a note of what may be lost.
type Kept = (Vec<String>, Option<String>);

/// What of an entry would be lost, other than by its form.
///
/// # Errors
/// Why it is left alone unless it is asked for by name.
fn lost(file: &File, entry: &Entry<'_>, front: &Front) -> Result<Kept, String> {
    if let Some(why) = entry::may_need_login(file.client, entry.value) {
        return Err(format!(
            "{why}; if it needs no login, wrap it with --server {}",
            entry.server
        ));
    }
    match entry::file_variables(entry.value, file.workspace.as_deref()) {
        FileVariables::None => Ok((Vec::new(), None)),
        FileVariables::Read(names) => Ok((names, None)),
        FileVariables::Unread(path) if front.variables.is_empty() => Err(format!(
            "its variables are in {path}, which cannot be read here; name those that the server needs with --env NAME, and wrap it with --server {}",
            entry.server
        )),
        FileVariables::Unread(path) => Ok((
            Vec::new(),
            Some(format!(
                "of the variables in {path}, the server is given those that --env names"
            )),
        )),
    }
}

/// Unwraps the servers, or those that are named.
pub(super) fn unwrap(file: &File, chosen: &[String], own: &Path) -> Result<Change, String> {
    let mut change = Change::new("unwrapped");
    let original = file.record.as_ref().and_then(Record::original);
    let before = original
        .as_ref()
        .and_then(|text| file.format.parse(text).ok());
    let mut wrapped_left = false;
    let entries = file.entries(&[])?;
    file.entries(chosen)?;
    for entry in entries {
        let Some(words) = entry::run_words(file.client, entry.value, own) else {
            continue;
        };
        if !chosen.is_empty() && !chosen.iter().any(|name| name == entry.server) {
            wrapped_left = true;
            continue;
        }
        let before = before
            .as_ref()
            .and_then(|root| document::at(root, &entry.path));
        match entry::unwrapped(file.client, entry.value, &words, before) {
            Some(value) => change.step(file, &entry, &value)?,
            None => change.skip(
                entry,
                "its server is one of durward.yaml, so there is no command to restore",
            ),
        }
    }
    if let (Some(text), false, false, true) = (
        original,
        wrapped_left,
        change.steps.is_empty(),
        file.is_as_left(),
    ) {
        change.restores = file.record.as_ref().map(|record| record.backup.clone());
        if let Some(last) = change.steps.last_mut() {
            last.text = text;
        }
    }
    Ok(change)
}

impl Change {
    fn new(verb: &'static str) -> Self {
        Self {
            verb,
            steps: Vec::new(),
            wrapped: Vec::new(),
            skipped: Vec::new(),
            notes: Vec::new(),
            restores: None,
        }
    }

    fn skip(&mut self, entry: Entry<'_>, why: &str) {
        self.skipped.push((entry.name, why.to_owned()));
    }

    fn step(&mut self, file: &File, entry: &Entry<'_>, value: &Value) -> Result<(), String> {
        let text = self.text(file);
        let text = file
            .format
            .set(text, &entry.path, value)
            .map_err(|error| format!("\"{}\": {error}", entry.name))?;
        let name = entry.name.clone();
        self.steps.push(Step { name, text });
        Ok(())
    }

    /// The text with every change so far.
    pub fn text<'a>(&'a self, file: &'a File) -> &'a str {
        self.steps
            .last()
            .map_or(file.text.as_str(), |step| step.text.as_str())
    }
}

/// Writes a change, keeps a backup, and records what belongs together.
pub(super) fn write(
    path: &Path,
    file: &File,
    change: &Change,
    state: &Path,
) -> Result<Outcome, String> {
    let text = change.text(file);
    let old = file.record.as_ref().filter(|_| file.is_as_left());
    if let (Some(backup), Some(record)) = (&change.restores, old) {
        install::ensure_unchanged(path, Some(&file.text))?;
        atomic::write(path, text.as_bytes(), Existing::Replace)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        record.remove(state);
        drop(std::fs::remove_file(backup));
        return Ok(Outcome::Restored(backup.clone()));
    }
    let backup = install::replace(path, Some(&file.text), text)?
        .ok_or_else(|| format!("{}: no backup was made", path.display()))?;
    let record = match old {
        // The first backup is the one that counts, as long as all changes since are ours.
        Some(record) => Record {
            after: digest(text),
            ..record.clone()
        },
        None => Record {
            file: path.to_path_buf(),
            backup: backup.clone(),
            before: digest(&file.text),
            after: digest(text),
        },
    };
    // Without it, `unwrap` goes entry by entry.
    if change.verb == "wrapped" || old.is_some() {
        record
            .write(state)
            .map_err(|error| format!("the file was changed, but not recorded: {error}"))?;
    }
    Ok(Outcome::Edited(backup))
}
