//! What arguments show of a call's effects, whatever its tool is called.

use crate::words::words;

/// What the arguments of one call show. Each only makes the class worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArgumentSigns {
    /// One is named as an output: a file that the call writes.
    pub output: bool,
    /// One holds what a command line reads as an option.
    pub option: bool,
    /// One is an address beyond this machine.
    pub address: bool,
}

/// What the names of a schema's arguments show of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SchemaSigns {
    /// One is of a kind that no tool has that only reads: code, a command, an output.
    suspicious: bool,
    /// One is an address that the tool opens.
    pub address: bool,
    /// One names where the tool searches.
    pub store: bool,
    origin: bool,
    destination: bool,
}

impl SchemaSigns {
    /// Signs of a schema that is too deep to be read.
    pub const UNREAD: Self = Self {
        suspicious: true,
        address: true,
        store: false,
        origin: false,
        destination: false,
    };

    /// Adds what the name of one argument shows.
    pub fn add(&mut self, name: &str) {
        let folded: String = words(name).concat();
        let folded = folded.as_str();
        self.origin |= matches!(folded, "origin" | "origins");
        self.address |= ADDRESSES.contains(&folded);
        self.store |= STORES.contains(&folded);
        match folded {
            "destination" | "destinations" => self.destination = true,
            _ => self.suspicious |= is_suspicious_name(name),
        }
    }

    /// Returns whether the tool may do more than read. A destination beside an origin is the end of a journey.
    #[must_use]
    pub const fn is_suspicious(&self) -> bool {
        self.suspicious || (self.destination && !self.origin)
    }
}

/// Names of arguments that name where a tool searches, as one word.
const STORES: [&str; 18] = [
    "index",
    "indexname",
    "indexuid",
    "collection",
    "collectionname",
    "table",
    "tablename",
    "database",
    "path",
    "directory",
    "folder",
    "repo",
    "repository",
    "project",
    "projectid",
    "bucket",
    "namespace",
    "workspace",
];
/// Names of arguments that are addresses, as one word; `region_url` and the like only say where the service is.
const ADDRESSES: [&str; 13] = [
    "url",
    "urls",
    "uri",
    "uris",
    "href",
    "link",
    "links",
    "website",
    "websites",
    "webpage",
    "webpageurl",
    "siteurl",
    "pageurl",
];

/// Names of outputs as one word.
const OUTPUTS: [&str; 20] = [
    "output",
    "outputs",
    "outfile",
    "outputfile",
    "outputpath",
    "outpath",
    "outdir",
    "outputdir",
    "out",
    "dest",
    "destination",
    "destinations",
    "destfile",
    "destpath",
    "saveto",
    "savepath",
    "savefile",
    "writeto",
    "dump",
    "export",
];
/// First words of names of outputs, where a place follows: `save_to`, `write_path`, `download_dir`.
const WRITES_TO: [&str; 8] = [
    "save", "write", "store", "download", "export", "dump", "target", "log",
];
/// Last words of names of places.
const PLACES: [&str; 11] = [
    "to",
    "as",
    "at",
    "path",
    "file",
    "filename",
    "filepath",
    "dir",
    "directory",
    "folder",
    "location",
];
/// Last words of names that say how a result looks, not where it goes: `output_format`.
const SHAPES: [&str; 20] = [
    "format", "mode", "type", "schema", "style", "encoding", "language", "lang", "currency",
    "fields", "columns", "limit", "size", "level", "width", "height", "tokens", "lines", "length",
    "only",
];
/// Names of arguments that no tool has that only reads, where they are a whole name.
const CODE: [&str; 18] = [
    "isurl",
    "pipeline",
    "command",
    "commands",
    "cmd",
    "code",
    "script",
    "shell",
    "javascript",
    "python",
    "expression",
    "argv",
    "args",
    "newtext",
    "content",
    "contents",
    "replacement",
    "replace",
];

/// Longest name of an argument that is read, in bytes; a longer one counts as an output.
const NAME_BYTES_MAX: usize = 256;

/// Returns whether an argument of this name is a place that the call writes.
#[must_use]
pub fn is_output_name(name: &str) -> bool {
    if name.len() > NAME_BYTES_MAX {
        return true;
    }
    let words = words(name);
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        return false;
    };
    if SHAPES.contains(&last.as_str()) {
        return false;
    }
    let names_output = words.iter().any(|word| OUTPUTS.contains(&word.as_str()));
    let names_place = words.len() > 1 && PLACES.contains(&last.as_str());
    names_output || (names_place && WRITES_TO.contains(&first.as_str()))
}

/// Returns whether a tool that has an argument of this name may do more than read.
fn is_suspicious_name(name: &str) -> bool {
    let folded: String = words(name).concat();
    CODE.contains(&folded.as_str()) || is_output_name(name)
}

/// Returns whether a command line may read a string, or a word of it, as an option: `--output=x`, `-o x`. Numbers
/// (`-5`), dashes in prose and lists in text are none.
#[must_use]
pub fn is_option_like(text: &str) -> bool {
    /// A dash that a further reading of the text makes.
    const ESCAPED: [&str; 6] = ["\\u002d", "\\u002D", "\\x2d", "\\x2D", "%2d", "%2D"];
    if text.contains(['\\', '%']) && ESCAPED.iter().any(|escape| text.contains(escape)) {
        return true;
    }
    let starts = |part: &str, dashes: &str| {
        let rest = part.strip_prefix(dashes);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '-'))
    };
    let opening = |c: char| c.is_whitespace() || matches!(c, '[' | '(' | '{' | '"' | '\'' | ',');
    starts(text.trim_start_matches(opening), "-")
        || text.split(opening).any(|word| starts(word, "--"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_outputs_are_known() {
        for name in [
            "output",
            "output_file",
            "outputPath",
            "out",
            "dest",
            "destination",
            "save_to",
            "saveAs",
            "download_path",
            "exportPath",
            "writeTo",
            "log_file",
            "target_file",
            "outFile",
        ] {
            assert!(is_output_name(name), "{name}");
        }
        for name in [
            "output_format",
            "outputMode",
            "path",
            "target",
            "query",
            "file",
            "save",
            "to",
            "about",
            "max_output_tokens",
            "",
        ] {
            assert!(!is_output_name(name), "{name}");
        }
        assert!(is_suspicious_name("command") && is_suspicious_name("newText"));
        assert!(!is_suspicious_name("path") && !is_suspicious_name("pattern"));
    }

    #[test]
    fn options_are_told_from_numbers_and_prose() {
        for text in [
            "--output=/home/me/.bashrc",
            "-o",
            " --output=x",
            "HEAD --output=x",
            "[\"--pre=/bin/sh\"]",
            "['-o', 'x']",
            "\\u002d-output=x",
            "-oProxyCommand=x",
        ] {
            assert!(is_option_like(text), "{text}");
        }
        for text in [
            "HEAD",
            "HEAD~1",
            "-5",
            "-1.5",
            "-",
            "a - b",
            "well-known",
            "2026-11-27",
            "a--b",
            "- a point of a list",
            "main..feature-x",
            "",
        ] {
            assert!(!is_option_like(text), "{text}");
        }
    }
}
