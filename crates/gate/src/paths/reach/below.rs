//! Calls that read a directory with all that lies below it.

use crate::memo::Memo;
use crate::words::words;

/// Words of tool names that say so.
const TOOLS: [&str; 27] = [
    "tree",
    "recursive",
    "recursively",
    "recurse",
    "search",
    "find",
    "grep",
    "ripgrep",
    "rg",
    "glob",
    "walk",
    "crawl",
    "index",
    "scan",
    "archive",
    "zip",
    "tar",
    "compress",
    "backup",
    "sync",
    "rsync",
    "copy",
    "cp",
    "upload",
    "pack",
    "bundle",
    "du",
];
/// Members of arguments that say so.
const MEMBERS: [&str; 5] = [
    "\"recursive\": true",
    "\"recursive\":true",
    "\"Recursive\":true",
    "\"recurse\":true",
    "\"recursively\":true",
];
/// Words of commands that say so.
const COMMANDS: [&str; 14] = [
    "-r",
    "-R",
    "-a",
    "-rf",
    "-lR",
    "-laR",
    "--recursive",
    "find",
    "tree",
    "tar",
    "zip",
    "rsync",
    "du",
    "rg",
];

/// Whether a call reads what lies below its places: by its tool's name, or by its arguments in their
/// canonical spelling.
#[must_use]
pub fn reads_below(tool: &str, arguments: &str) -> bool {
    thread_local! {
        static BY_NAME: Memo<bool> = Memo::default();
    }
    let says_so = |tool: &str| {
        let words = words(tool);
        words.iter().any(|word| TOOLS.contains(&word.as_str()))
    };
    BY_NAME.with(|names| names.of(tool, says_so))
        || MEMBERS.iter().any(|member| arguments.contains(member))
}

/// Whether a command does.
pub(super) fn command_reads_below(command: &str) -> bool {
    command
        .split(|c: char| c.is_whitespace() || "|;&()".contains(c))
        .any(|word| COMMANDS.contains(&word.rsplit('/').next().unwrap_or(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j12_recursive_reads_are_known_by_their_names_and_arguments() {
        for (tool, arguments) in [
            ("directory_tree", "{}"),
            ("search_files", "{}"),
            ("listFiles", r#"{"path":"/","recursive":true}"#),
            ("grep", "{}"),
        ] {
            assert!(reads_below(tool, arguments), "{tool}");
        }
        for (tool, arguments) in [
            ("read_file", r#"{"path":"recursive"}"#),
            ("list_directory", r#"{"path":"/","recursive":false}"#),
            ("x", r#"{"text":"\"recursive\":true"}"#),
        ] {
            assert!(!reads_below(tool, arguments), "{tool}");
        }
        assert!(command_reads_below("/usr/bin/find / -name x"));
        assert!(command_reads_below("grep -r x /srv"));
        assert!(!command_reads_below("cat /srv/find.txt"));
    }
}
