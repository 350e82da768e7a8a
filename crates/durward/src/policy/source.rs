//! The policy that a command is about: a file, or the starter policy.

use std::fs::File;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use gate::policy::Policy;
use gate::policy::load::POLICY_BYTES_MAX;
use gate::policy::starter::STARTER_POLICY;
use toolkit::files::unreadable;

use super::{Context, Failure};
use crate::config::is_ours;
use crate::local::LocalView;
use crate::places::Places;

/// Which policy.
#[derive(Debug, Args)]
pub struct PolicyFile {
    /// The rules, as JSON [default: the configuration's, else the starter policy]
    #[arg(
        long,
        value_name = "FILE",
        env = "DURWARD_POLICY",
        hide_env_values = true
    )]
    pub policy: Option<PathBuf>,
}

/// What the policy takes for protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protected {
    /// What `durward run` protects with this policy.
    AsRun,
    /// Nothing: the recorded decisions say what was.
    Nothing,
}

/// Loads a policy: the file that was given, else the one that the configuration names (for this server,
/// where it is one of the configuration's), else the starter policy. Says on `err` which, where none
/// was given.
pub(super) fn load(
    file: Option<&Path>,
    server: Option<&str>,
    protected: Protected,
    context: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Policy, Failure> {
    let file = file.or_else(|| configured(server, context, err));
    of_file(file, protected, context.places).map_err(Failure::Configuration)
}

/// The policy that the configuration names, told on `err`; so is that it names none.
pub(super) fn configured<'c>(
    server: Option<&str>,
    context: &Context<'c>,
    err: &mut dyn Write,
) -> Option<&'c Path> {
    let settings = context.settings;
    let server = server.and_then(|name| settings.server(name));
    let (file, _) = settings.policy_of(server);
    // Where standard error is gone, the answer still stands.
    let _ = match file {
        Some(file) => writeln!(
            err,
            "durward: no --policy given; using the policy of the configuration, {}",
            file.display()
        ),
        None => writeln!(err, "durward: no --policy given; using the starter policy"),
    };
    file
}

/// Loads the policy in a file, or the starter policy.
///
/// # Errors
/// A message that names the file, with line and column where the text is at fault.
pub fn of_file(
    file: Option<&Path>,
    protected: Protected,
    places: &Places,
) -> Result<Policy, String> {
    match file {
        Some(file) => compile(&rules(file, places)?, Some(file), protected, places),
        None => compile(STARTER_POLICY, None, protected, places),
    }
}

/// Compiles the text of a policy for this machine.
///
/// # Errors
/// As [`of_file`].
pub fn compile(
    text: &str,
    file: Option<&Path>,
    protected: Protected,
    places: &Places,
) -> Result<Policy, String> {
    let (closed, read_only) = match protected {
        Protected::AsRun => (
            places.protected(file.map(|f| places.absolute(f)).as_deref()),
            places.read_only(),
        ),
        Protected::Nothing => <_>::default(),
    };
    let view = LocalView::new(places);
    let policy = Policy::load(text, Some(&view), &closed).map_err(|error| {
        let name = file.map_or_else(|| "starter policy".into(), |f| f.display().to_string());
        format!("{name}: {error}")
    })?;
    Ok(policy.with_read_only(&read_only, Some(&view)))
}

/// The text of a file of rules, if it can be trusted: it is read again whenever it changes.
fn rules(file: &Path, places: &Places) -> Result<String, String> {
    if matches!(file.try_exists(), Ok(false)) {
        return Err(format!(
            "{}: there is no such file\n  hint: `durward policy init` writes a policy to start from",
            file.display()
        ));
    }
    let failed = |why: String| unread(file, &why);
    let opened = places.directories.open(&places.absolute(file));
    let (open, found) = opened.map_err(failed)?;
    is_ours(&found, "could make it allow any call").map_err(failed)?;
    read(open, file)
}

/// The text of a file that is no longer than a policy may be.
///
/// # Errors
/// A message that names the file.
pub fn text(file: &Path) -> Result<String, String> {
    let open = File::open(file).map_err(|error| unread(file, &unreadable(&error)))?;
    read(open, file)
}

fn unread(file: &Path, why: &str) -> String {
    format!("{}: {why}", file.display())
}

fn read(open: File, file: &Path) -> Result<String, String> {
    let failed = |why: &dyn std::fmt::Display| unread(file, &why.to_string());
    let mut bytes = Vec::new();
    open.take(POLICY_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(&unreadable(&error)))?;
    if bytes.len() > POLICY_BYTES_MAX {
        return Err(failed(&"the file is longer than 8 MiB"));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(failed(&"the file is empty"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        failed(&format!("byte {at} is not UTF-8; save the file as UTF-8"))
    })
}
