//! Calls that read a directory with all that lies below it.

use super::literals::read_literals;
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
/// Words of members of arguments that say so, where the value does not say no.
const MEMBERS: [&str; 14] = [
    "recursive",
    "recursively",
    "recurse",
    "recursion",
    "subdir",
    "subdirs",
    "subdirectory",
    "subdirectories",
    "subfolder",
    "subfolders",
    "descend",
    "descendants",
    "traverse",
    "traversal",
];
/// Words of members that say how far down, where the value is more than one step.
const DEPTHS: [&str; 3] = ["depth", "levels", "maxdepth"];
/// In each of these words one of these stands.
const HINTS: [&str; 7] = [
    "recurs", "subdir", "subfold", "descend", "travers", "depth", "levels",
];
/// Texts that a lenient reader takes for no.
const NO: [&str; 10] = [
    "", "false", "f", "no", "n", "off", "0", "none", "null", "never",
];
/// Most strings with JSON within one another that are read.
const NESTED_MAX: usize = 8;
/// Most letters of options that stand together: a longer word is an option of its own.
const OPTIONS_MAX: usize = 5;
/// Words of commands that say so.
const COMMANDS: [&str; 22] = [
    "--recursive",
    "--recurse",
    "--archive",
    "find",
    "fd",
    "fdfind",
    "tree",
    "tar",
    "zip",
    "7z",
    "7za",
    "cpio",
    "pax",
    "rsync",
    "rclone",
    "du",
    "ncdu",
    "rg",
    "ag",
    "ack",
    "rgrep",
    // What lies below goes with it.
    "mv",
];

/// Whether a call reads what lies below its places: by its tool's name, or by its arguments, a JSON text. They
/// need not be given where none of their strings [may say so](may_say_below).
#[must_use]
pub fn reads_below(tool: &str, arguments: &str) -> bool {
    thread_local! {
        static BY_NAME: Memo<bool> = Memo::default();
    }
    let says_so = |tool: &str| {
        let words = words(tool);
        words.iter().any(|word| TOOLS.contains(&word.as_str()))
    };
    BY_NAME.with(|names| names.of(tool, says_so)) || members_say_so(arguments, NESTED_MAX)
}

/// Whether a member of this name, or one in this string, may say that a call reads below its places.
#[must_use]
pub fn may_say_below(text: &str) -> bool {
    thread_local! {
        static BY_TEXT: Memo<bool> = Memo::default();
    }
    let stands = |text: &str, hint: &str| {
        let mut windows = text.as_bytes().windows(hint.len());
        windows.any(|window| window.eq_ignore_ascii_case(hint.as_bytes()))
    };
    let any = |text: &str| HINTS.into_iter().any(|hint| stands(text, hint));
    BY_TEXT.with(|texts| texts.of(text, any))
}

/// Whether a member in a text that some server parses says so.
fn members_say_so(text: &str, depth: usize) -> bool {
    let Some(found) = read_literals(text) else {
        return false;
    };
    let Some(depth) = depth.checked_sub(1) else {
        return may_say_below(text);
    };
    let mut members = found.members.iter();
    found.is_truncated
        || members.any(|(name, value)| member_says_so(name, value))
        || found
            .strings
            .iter()
            .any(|literal| members_say_so(&literal.text, depth))
}

/// Reads a member as leniently as the most lenient server: 1, "true" and "yes" are yes.
fn member_says_so(name: &str, value: &str) -> bool {
    let words = words(name);
    let is = |listed: &[&str]| words.iter().any(|word| listed.contains(&word.as_str()));
    let text = value.trim().to_lowercase();
    let number = text.parse::<f64>().ok();
    let is_no = NO.contains(&text.as_str()) || number.is_some_and(|n| n.abs() < f64::EPSILON);
    let is_one_step = number.is_some_and(|steps| (0.0..=1.0).contains(&steps)) || text == "[";
    !is_no && (is(&MEMBERS) || (is(&DEPTHS) && !is_one_step))
}

/// Whether a command does.
pub(super) fn command_reads_below(command: &str) -> bool {
    let mut parts = command.split(|c: char| "|;&()\n".contains(c));
    parts.any(|part| {
        let mut words = part.split_whitespace();
        // Of `ls`, `-r` is an order.
        let lists = words
            .clone()
            .next()
            .is_some_and(|first| base(first) == "ls");
        words.any(|word| {
            let name = base(word).split('=').next().unwrap_or_default();
            let is_option = word == "--directories=recurse" || is_cluster(word, lists);
            COMMANDS.contains(&name) || is_option
        })
    })
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether a word is options of one letter each, one of which says so: `-r`, `-rn`, `-lR`, `-a`, `-av`.
fn is_cluster(word: &str, lists: bool) -> bool {
    word.strip_prefix('-').is_some_and(|letters| {
        let says_so = letters.contains('R')
            || (!lists && letters.contains('r'))
            || letters == "a"
            || letters.starts_with("av");
        says_so
            && letters.len() <= OPTIONS_MAX
            && letters.bytes().all(|b| b.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursive_reads_are_known_by_their_names_and_arguments() {
        for (tool, arguments) in [
            ("directory_tree", "{}"),
            ("search_files", "{}"),
            ("listFiles", r#"{"path":"/","recursive":true}"#),
            ("list", r#"{"path":"/","recursive":1}"#),
            ("list", r#"{"path":"/","Recursive":"true"}"#),
            ("list", r#"{"path":"/","isRecursive":"YES"}"#),
            ("list", r#"{"path":"/","options":{"recurse":"all"}}"#),
            ("list", r#"{"path":"/","options":"{\"recursive\":true}"}"#),
            ("list", r#"{"path":"/","include_subdirectories":true}"#),
            ("list", r#"{"path":"/","max_depth":3}"#),
            ("list", r#"{"path":"/","depth":"-1"}"#),
            ("list", r#"{"path":"/","recursive":true,"x":1e999}"#),
            (
                "list",
                r#"{"path":"/","x":"{\"recursive\":true,\"x\":NaN}"}"#,
            ),
            ("list", r#"{"path":"/","x":"{'recursive': True}"}"#),
            ("list", r#"{"path":"/","x":"recursive: yes"}"#),
            (
                "list",
                r#"{"path":"/","x":"[{\"\\u0072ecursive\":1},1e999]"}"#,
            ),
            ("grep", "{}"),
        ] {
            assert!(reads_below(tool, arguments), "{tool}");
        }
        for (tool, arguments) in [
            ("read_file", r#"{"path":"recursive"}"#),
            ("list_directory", r#"{"path":"/","recursive":false}"#),
            ("list", r#"{"path":"/","recursive":"No"}"#),
            ("list", r#"{"path":"/","recursive":0.0}"#),
            ("list", r#"{"path":"/","recursive":null}"#),
            ("list", r#"{"path":"/","depth":1}"#),
            ("list", r#"{"path":"/","depth":"0"}"#),
            ("x", r#"{"text":"it is recursive: true"}"#),
        ] {
            assert!(!reads_below(tool, arguments), "{tool}");
        }
        assert!(command_reads_below("/usr/bin/find / -name x"));
        for command in [
            "grep -r x /srv",
            "grep -Rin x /srv",
            "ls -1R /srv",
            "ls -lr; rm -fr /srv",
            "cp -pr /srv /tmp/x",
            "cp --archive /srv /tmp/x",
            "grep --recursive=yes x /srv",
            "grep --directories=recurse x /srv",
            "fd . /srv",
        ] {
            assert!(command_reads_below(command), "{command}");
        }
        for command in [
            "cat /srv/find.txt",
            "ls -al /srv",
            "/bin/ls -ltr /srv",
            "java -server x.jar",
        ] {
            assert!(!command_reads_below(command), "{command}");
        }
    }
}
