//! Whether a server's program is there, before it is started: a mistyped name is told at once.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::means::Command;
use crate::places;

/// What is wrong with the program of a command that is not there; none where it is, or where that cannot be told.
pub fn missing(command: &Command) -> Option<String> {
    if command.environment.iter().any(|extra| extra.name == "PATH") {
        return None;
    }
    let search = places::search_path()?;
    let directory = command.directory.as_deref();
    if is_there(&command.program, directory, &search) {
        return None;
    }
    let shown = command.program.to_string_lossy();
    let where_looked = if shown.contains('/') {
        ""
    } else {
        " on the PATH"
    };
    Some(format!(
        "there is no command \"{}\"{where_looked}; check the spelling of the server's command",
        shown.escape_debug()
    ))
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

    fn told(words: &[&str]) -> Option<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        missing(&Command::of_words(&words).unwrap())
    }

    #[test]
    fn a_mistyped_command_is_named() {
        assert_eq!(told(&["sh", "-c", "true"]), None);
        assert_eq!(told(&["/bin/sh"]), None);
        assert!(
            told(&["nosuchcmd"])
                .unwrap()
                .contains("\"nosuchcmd\" on the PATH")
        );
        assert!(
            told(&["/no/such/program"])
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
}
