//! The policy that a command is about: a file, or a shipped one.

use std::fs::File;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use gate::policy::Policy;
use gate::policy::load::POLICY_BYTES_MAX;
use toolkit::files::unreadable;

use super::{Context, Failure};
use crate::config::agents::AgentsSection;
use crate::config::is_ours;
use crate::local::LocalView;
use crate::places::Places;
pub use crate::policy_source::{PolicySource, ShippedPolicy};

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

impl PolicySource {
    /// Loads the policy.
    ///
    /// # Errors
    /// A message that names the file, with line and column where the text is at fault.
    pub fn load(&self, protected: Protected, places: &Places) -> Result<Policy, String> {
        match self {
            Self::File(file) => of_file(file, protected, places),
            Self::Shipped(shipped) => {
                compile(&shipped.text(), shipped.name(), None, protected, places)
            }
        }
    }

    /// Returns the text of the policy.
    ///
    /// # Errors
    /// A message that names the file.
    pub fn text(&self, places: &Places) -> Result<String, String> {
        match self {
            Self::File(file) => rules(file, places),
            Self::Shipped(shipped) => Ok(shipped.text().into_owned()),
        }
    }
}

/// Returns a policy narrowed by the permissions of agents.
///
/// # Errors
/// A message about a permission that is no rule.
pub fn narrow_policy(policy: Policy, agents: &AgentsSection) -> Result<Policy, String> {
    match agents.rules() {
        Some(rules) => policy
            .narrowed_by(&rules)
            .map_err(|error| format!("permissions of agents: {}", error.message)),
        None => Ok(policy),
    }
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
    let source = match file {
        Some(file) => PolicySource::File(file.to_path_buf()),
        None => configured(server, context, err),
    };
    let policy = source.load(protected, context.places);
    policy.map_err(Failure::Configuration)
}

/// Returns the policy that applies by the configuration, and names it on `err`.
pub(super) fn configured(
    server: Option<&str>,
    context: &Context<'_>,
    err: &mut dyn Write,
) -> PolicySource {
    let settings = context.settings;
    let server = server.and_then(|name| settings.server(name));
    let (source, _) = settings.policy_of(server);
    // The answer is given even if standard error is gone.
    let _ = match &source {
        PolicySource::File(file) => writeln!(
            err,
            "durward: no --policy given; using the policy of the configuration, {}",
            file.display()
        ),
        PolicySource::Shipped(shipped) => {
            let name = shipped.name();
            writeln!(err, "durward: no --policy given; using the {name}")
        }
    };
    source
}

/// Loads the policy in a file.
///
/// # Errors
/// A message that names the file, with line and column where the text is at fault.
pub fn of_file(file: &Path, protected: Protected, places: &Places) -> Result<Policy, String> {
    let name = file.display().to_string();
    compile(&rules(file, places)?, &name, Some(file), protected, places)
}

/// Compiles the text of a policy for this machine.
///
/// # Errors
/// A message that begins with `name`, with line and column of the fault.
pub(super) fn compile(
    text: &str,
    name: &str,
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
    let policy = Policy::load(text, Some(&view), &closed);
    let policy = policy.map_err(|error| format!("{name}: {error}"))?;
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
