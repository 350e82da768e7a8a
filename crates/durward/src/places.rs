//! Where things are. The only module that reads the environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use admin::StatePaths;
use net::confine::Confine;
use toolkit::files::GuardedFiles;

use crate::directories::OpenDirectories;

use crate::verify::Verify;

/// With less room than this on the journal's disk the operator is warned, where the configuration says nothing else, in bytes.
pub const WARN_BELOW_DEFAULT: u64 = 1 << 30;

/// Directories and files of this user.
#[derive(Debug, Clone)]
pub struct Places {
    /// Journal, keys.
    pub state: PathBuf,
    /// Configuration.
    pub config: PathBuf,
    /// Where running instances have their control sockets: ours goes into the first.
    pub runtime: Vec<PathBuf>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Whether nobody has said where to keep journal and keys: no flag, no key, no home.
    pub is_homeless: bool,
    /// This program.
    pub own_binary: PathBuf,
    /// The user's name.
    pub user: String,
    /// Where we were started.
    pub current: Option<PathBuf>,
    /// Files that the configuration and the command line are made of, name or run.
    pub guarded: GuardedFiles,
    /// The directories of rules and settings that were read.
    pub directories: Arc<OpenDirectories>,
    /// The file that is given each head of the journal, where one is configured.
    pub witness: Option<PathBuf>,
    /// What a start does about closed segments of the journal.
    pub verify: Verify,
    /// With less room than this on the journal's disk the operator is warned, in bytes.
    pub warn_below: u64,
    /// How large the journal may become before its oldest segments go, in bytes. `None`: they stay.
    pub retain: Option<u64>,
    /// How many files children may have open, where we have raised our own limit.
    pub files_of_children: Option<u64>,
    /// Whether servers are kept off these places by the kernel.
    pub confine: Confine,
}

/// Stands for a directory that nobody has named; it cannot be made.
const NOWHERE: &str = "/dev/null/durward";

impl Places {
    /// Finds them: the flag first, then the XDG variables, then their defaults.
    pub fn find(state: Option<PathBuf>, own_binary: PathBuf) -> Self {
        let home = variable("HOME")
            .map(PathBuf::from)
            .filter(|p| p.is_absolute());
        let below_home = |path: &str| home.as_ref().map(|h| h.join(path));
        let base = |name: &str, default: &str| {
            variable(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
                .or_else(|| below_home(default))
        };
        let current = std::env::current_dir().ok();
        let state =
            state.or_else(|| base("XDG_STATE_HOME", ".local/state").map(|p| p.join("durward")));
        let is_homeless = state.is_none();
        // Nothing is kept there: commands that keep something end first.
        let state = state.unwrap_or_else(|| PathBuf::from(NOWHERE));
        let state = current
            .as_ref()
            .map_or(state.clone(), |current| current.join(&state));
        Self {
            config: base("XDG_CONFIG_HOME", ".config")
                .map_or_else(|| state.join("config"), |p| p.join("durward")),
            runtime: runtime(&state),
            home,
            is_homeless,
            state,
            own_binary,
            user: user(),
            current,
            guarded: GuardedFiles::default(),
            directories: Arc::default(),
            witness: None,
            verify: Verify::Stop,
            warn_below: WARN_BELOW_DEFAULT,
            retain: None,
            files_of_children: None,
            confine: Confine::default(),
        }
    }

    /// Keeps state there, and looks for instances beside it.
    pub fn keep_state_in(&mut self, state: &Path) {
        self.state = state.to_path_buf();
        self.is_homeless = false;
        self.runtime = runtime(state);
    }

    /// What stands where the state directory, or one above it, would have to be, and is no directory.
    pub fn file_in_the_way(&self) -> Option<&Path> {
        let there = |path: &&Path| std::fs::metadata(path).is_ok();
        let nearest = self.state.ancestors().find(there)?;
        (!nearest.is_dir()).then_some(nearest)
    }

    /// A path as seen from where we were started.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.current
            .as_ref()
            .map_or_else(|| path.to_path_buf(), |current| current.join(path))
    }

    /// Returns the paths that operations take.
    pub fn paths(&self) -> StatePaths {
        StatePaths {
            state: self.state.clone(),
            config: self.config.clone(),
            runtime: self.runtime.clone(),
            witness: self.witness.clone(),
        }
    }

    /// Returns the state directory without links, so that two processes can tell whether theirs is the same.
    pub fn real_state(&self) -> PathBuf {
        self.paths().real_state()
    }

    /// The journal's directory.
    pub fn journal(&self) -> PathBuf {
        self.paths().journal()
    }

    /// The key directory.
    pub fn keys(&self) -> PathBuf {
        self.paths().keys()
    }

    /// The directory of approved definitions.
    pub fn pins(&self) -> PathBuf {
        self.paths().pins()
    }

    /// Where the built-in server of this name keeps things.
    pub fn built_in(&self, name: &str) -> PathBuf {
        self.state.join("servers").join(name)
    }

    /// What no call may touch.
    pub fn protected(&self, policy: Option<&Path>) -> Vec<String> {
        let mut out: Vec<&Path> = vec![&self.state, &self.config, &self.own_binary];
        out.extend(self.runtime.iter().map(PathBuf::as_path));
        out.extend(self.guarded.closed.iter().map(PathBuf::as_path));
        out.extend(policy);
        out.iter()
            .map(|path| path.to_string_lossy().into_owned())
            .collect()
    }

    /// What calls may read and not change.
    pub fn read_only(&self) -> Vec<String> {
        let files = self.guarded.read_only.iter();
        files
            .map(|path| path.to_string_lossy().into_owned())
            .collect()
    }
}

/// Where control sockets may be. An instance that a desktop program started without the session's
/// variables uses the state directory; whoever looks for it may have them, so all places are looked at.
fn runtime(state: &Path) -> Vec<PathBuf> {
    let session = variable("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute() && path.is_dir());
    let uid = rustix::process::getuid().as_raw();
    let usual = PathBuf::from(format!("/run/user/{uid}"));
    let below = |path: PathBuf| path.join("durward");
    let mut out: Vec<PathBuf> = session.map(below).into_iter().collect();
    out.push(state.join("run"));
    if out.len() == 1 && usual.is_dir() {
        out.push(below(usual));
    }
    out
}

/// The environment, for a child's allow-list.
pub fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// This program's own file.
pub fn own_binary() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("durward"))
}

/// The text of a variable that a file of the operator's names.
pub fn text_of(name: &str) -> Option<String> {
    variable(name)?.into_string().ok()
}

/// A path that a variable names, if it is set.
pub fn named_by(name: &str) -> Option<PathBuf> {
    variable(name).map(PathBuf::from)
}

/// A variable of the environment; absent where it is not set or empty.
#[expect(
    clippy::disallowed_methods,
    reason = "this module is where the binary reads the environment"
)]
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The local user: the name where the environment has one, with the number that the kernel knows.
fn user() -> String {
    let uid = rustix::process::getuid().as_raw();
    let name = variable("USER")
        .or_else(|| variable("LOGNAME"))
        .and_then(|name| name.into_string().ok());
    name.unwrap_or_else(|| format!("uid:{uid}"))
}

/// Where programs are looked for, as far as the environment says.
pub fn search_path() -> Option<OsString> {
    variable("PATH")
}
