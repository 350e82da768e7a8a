//! From text to entries.

use std::path::{Path, PathBuf};

use super::include;
use super::keywords::{Keyword, keyword};
use super::line;
use super::{
    ConfigFault, Criterion, DEPTH_MAX, Entry, FILE_BYTES_MAX, FILES_MAX, Kind, LINES_MAX, Person,
    Wanted,
};
use crate::trust::matches;
use toolkit::files::is_ours;

/// One reading of a file with all that it includes.
pub(super) struct Reading<'p> {
    person: &'p Person,
    /// Files read so far, in order.
    pub(super) files: Vec<PathBuf>,
    lines: usize,
    depth: usize,
    ignored: Vec<String>,
}

impl<'p> Reading<'p> {
    pub fn new(person: &'p Person) -> Self {
        Self {
            person,
            files: Vec::new(),
            lines: 0,
            depth: 0,
            ignored: Vec::new(),
        }
    }

    pub fn file(&mut self, path: &Path) -> Result<Vec<Entry>, ConfigFault> {
        let name = path.display().to_string();
        let fault = |wrong: String| ConfigFault {
            wrong: format!("{name}: {wrong}"),
        };
        self.files.push(path.to_path_buf());
        if self.files.len() > FILES_MAX {
            return Err(fault(format!("there are more than {FILES_MAX} files")));
        }
        let told = std::fs::metadata(path).map_err(|error| fault(error.to_string()))?;
        if !told.is_file() {
            return Err(fault("is not a file".into()));
        }
        is_ours(&told, "could have passwords sent to another machine").map_err(fault)?;
        if told.len() > FILE_BYTES_MAX {
            return Err(fault(format!("is longer than {FILE_BYTES_MAX} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
        self.text(&text, &name)
    }

    pub fn text(&mut self, text: &str, name: &str) -> Result<Vec<Entry>, ConfigFault> {
        let mut entries = Vec::new();
        for (at, text) in text.lines().enumerate() {
            self.lines += 1;
            let read = if self.lines > LINES_MAX {
                Err(format!("there are more than {LINES_MAX} lines"))
            } else {
                self.line(text, &mut entries)
            };
            read.map_err(|wrong| ConfigFault {
                // A fault of a file that is included names that file.
                wrong: match wrong.strip_prefix(INSIDE) {
                    Some(inside) => inside.to_owned(),
                    None => format!("{name}: line {}: {wrong}", at + 1),
                },
            })?;
        }
        Ok(entries)
    }

    fn line(&mut self, text: &str, entries: &mut Vec<Entry>) -> Result<(), String> {
        if text.contains('\0') {
            return Err("there is a NUL".into());
        }
        let Some((name, words)) = line::split(text)? else {
            return Ok(());
        };
        match keyword(&name) {
            Keyword::Host => {
                if words.iter().any(String::is_empty) {
                    return Err("a host's name is empty".into());
                }
                entries.push(Entry::Host(words));
            }
            Keyword::Match => entries.push(Entry::Match(criteria(words)?)),
            Keyword::Include => {
                for pattern in &words {
                    entries.push(Entry::Include(self.include(pattern)?));
                }
            }
            Keyword::IgnoreUnknown => {
                let patterns = words.iter().flat_map(|word| word.split(','));
                self.ignored.extend(patterns.map(str::to_ascii_lowercase));
            }
            Keyword::Wanted(wanted) => entries.push(Entry::Set(wanted, values(wanted, words)?)),
            Keyword::Other => {}
            Keyword::Unknown => {
                let is_ignored = |pattern: &String| matches(pattern.as_bytes(), name.as_bytes());
                if !self.ignored.iter().any(is_ignored) {
                    return Err(format!(
                        "{name} is not a keyword of ssh_config; correct it, or list it behind IgnoreUnknown"
                    ));
                }
            }
        }
        Ok(())
    }

    fn include(&mut self, pattern: &str) -> Result<Vec<Entry>, String> {
        if self.depth >= DEPTH_MAX {
            return Err(format!(
                "files include each other more than {DEPTH_MAX} deep"
            ));
        }
        self.depth += 1;
        let mut entries = Vec::new();
        for path in include::found(pattern, self.person)? {
            let read = self.file(&path);
            entries.extend(read.map_err(|fault| format!("{INSIDE}{}", fault.wrong))?);
        }
        self.depth -= 1;
        Ok(entries)
    }
}

/// What stands before the fault of an included file.
const INSIDE: &str = "\0";

/// The values of an option, as many as it takes.
fn values(wanted: Wanted, words: Vec<String>) -> Result<Vec<String>, String> {
    let several = matches!(
        wanted,
        Wanted::UserKnownHostsFile | Wanted::GlobalKnownHostsFile | Wanted::ProxyCommand
    );
    match words.as_slice() {
        [one] if one.is_empty() => return Err("the value is empty".into()),
        [port] if wanted == Wanted::Port => {
            let number = port.parse::<u16>().ok().filter(|port| *port > 0);
            if number.is_none() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(format!(
                    "{port} is not a port; write a number from 1 to 65535"
                ));
            }
        }
        [flag]
            if wanted == Wanted::IdentitiesOnly
                && !["yes", "true", "no", "false"]
                    .contains(&flag.to_ascii_lowercase().as_str()) =>
        {
            return Err(format!("{flag} is neither yes nor no"));
        }
        [_, more, ..] if !several => return Err(format!("\"{more}\" is one value too many")),
        _ => {}
    }
    Ok(words)
}

/// The conditions of a `Match` line.
fn criteria(words: Vec<String>) -> Result<Vec<Criterion>, String> {
    let mut criteria = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let (negated, name) = match word.strip_prefix('!') {
            Some(name) => (true, name),
            None => (false, word.as_str()),
        };
        let kind = match name.to_ascii_lowercase().as_str() {
            "all" => {
                if !criteria.is_empty() || words.next().is_some() {
                    return Err("Match all takes no other criteria".into());
                }
                Kind::All
            }
            "canonical" => Kind::Canonical,
            "host" => Kind::Host,
            "originalhost" => Kind::OriginalHost,
            "user" => Kind::User,
            "localuser" => Kind::LocalUser,
            "exec" => {
                return Err("Match exec runs a program on this machine, which is not done here; keep such a block in a file that is not read here".into());
            }
            other => return Err(format!("Match {other} is not known here")),
        };
        let patterns = match kind {
            Kind::All | Kind::Canonical => Vec::new(),
            _ => match words.next() {
                Some(list) if !list.is_empty() => list.split(',').map(str::to_owned).collect(),
                _ => return Err(format!("Match {name} has no value")),
            },
        };
        criteria.push(Criterion {
            negated,
            kind,
            patterns,
        });
    }
    Ok(criteria)
}
