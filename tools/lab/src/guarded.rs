//! Arms that the lab makes itself: a command behind `durward run`, with rules and a state directory that
//! are gone afterwards.

use crate::LabContext;
use crate::error::LabError;
use crate::variant::Variant;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Where such directories are made. The rules of the access proxy's paper name /tmp, so files that they are
/// to let through must be there.
const BASE: &str = "/tmp";

/// One server behind `durward run`.
const RUN: [&str; 3] = ["run", "--name", "mock"];
/// Limits stay in force; a measurement asks for more than an ordinary agent may, and more often for a person.
const RAISED_LIMITS: [&str; 14] = [
    "--limit-requests",
    "1000000/s",
    "--limit-burst",
    "1000000",
    "--limit-tool-calls",
    "1000000",
    "--limit-concurrency",
    "1024",
    "--approval-timeout",
    "300",
    "--approval-waiting-max",
    "256",
    "--approval-per-minute",
    "100000",
];

/// A directory of its own, removed when dropped.
#[derive(Debug)]
pub(crate) struct GuardedDirectory {
    root: PathBuf,
    lab_binary: PathBuf,
    guard_binary: PathBuf,
}

impl GuardedDirectory {
    /// Makes the directory.
    pub(crate) fn set(context: &LabContext) -> Result<Self, LabError> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let moment = since.map_or(0, |d| d.as_nanos());
        let name = format!("durward-lab-{}-{moment}", std::process::id());
        let root = Path::new(BASE).join(name);
        // `create_dir` refuses what exists already, a link included.
        fs::create_dir(&root).map_err(|source| LabError::path(&root, source))?;
        Ok(Self {
            root,
            lab_binary: context.lab_binary.clone(),
            guard_binary: context.guard_binary.clone(),
        })
    }

    /// Returns a place for a file or directory in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns the programs of the lab and of the guard.
    pub(crate) fn binaries(&self) -> [&Path; 2] {
        [&self.lab_binary, &self.guard_binary]
    }

    /// Returns a command of the lab.
    pub(crate) fn own(&self, words: &[&str]) -> Vec<OsString> {
        std::iter::once(self.lab_binary.clone().into())
            .chain(words.iter().map(OsString::from))
            .collect()
    }

    /// Returns the directory in which the variant of this name keeps its journal and keys.
    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.file(&format!("state-{}", slug(name)))
    }

    /// Returns a server behind `durward run` with these rules, its journal on.
    pub(crate) fn guard(
        &self,
        name: &str,
        rules: &Value,
        behind: GuardedBackend<'_>,
    ) -> Result<Variant, LabError> {
        let words = self.guard_command(name, &RUN, rules)?;
        Ok(self.run(name, words, behind))
    }

    /// Returns the same with this configuration, and with these flags of `durward run`.
    pub(crate) fn guard_configured(
        &self,
        name: &str,
        rules: &Value,
        behind: GuardedBackend<'_>,
        (configuration, flags): (&Value, &[OsString]),
    ) -> Result<Variant, LabError> {
        let before = self.configured(name, configuration)?;
        let mut words = self.guard_command_with(&before, name, &RUN, rules)?;
        words.extend(flags.iter().cloned());
        Ok(self.run(name, words, behind))
    }

    fn run(&self, name: &str, mut words: Vec<OsString>, behind: GuardedBackend<'_>) -> Variant {
        match behind {
            GuardedBackend::Command(command) => {
                words.push("--".into());
                words.extend(command.iter().cloned());
            }
            GuardedBackend::Url(url) => words.extend(["--url", url].map(OsString::from)),
        }
        self.placed(name, Variant::new(name, words))
    }

    /// Returns the words that name a configuration file, which is written.
    fn configured(&self, name: &str, configuration: &Value) -> Result<[OsString; 2], LabError> {
        let file = self.file(&format!("durward-{}.yaml", slug(name)));
        // JSON is YAML.
        fs::write(&file, configuration.to_string())
            .map_err(|source| LabError::path(&file, source))?;
        Ok(["--config".into(), file.into()])
    }

    /// Returns a server behind `durward serve` with these rules, its journal on; spoken to over HTTP.
    pub(crate) fn serve(
        &self,
        name: &str,
        rules: &Value,
        behind: GuardedBackend<'_>,
    ) -> Result<Variant, LabError> {
        let listen = ["serve", "--listen", "127.0.0.1:{port}"];
        let mut words = self.guard_command(name, &listen, rules)?;
        let server = match behind {
            GuardedBackend::Command(command) => quote_words(command),
            GuardedBackend::Url(url) => url.to_owned(),
        };
        words.extend(["--server".into(), format!("mock={server}").into()]);
        let arm = Variant::new(name, words).over_http(Some("http://127.0.0.1:{port}/mcp/mock"));
        Ok(self.placed(name, arm))
    }

    /// Servers behind `durward serve` with these rules, its journal on; spoken to at the URL of all of them.
    pub(crate) fn serve_all(
        &self,
        name: &str,
        rules: &Value,
        servers: &[(String, Vec<OsString>)],
    ) -> Result<Variant, LabError> {
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        let row = |(name, command): &(String, Vec<OsString>)| {
            let mut words = command.iter().map(text);
            let program = words.next().unwrap_or_default();
            let args: Vec<String> = words.collect();
            (name.clone(), json!({ "command": program, "args": args }))
        };
        let servers: serde_json::Map<String, Value> = servers.iter().map(row).collect();
        // With several threads, which connections share one decides over what a call costs.
        let listen = ["serve", "--listen", "127.0.0.1:{port}", "--threads", "1"];
        let before = self.configured(name, &json!({ "servers": servers }))?;
        let words = self.guard_command_with(&before, name, &listen, rules)?;
        let arm = Variant::new(name, words).over_http(Some("http://127.0.0.1:{port}/mcp"));
        Ok(self.placed(name, arm))
    }

    /// Returns a variant with its journal and control socket in its state directory.
    fn placed(&self, name: &str, arm: Variant) -> Variant {
        arm.with_journal(self.state(name).join("journal"))
            .with_control(self.state(name).join("run"))
            .at_home_in(self.state(name))
    }

    /// Returns a command of our own binary with rules, a state directory and limits beyond what is asked for.
    fn guard_command(
        &self,
        name: &str,
        command: &[&str],
        rules: &Value,
    ) -> Result<Vec<OsString>, LabError> {
        self.guard_command_with(&["--no-config".into()], name, command, rules)
    }

    /// Returns the same with these words in front, which say what is configured.
    fn guard_command_with(
        &self,
        configured: &[OsString],
        name: &str,
        command: &[&str],
        rules: &Value,
    ) -> Result<Vec<OsString>, LabError> {
        let policy = self.file(&format!("policy-{}.json", slug(name)));
        fs::write(&policy, rules.to_string()).map_err(|source| LabError::path(&policy, source))?;
        let mut words: Vec<OsString> = vec![self.guard_binary.clone().into()];
        words.extend(configured.iter().cloned());
        words.extend(["--state-dir".into(), self.state(name).into()]);
        words.extend(command.iter().map(OsString::from));
        words.extend(["--policy".into(), policy.into()]);
        words.extend(RAISED_LIMITS.map(OsString::from));
        Ok(words)
    }

    /// Returns a process between a client over stdio and the first variant over HTTP that only moves frames.
    pub(crate) fn bridge(&self) -> Variant {
        Variant::new(
            "bare bridge",
            self.own(&["mock", "bridge", "--url", "{direct}"]),
        )
    }
}

/// Server behind a variant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GuardedBackend<'a> {
    /// A server that is started and spoken to over stdio.
    Command(&'a [OsString]),
    /// A server over HTTP.
    Url(&'a str),
}

/// Words in one text that is split into the same words again.
fn quote_words(words: &[OsString]) -> String {
    let quote = |word: &OsString| format!("'{}'", word.to_string_lossy().replace('\'', "'\"'\"'"));
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Returns a name that needs no quotes.
pub(crate) fn slug(name: &str) -> String {
    let mut slug: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .collect();
    while slug.contains("--") {
        slug = slug.replace("--", "-");
    }
    slug
}

impl Drop for GuardedDirectory {
    fn drop(&mut self) {
        // What cannot be removed is small and lies in a directory for temporary files.
        let _ = fs::remove_dir_all(&self.root);
    }
}
