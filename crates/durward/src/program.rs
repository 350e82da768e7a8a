//! Whether a server's program is there, before it is started: a mistyped name is told at once.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

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
}
