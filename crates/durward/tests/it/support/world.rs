//! One world per test: a folder under `/tmp`, another one far from it, a home with an accented name, and the
//! binary that knows no other place.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use mcp::client::Options;

pub use super::program::binary;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The home's name, composed (NFC) and decomposed (NFD).
const HOME_NAME: &str = "hom\u{e9}";
const HOME_NAME_NFD: &str = "home\u{301}";

/// Folders and variables of one run. Dropping it removes the folders.
pub struct World {
    /// What servers work on, under `/tmp`, where the policies of the tables allow things.
    pub tmp: PathBuf,
    /// Outside of what any policy allows; it holds the home.
    pub far: PathBuf,
    /// The policy file, if one was given: a copy inside `far`.
    pub policy: Option<PathBuf>,
}

impl World {
    /// A fresh world. `policy` is the text of a policy file.
    pub fn new(policy: Option<&str>) -> Self {
        let name = format!(
            "durward-test-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let mut world = Self {
            tmp: Path::new("/tmp").join(&name),
            far: Path::new("/var/tmp").join(&name),
            policy: None,
        };
        for folder in [&world.tmp, &world.far] {
            let _ = fs::remove_dir_all(folder);
            fs::create_dir_all(folder).unwrap();
        }
        for folder in [world.state(), world.config(), world.runtime()] {
            fs::create_dir_all(folder).unwrap();
        }
        if let Some(text) = policy {
            let path = world.far.join("policy.json");
            fs::write(&path, text).unwrap();
            world.policy = Some(path);
        }
        world.furnish();
        world
    }

    /// Files, folders and links that the tables speak of.
    fn furnish(&self) {
        let folders = [
            "dir",
            "scratch/review",
            "scratch/.git",
            "archive",
            "frozen",
            "pinned",
            "docs",
            ".ssh",
            ".git",
            "geheim-\u{e9}",
            "tr\u{e9}sor",
        ];
        for folder in folders {
            fs::create_dir_all(self.tmp.join(folder)).unwrap();
        }
        let files = [
            "a.txt",
            "b.txt",
            "k.pem",
            ".env",
            "x.env.txt",
            "move-me.txt",
            "one-level.txt",
            "part-1.bin",
            "part-12.bin",
            "dir/inner.txt",
            "dir/one-level.txt",
            "dir/old.bak",
            "dir/pixel.png",
            "scratch/draft.txt",
            "pinned/p.txt",
            "frozen/f.txt",
            "docs/d.txt",
            ".git/config",
            "geheim-\u{e9}/x.txt",
            "tr\u{e9}sor/x.txt",
        ];
        for file in files {
            fs::write(self.tmp.join(file), "alpha\n").unwrap();
        }
        fs::write(self.far.join("x.txt"), "far\n").unwrap();
        let links = [
            ("link-to-a", self.tmp.join("a.txt")),
            ("link-to-pem.txt", self.tmp.join("k.pem")),
            ("link-to-composed", self.tmp.join("geheim-\u{e9}")),
            ("link-to-state", self.state()),
            ("link-to-far", self.far.clone()),
            ("link-to-nothing", self.far.join("nothing")),
            ("link-to-etc", PathBuf::from("/etc")),
        ];
        for (name, target) in links {
            symlink(target, self.tmp.join(name)).unwrap();
        }
    }

    pub fn home(&self) -> PathBuf {
        self.far.join(HOME_NAME)
    }

    /// Durward's state folder, which holds the journal.
    pub fn state(&self) -> PathBuf {
        self.home().join(".local/state/durward")
    }

    /// Durward's configuration folder.
    pub fn config(&self) -> PathBuf {
        self.home().join(".config/durward")
    }

    /// Where instances of this world have their sockets, in a folder `durward`.
    pub fn runtime(&self) -> PathBuf {
        self.far.join("run")
    }

    /// The variables that place everything of Durward's inside this world.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        vec![
            ("HOME".to_owned(), text(self.home())),
            (
                "XDG_STATE_HOME".to_owned(),
                text(self.home().join(".local/state")),
            ),
            (
                "XDG_CONFIG_HOME".to_owned(),
                text(self.home().join(".config")),
            ),
            ("XDG_RUNTIME_DIR".to_owned(), text(self.runtime())),
        ]
    }

    /// How to start a process in this world, with its working folder under `/tmp`.
    pub fn options(&self) -> Options {
        let env = self
            .environment()
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Options {
            env,
            cwd: Some(self.tmp.clone()),
            ..Options::default()
        }
    }

    /// Runs the binary to its end.
    pub fn durward(&self, args: &[&str]) -> Output {
        Command::new(binary())
            .args(args)
            .envs(self.environment())
            .current_dir(&self.tmp)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// `{NAME}` in a text of a table, replaced by a place of this world.
    pub fn fill(&self, text: &str) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        let state = self.state().to_str().unwrap().to_owned();
        let up = "../".repeat(self.tmp.components().count() - 1);
        let policy = self.policy.as_deref().unwrap_or(Path::new("/no/policy"));
        [
            ("{TMP}", self.tmp.to_str().unwrap()),
            ("{FAR}", self.far.to_str().unwrap()),
            ("{HOME}", self.home().to_str().unwrap()),
            ("{STATE}", &state),
            ("{STATE_NFD}", &state.replace(HOME_NAME, HOME_NAME_NFD)),
            ("{CONFIG}", self.config().to_str().unwrap()),
            ("{POLICY}", policy.to_str().unwrap()),
            ("{BINARY}", binary()),
            // From the working folder up to the root; what follows begins with a slash.
            ("{UP}", up.trim_end_matches('/')),
        ]
        .iter()
        .fold(text.to_owned(), |text, (name, place)| {
            text.replace(name, place)
        })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.tmp);
        let _ = fs::remove_dir_all(&self.far);
    }
}
