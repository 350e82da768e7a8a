//! A variant: a name and the command that is measured under it.

use crate::error::LabError;
use crate::url::HttpUrl;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Placeholder of a free port in an address and in a command.
const PORT: &str = "{port}";
/// Placeholder of the first variant's address in the command of another.
const DIRECT: &str = "{direct}";

/// How a variant is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum VariantTransport {
    /// Over its standard input and output.
    #[default]
    Stdio,
    /// Over Streamable HTTP.
    Http,
}

/// A command under a name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Variant {
    /// How reports call it.
    pub(crate) name: String,
    /// The program and its arguments.
    #[serde(serialize_with = "as_text", deserialize_with = "of_text")]
    command: Vec<OsString>,
    /// Over which transport it is spoken to.
    #[serde(default)]
    transport: VariantTransport,
    /// Its address over HTTP; a command without one prints it.
    #[serde(default)]
    url: Option<String>,
    /// The tool's name behind this variant, if that is another.
    #[serde(skip)]
    tool: Option<String>,
    /// Directory of its journal, if it has one: its stages are compared with the watch.
    #[serde(skip)]
    journal: Option<PathBuf>,
    /// Directory of its control socket, if known: a person can approve calls there.
    #[serde(skip)]
    control: Option<PathBuf>,
    /// The directory that it finds in place of those of the user.
    #[serde(skip)]
    home: Option<PathBuf>,
}

fn of_text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<OsString>, D::Error> {
    let words = Vec::<String>::deserialize(from)?;
    Ok(words.into_iter().map(OsString::from).collect())
}

fn as_text<S: serde::Serializer>(command: &[OsString], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(command.iter().map(|word| word.to_string_lossy()))
}

/// The longest name of a variant or a phase, in characters.
const NAME_CHARS_MAX: usize = 80;

/// Rejects a name that people and terminals could not read.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(format!(
            "the name {name:?} is empty or holds control characters"
        ));
    }
    match name.chars().count() {
        ..=NAME_CHARS_MAX => Ok(()),
        count => Err(format!(
            "a name of {count} characters; {NAME_CHARS_MAX} are the most"
        )),
    }
}

impl Variant {
    /// Returns a variant of words that are already apart.
    pub(crate) fn new(name: impl Into<String>, command: Vec<OsString>) -> Self {
        Self {
            name: name.into(),
            command,
            transport: VariantTransport::Stdio,
            url: None,
            tool: None,
            journal: None,
            control: None,
            home: None,
        }
    }

    /// Returns the same variant, spoken to over HTTP: at an address, with `{port}` for a free port as in the command,
    /// or at the one that its command prints.
    pub(crate) fn over_http(self, url: Option<&str>) -> Self {
        Self {
            transport: VariantTransport::Http,
            url: url.map(str::to_owned),
            ..self
        }
    }

    /// Returns the same variant, behind which the tool that is called has this name.
    pub(crate) fn with_tool(self, tool: &str) -> Self {
        Self {
            tool: Some(tool.to_owned()),
            ..self
        }
    }

    /// Returns the tool's name behind this variant, if that is another.
    pub(crate) fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// Over which transport it is spoken to.
    pub(crate) fn transport(&self) -> VariantTransport {
        self.transport
    }

    /// Returns its address over HTTP, if known.
    pub(crate) fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Returns whether it needs a free port.
    pub(crate) fn wants_port(&self) -> bool {
        self.mentions(PORT)
    }

    /// Returns whether it needs the address of the first variant.
    pub(crate) fn wants_direct(&self) -> bool {
        self.mentions(DIRECT)
    }

    fn mentions(&self, what: &str) -> bool {
        let mut words = self.command.iter();
        words.any(|word| word.to_string_lossy().contains(what))
            || self.url.as_deref().is_some_and(|url| url.contains(what))
    }

    /// Returns the same variant with its port in place.
    pub(crate) fn at_port(&self, port: Option<u16>) -> Self {
        match port {
            Some(port) => self.with(PORT, &port.to_string()),
            None => self.clone(),
        }
    }

    /// Returns the same variant with the first variant's address in place.
    pub(crate) fn behind(&self, direct: &str) -> Self {
        self.with(DIRECT, direct)
    }

    fn with(&self, what: &str, by: &str) -> Self {
        let words = self.command.iter().map(|word| match word.to_str() {
            Some(text) => text.replace(what, by).into(),
            None => word.clone(),
        });
        Self {
            command: words.collect(),
            url: self.url.as_ref().map(|url| url.replace(what, by)),
            ..self.clone()
        }
    }

    /// Returns the same variant with more words behind its own.
    pub(crate) fn before(mut self, words: &[OsString]) -> Self {
        self.command.extend(words.iter().cloned());
        self
    }

    /// Returns the same variant under another name.
    pub(crate) fn with_name(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// Returns the same variant with its journal in this directory.
    pub(crate) fn with_journal(self, directory: PathBuf) -> Self {
        Self {
            journal: Some(directory),
            ..self
        }
    }

    /// Returns the same variant with its control socket in this directory.
    pub(crate) fn with_control(self, directory: PathBuf) -> Self {
        Self {
            control: Some(directory),
            ..self
        }
    }

    /// Returns the same variant, which looks for nothing of the user's own and finds this directory instead.
    pub(crate) fn at_home_in(self, directory: PathBuf) -> Self {
        Self {
            home: Some(directory),
            ..self
        }
    }

    /// Returns the directory of its control socket.
    pub(crate) fn control(&self) -> Option<&Path> {
        self.control.as_deref()
    }

    /// Returns the directory that it takes for the user's home.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns the directory of its journal.
    pub(crate) fn journal(&self) -> Option<&Path> {
        self.journal.as_deref()
    }

    /// Its words.
    pub(crate) fn command(&self) -> &[OsString] {
        &self.command
    }

    /// Returns a variant of a command line, split as a POSIX shell splits words; nothing is expanded. Over HTTP it is
    /// an address, an address and behind ` -- ` the command that serves there, or a command that prints its address
    /// first; with `{port}` in a command, the address is that port's `/mcp`.
    pub(crate) fn parse(
        name: &str,
        line: &str,
        transport: VariantTransport,
    ) -> Result<Self, LabError> {
        check_name(name).map_err(LabError::Usage)?;
        let web = line.starts_with("http://") || line.starts_with("https://");
        if transport == VariantTransport::Stdio {
            if web {
                return Err(LabError::Usage(format!(
                    "variant {name} is an address, which --transport http measures: {line}"
                )));
            }
            return Ok(Self::new(name, words(name, line)?));
        }
        if !web {
            let arm = Self::new(name, words(name, line)?);
            let url = arm
                .wants_port()
                .then(|| format!("http://127.0.0.1:{PORT}/mcp"));
            return Ok(arm.over_http(url.as_deref()));
        }
        let (url, command) = match line.split_once(" -- ") {
            Some((url, command)) => (url.trim(), words(name, command)?),
            None => (line.trim(), Vec::new()),
        };
        // Its faults are reported before anything starts.
        url.replace(PORT, "1").parse::<HttpUrl>()?;
        let arm = Self::new(name, command).over_http(Some(url));
        if arm.command.is_empty() && arm.wants_port() {
            return Err(LabError::Usage(format!(
                "variant {name} asks for a free port, but has no command that would serve there: {line}"
            )));
        }
        Ok(arm)
    }

    pub(crate) fn program(&self) -> &OsStr {
        self.command.first().map_or(OsStr::new(""), |word| word)
    }

    pub(crate) fn arguments(&self) -> &[OsString] {
        self.command.get(1..).unwrap_or_default()
    }
}

fn words(name: &str, line: &str) -> Result<Vec<OsString>, LabError> {
    let words = split(line)
        .map_err(|what| LabError::Usage(format!("the command of variant {name} {what}: {line}")))?;
    if words.is_empty() {
        return Err(LabError::Usage(format!("variant {name} has no command")));
    }
    Ok(words.into_iter().map(OsString::from).collect())
}

fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let next = letters.next().ok_or("ends with a backslash")?;
                // Between double quotes only these lose their backslash.
                if quote.is_some() && !matches!(next, '"' | '\\' | '$' | '`') {
                    word.get_or_insert_default().push('\\');
                }
                word.get_or_insert_default().push(next);
            }
            (None, blank) if blank.is_whitespace() => words.extend(word.take()),
            (_, other) => word.get_or_insert_default().push(other),
        }
    }
    if quote.is_some() {
        return Err("has a quote that is not closed");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_terminal_can_show() {
        for name in ["direct", "durward, 50 rules", "a|b <c>", "größer"] {
            assert_eq!(check_name(name), Ok(()));
        }
        for name in ["", "a\nb", "\u{1b}[31mred", &"x".repeat(81)] {
            assert!(check_name(name).is_err(), "{name:?}");
            assert!(Variant::parse(name, "true", VariantTransport::Stdio).is_err());
        }
    }

    #[test]
    fn arms_over_http() {
        let parse = |line| Variant::parse("a", line, VariantTransport::Http);
        let arm = parse("http://h:1/x").unwrap();
        assert_eq!((arm.url(), arm.command().len()), (Some("http://h:1/x"), 0));
        let arm = parse("http://127.0.0.1:{port}/x -- serve --at {port} --to {direct}").unwrap();
        assert!(arm.wants_port() && arm.wants_direct());
        let arm = arm.at_port(Some(80)).behind("http://d/");
        assert_eq!(arm.url(), Some("http://127.0.0.1:80/x"));
        assert_eq!(arm.command(), ["serve", "--at", "80", "--to", "http://d/"]);
        assert!(!arm.wants_port() && !arm.wants_direct());
        let arm = parse("serve --at {port}").unwrap();
        assert_eq!(arm.url(), Some("http://127.0.0.1:{port}/mcp"));
        assert_eq!(parse("serve").unwrap().url(), None);
        for line in [
            "https://h/",
            "http://",
            "http://h:{port}/",
            "",
            "http://h:{port}/ -- 'x",
        ] {
            assert!(matches!(parse(line), Err(LabError::Usage(_))), "{line}");
        }
        let stdio = Variant::parse("a", "http://h/", VariantTransport::Stdio);
        assert!(matches!(stdio, Err(LabError::Usage(_))));
    }

    #[test]
    fn words_as_a_shell_splits_them() {
        for (line, expect) in [
            ("a b  c", &["a", "b", "c"][..]),
            ("a 'b c' \"d e\"", &["a", "b c", "d e"]),
            (r#"a\ b "c\"d" "e\n""#, &["a b", "c\"d", "e\\n"]),
            ("'' x", &["", "x"]),
            (r"'a\b'c", &["a\\bc"]),
            ("  ", &[]),
        ] {
            assert_eq!(split(line).unwrap(), expect, "{line}");
        }
        assert!(split("a 'b").is_err());
        assert!(split("a \\").is_err());
    }
}
