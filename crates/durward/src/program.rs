//! Programs that are started: whether one is there (a mistyped name is reported at once), where it is found, and which
//! of its files must not change.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::places;

/// What is wrong with a server's program that is not there, neither in the directory where the server starts nor
/// in those of `search` (a `PATH`).
pub fn missing(program: &OsStr, directory: Option<&Path>, search: &OsStr) -> Option<String> {
    if is_there(program, directory, search) {
        return None;
    }
    let shown = program.to_string_lossy();
    let place = if shown.contains('/') {
        ""
    } else {
        " on the PATH"
    };
    Some(format!(
        "there is no command \"{}\"{place}; check the spelling of the server's command",
        shown.escape_debug()
    ))
}

/// Programs whose first operand is the file that they run.
const INTERPRETERS: [&str; 13] = [
    "sh", "bash", "dash", "zsh", "python", "pypy", "node", "bun", "deno", "ruby", "perl", "php",
    "java",
];
/// Options after which an interpreter runs no file: a module, or a text.
const RUNS_NO_FILE: [&str; 6] = ["-m", "-c", "-e", "--eval", "-p", "--print"];
/// Where a system keeps the programs of its packages, which root alone changes.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix", "/snap"];
/// Below the system's directories, but the administrator's own.
const LOCAL: &str = "/usr/local";

/// Returns the files that a command runs, where they are named by path: the program, and the script of an interpreter.
/// Files that this user cannot change, and programs of the system's packages, are left out. `directory` is where the
/// command starts.
pub fn files(words: &[&OsStr], directory: Option<&Path>) -> Vec<PathBuf> {
    let Some((program, arguments)) = words.split_first() else {
        return Vec::new();
    };
    let at = |word: &OsStr| match directory {
        Some(directory) => directory.join(word),
        None => PathBuf::from(word),
    };
    let mut files = Vec::new();
    if program.to_string_lossy().contains('/') {
        files.push(at(program));
    }
    files.extend(
        script(program, arguments)
            .map(at)
            .filter(|path| path.is_file()),
    );
    files.retain(|path| may_be_changed(path));
    files
}

/// Returns the file that an interpreter would run.
fn script<'w>(program: &OsStr, arguments: &[&'w OsStr]) -> Option<&'w OsStr> {
    let name = Path::new(program).file_name()?.to_string_lossy();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !INTERPRETERS.contains(&name) {
        return None;
    }
    let mut operands = arguments.iter().filter(|word| ***word != *"run");
    let first = operands.find(|word| {
        let word = word.to_string_lossy();
        !word.starts_with('-') || RUNS_NO_FILE.contains(&&*word)
    })?;
    (!first.to_string_lossy().starts_with('-')).then_some(*first)
}

/// Whether this user could put another file in its place.
fn may_be_changed(path: &Path) -> bool {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_writable = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
    let is_of_system = |path: &Path| {
        !path.starts_with(LOCAL) && SYSTEM.iter().any(|system| path.starts_with(system))
    };
    let both = [path, real.as_path()];
    both.iter().any(|path| {
        let folder = path.parent().unwrap_or(Path::new("/"));
        !is_of_system(path) && (is_writable(path) || is_writable(folder))
    })
}

/// Returns where a program of this name is found first; a program with a path is left to the caller.
pub fn found(program: &OsStr) -> Option<PathBuf> {
    if program.to_string_lossy().contains('/') {
        return None;
    }
    let search = places::search_path()?;
    let runs = |path: &PathBuf| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    std::env::split_paths(&search)
        .map(|folder| folder.join(program))
        .find(runs)
}

fn is_there(program: &OsStr, directory: Option<&Path>, search: &OsStr) -> bool {
    let below = |path: &Path| match directory {
        Some(directory) => directory.join(path).is_file(),
        None => path.is_file(),
    };
    if program.to_string_lossy().contains('/') {
        return below(Path::new(program));
    }
    std::env::split_paths(search).any(|folder: PathBuf| below(&folder.join(program)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_command_is_named() {
        let told = |program: &str| missing(program.as_ref(), None, "/usr/bin:/bin".as_ref());
        assert_eq!(told("sh"), None);
        assert_eq!(told("/bin/sh"), None);
        assert!(
            told("nosuchcmd")
                .unwrap()
                .contains("\"nosuchcmd\" on the PATH")
        );
        assert!(
            told("/no/such/program")
                .unwrap()
                .contains("\"/no/such/program\";")
        );
    }

    #[test]
    fn relative_programs_are_looked_for_where_the_server_starts() {
        let search = OsStr::new("/nowhere");
        assert!(is_there("bin/sh".as_ref(), Some(Path::new("/")), search));
        assert!(!is_there(
            "bin/sh".as_ref(),
            Some(Path::new("/nowhere")),
            search
        ));
        assert!(!is_there("sh".as_ref(), None, search));
        assert!(is_there("sh".as_ref(), None, "/nowhere:/bin".as_ref()));
    }

    #[test]
    fn what_a_command_runs_is_found_where_it_is_named_by_path() {
        let folder = std::env::temp_dir().join(format!("program-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["tool", "server.py", "data.db", "server.jar"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        let tool = folder.join("tool");
        let tool = tool.to_str().unwrap();
        for (words, expect) in [
            (&[tool, "data.db"][..], &["tool"][..]),
            (&["./tool"], &["tool"]),
            (
                &["python3.12", "-u", "server.py", "data.db"],
                &["server.py"],
            ),
            (&["/usr/bin/python3", "server.py"], &["server.py"]),
            (&["bun", "run", "server.py"], &["server.py"]),
            (&["java", "-jar", "server.jar"], &["server.jar"]),
            (&["python3", "-m", "module", "data.db"], &[]),
            (&["sh", "-c", "server.py"], &[]),
            (&["npx", "data.db"], &[]),
            (&["/usr/bin/env"], &[]),
            (&["node", "gone.js"], &[]),
            (&[], &[]),
        ] {
            let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
            let files = files(&words, Some(&folder));
            let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap()).collect();
            assert_eq!(names, expect, "{words:?}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
