//! From text to entries.

use std::path::{Path, PathBuf};

use super::include;
use super::keywords::{Keyword, keyword};
use super::line;
use super::{
    Config, ConfigFault, Criterion, DEPTH_MAX, Entry, FILE_BYTES_MAX, FILES_MAX, Kind, LINES_MAX,
    Person, Wanted,
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
    /// The bound that ended the reading.
    over_bound: Option<String>,
}

impl<'p> Reading<'p> {
    pub fn new(person: &'p Person) -> Self {
        Self {
            person,
            files: Vec::new(),
            lines: 0,
            depth: 0,
            ignored: Vec::new(),
            over_bound: None,
        }
    }

    /// Returns the configuration, unless a bound was met.
    pub fn finish(self, entries: Vec<Entry>) -> Result<Config, ConfigFault> {
        match self.over_bound {
            Some(wrong) => Err(ConfigFault { wrong }),
            None => Ok(Config {
                entries,
                files: self.files,
            }),
        }
    }

    pub fn file(&mut self, path: &Path) -> Result<Vec<Entry>, ConfigFault> {
        let name = path.display().to_string();
        let fault = |wrong: String| ConfigFault {
            wrong: format!("{name}: {wrong}"),
        };
        self.files.push(path.to_path_buf());
        if self.files.len() > FILES_MAX {
            return Err(self.end(&name, format!("there are more than {FILES_MAX} files")));
        }
        let about = std::fs::metadata(path).map_err(|error| fault(error.to_string()))?;
        if !about.is_file() {
            return Err(fault("is not a file".into()));
        }
        is_ours(&about, "could have passwords sent to another machine").map_err(fault)?;
        if about.len() > FILE_BYTES_MAX {
            return Err(fault(format!("is longer than {FILE_BYTES_MAX} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
        Ok(self.text(&text, &name))
    }

    /// Ends the reading: a bound is met, and the rest is not read.
    fn end(&mut self, place: &str, wrong: String) -> ConfigFault {
        let wrong = format!("{place}: {wrong}");
        self.over_bound.get_or_insert_with(|| wrong.clone());
        ConfigFault { wrong }
    }

    pub fn text(&mut self, text: &str, name: &str) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (at, text) in text.lines().enumerate() {
            let place = format!("{name}: line {}", at + 1);
            self.lines += 1;
            if self.lines > LINES_MAX {
                self.end(&place, format!("there are more than {LINES_MAX} lines"));
            }
            if self.over_bound.is_some() {
                break;
            }
            if let Err(wrong) = self.line(text, &place, &mut entries) {
                entries.push(Entry::Unsupported(format!("{place}: {wrong}")));
            }
        }
        entries
    }

    /// Reads one line. An error is why it is not supported.
    fn line(&mut self, text: &str, place: &str, entries: &mut Vec<Entry>) -> Result<(), String> {
        if text.contains('\0') {
            return Err("there is a NUL".into());
        }
        let Some((name, words)) = line::split(text)? else {
            return Ok(());
        };
        match keyword(&name) {
            Keyword::Host => {
                entries.push(if words.iter().any(String::is_empty) {
                    let wrong = format!("{place}: a host's name is empty");
                    Entry::Match(vec![Criterion::unsupported(wrong)])
                } else {
                    Entry::Host(words)
                });
            }
            Keyword::Match => {
                let read = criteria(words, place);
                let unsupported = |wrong| vec![Criterion::unsupported(format!("{place}: {wrong}"))];
                entries.push(Entry::Match(read.unwrap_or_else(unsupported)));
            }
            Keyword::Include => {
                for pattern in &words {
                    let included = self.include(pattern, place)?;
                    entries.push(Entry::Include(included));
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

    fn include(&mut self, pattern: &str, place: &str) -> Result<Vec<Entry>, String> {
        if self.depth >= DEPTH_MAX {
            let wrong = format!("files include each other more than {DEPTH_MAX} deep");
            self.end(place, wrong.clone());
            return Err(wrong);
        }
        self.depth += 1;
        let mut entries = Vec::new();
        for path in include::found(pattern, self.person)? {
            match self.file(&path) {
                Ok(read) => entries.push(Entry::Include(read)),
                Err(fault) => entries.push(Entry::Unsupported(fault.wrong)),
            }
        }
        self.depth -= 1;
        Ok(entries)
    }
}

impl Criterion {
    fn unsupported(wrong: String) -> Self {
        Self {
            negated: false,
            kind: Kind::Unsupported(wrong),
            patterns: Vec::new(),
        }
    }
}

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

/// Kinds of OpenSSH 9.4 to 10.2 with one argument.
const NEWER_KINDS: [&str; 5] = [
    "localnetwork",
    "tagged",
    "command",
    "sessiontype",
    "version",
];

/// The conditions of a `Match` line.
fn criteria(words: Vec<String>, place: &str) -> Result<Vec<Criterion>, String> {
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
            "exec" => Kind::Unsupported(format!(
                "{place}: Match exec runs a program on this machine, which is not done here"
            )),
            kind if NEWER_KINDS.contains(&kind) => {
                Kind::Unsupported(format!("{place}: Match {kind} is not evaluated here"))
            }
            "final" => {
                let wrong = format!("{place}: Match final is not evaluated here");
                criteria.push(Criterion::unsupported(wrong));
                continue;
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
